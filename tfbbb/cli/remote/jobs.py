"""`tfbbb remote jobs` and `tfbbb remote cancel`."""

from itertools import islice
from typing import Annotated

import typer

from tfbbb.cli.remote.service import Key, Url, service


def jobs(
    state: Annotated[
        str | None, typer.Option(help="Only those that are queued, running, ...")
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Only those that train this model.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many.")] = 20,
    url: Url = None,
    key: Key = None,
) -> None:
    """List the jobs of the service, newest first."""
    with service(url, key) as client:
        from rich.console import Console
        from rich.table import Table

        table = Table("job", "model", "state", "epoch", "version", "error", box=None)
        for job in islice(client.jobs(state=state, name=name), limit):
            far = job.progress
            table.add_row(
                job.id,
                job.name,
                job.state,
                f"{far['epoch']} of {far['epochs']}" if far else "",
                "" if job.version is None else str(job.version),
                job.error or "",
            )
        Console(markup=False).print(table)


def cancel(
    job: Annotated[str, typer.Argument(help="Id of the job.")],
    url: Url = None,
    key: Key = None,
) -> None:
    """Cancel a job: at once if it waits, else as soon as its step is done."""
    with service(url, key) as client:
        cancelled = client.job(job).cancel()
        stops = "" if cancelled.has_ended else " and will stop"
        typer.echo(f"job {cancelled.id} is {cancelled.state}{stops}")
