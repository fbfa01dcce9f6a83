"""`tfbbb remote jobs`, `log`, `cancel` and `retry`."""

from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from service.shared.job_state import JobState
from tfbbb.base.types import JsonObject
from tfbbb.cli.application import with_options
from tfbbb.cli.notes import echo_next
from tfbbb.cli.printing import AsJson, Limit, format_time, print_list
from tfbbb.cli.remote.service import JobId, service

if TYPE_CHECKING:
    from tfbbb.client import Client


@with_options(service)
def jobs(
    client: "Client",
    state: Annotated[
        JobState | None,
        typer.Option(
            metavar="STATE",
            help="List only jobs in this state: queued, running, exporting, succeeded, "
            "failed or cancelled.",
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="List only jobs that train this model.")
    ] = None,
    limit: Limit = 20,
    as_json: AsJson = False,
) -> None:
    """List the jobs, newest first.

    Example: tfbbb remote jobs --state running --json
    """
    found = islice(client.jobs(state=state, name=name), limit)
    print_list(
        [job.details for job in found],
        {
            "job": "id",
            "model": "name",
            "state": "state",
            "epoch": _format_epoch,
            "version": "version",
            "submitted": lambda job: format_time(job["created_at"]),
            # Services of earlier releases list none.
            "verdict": lambda job: job.get("verdict"),
            "error": "error",
        },
        as_json=as_json,
        if_none="There is no such job; create one with `tfbbb remote train`.",
        then="tfbbb remote watch JOB",
    )


@with_options(service)
def log(client: "Client", job: JobId) -> None:
    """Print the end of a job's log.

    Example: tfbbb remote log 5f1d7e2a9c3b4d6e8f012345
    """
    typer.echo(client.job(job).log, nl=False)


@with_options(service)
def cancel(client: "Client", job: JobId) -> None:
    """Cancel a job.

    A queued job is cancelled at once, a running job at the end of its step.

    Example: tfbbb remote cancel 5f1d7e2a9c3b4d6e8f012345
    """
    cancelled = client.job(job).cancel()
    stops = "" if cancelled.has_ended else " and will stop"
    typer.echo(f"job {cancelled.id} is {cancelled.state}{stops}")
    echo_next(f"tfbbb remote retry {cancelled.id}, to queue it again")


@with_options(service)
def retry(client: "Client", job: JobId) -> None:
    """Queue a failed or cancelled job again.

    Example: tfbbb remote retry 5f1d7e2a9c3b4d6e8f012345
    """
    again = client.job(job).retry()
    typer.echo(f"job {again.id} is {again.state}")
    echo_next(f"tfbbb remote watch {again.id}")


def _format_epoch(job: JsonObject) -> str | None:
    progress = job["progress"]
    return str(progress["epoch"]) if progress else None
