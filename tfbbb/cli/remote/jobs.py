"""`tfbbb remote jobs`, and what is done to one: `log`, `cancel` and `retry`."""

from itertools import islice
from typing import Annotated, Any

import typer

from service.shared.job_state import JobState
from tfbbb.cli.listing import AsJson, Limit, put_list, time_of
from tfbbb.cli.remote.service import JobId, Key, Url, service


def jobs(
    state: Annotated[
        JobState | None,
        typer.Option(
            metavar="STATE",
            help="Only those that are queued, running, exporting, succeeded, failed or "
            "cancelled.",
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Only those that train this model.")
    ] = None,
    limit: Limit = 20,
    as_json: AsJson = False,
    url: Url = None,
    key: Key = None,
) -> None:
    """List the jobs, newest first."""
    with service(url, key) as client:
        found = islice(client.jobs(state=state, name=name), limit)
        put_list(
            [job.details for job in found],
            {
                "job": lambda job: job["id"],
                "model": lambda job: job["name"],
                "state": lambda job: job["state"],
                "epoch": _epoch,
                "version": lambda job: job["version"],
                "submitted": lambda job: time_of(job["created_at"]),
                "error": lambda job: job["error"],
            },
            as_json=as_json,
            if_none="There is no such job; `tfbbb remote train` makes one.",
        )


def log(job: JobId, url: Url = None, key: Key = None) -> None:
    """Print the end of what the trainer of a job wrote."""
    with service(url, key) as client:
        typer.echo(client.job(job).log, nl=False)


def cancel(job: JobId, url: Url = None, key: Key = None) -> None:
    """Cancel a job.

    One that waits is cancelled at once, one that runs as soon as its step is done.
    """
    with service(url, key) as client:
        cancelled = client.job(job).cancel()
        stops = "" if cancelled.has_ended else " and will stop"
        typer.echo(f"job {cancelled.id} is {cancelled.state}{stops}")


def retry(job: JobId, url: Url = None, key: Key = None) -> None:
    """Queue a failed or cancelled job again."""
    with service(url, key) as client:
        again = client.job(job).retry()
        typer.echo(f"job {again.id} is {again.state}")


def _epoch(job: dict[str, Any]) -> str | None:
    progress = job["progress"]
    return f"{progress['epoch']} of {progress['epochs']}" if progress else None
