"""`tfbbb remote watch`."""

from typing import TYPE_CHECKING

import typer

from tfbbb.cli.errors import CommandError
from tfbbb.cli.remote.service import JobIdOrNone, Key, Url, service

if TYPE_CHECKING:
    from tfbbb.client import Event, Job


def watch(
    job: JobIdOrNone = None,
    url: Url = None,
    key: Key = None,
) -> None:
    """Follow a job until it has ended.

    Ctrl-C ends the watching, not the job.
    """
    with service(url, key) as client:
        if job is not None:
            follow(client.job(job))
            return
        newest = next(client.jobs(), None)
        if newest is None:
            raise CommandError("There is no job; `tfbbb remote train` makes one.")
        follow(newest)


def follow(job: "Job") -> None:
    """Shows what happens to a job, and at its end what it has published.

    Raises:
        JobFailedError: The job failed, or was cancelled.
    """
    from rich.console import Console

    from tfbbb.cli.epoch_bar import EpochBar
    from tfbbb.cli.report import echo_metrics

    typer.echo(f"job {job.id} trains {job.name}", err=True)
    # What happened before comes at once, and says nothing of the time that is left.
    already_done = job.progress.get("epoch", 0)
    with EpochBar(Console(stderr=True)) as bar:

        def show(event: "Event") -> None:
            data = event.data
            if event.type == "epoch" and data["epoch"] >= already_done:
                bar.show(data["epoch"], data["epochs"], data)
            elif event.type == "state":
                # Of a job that has failed, the error says it.
                queued = data["state"] == "queued" and "reason" in data
                bar.say(data["state"] + (f": {data['reason']}" if queued else ""))

        try:
            job.wait(show)
        except KeyboardInterrupt:
            bar.say(
                f"job {job.id} goes on; `tfbbb remote watch` shows it again, `tfbbb "
                f"remote cancel {job.id}` ends it"
            )
            raise
    described = job.model.describe_version(job.version)["description"]
    typer.echo(f"published {job.name}, version {job.version}; of rows held out:")
    echo_metrics(described["metrics"])
