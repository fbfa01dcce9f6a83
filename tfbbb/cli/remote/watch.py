"""`tfbbb remote watch`."""

import time
from typing import TYPE_CHECKING

import typer

from tfbbb.cli.application import with_options
from tfbbb.cli.errors import EXIT_LEARNED_NOTHING, CommandError
from tfbbb.cli.notes import echo_next
from tfbbb.cli.remote.service import JobIdOrNone, service

if TYPE_CHECKING:
    from tfbbb.base.types import JsonObject
    from tfbbb.client import Client, Event, Job


@with_options(service)
def watch(client: "Client", job: JobIdOrNone = None) -> None:
    """Show a job's progress until the job ends.

    Ctrl-C stops the command, not the job.

    Example: tfbbb remote watch 5f1d7e2a9c3b4d6e8f012345
    """
    if job is not None:
        follow(client.job(job))
        return
    newest = next(client.jobs(), None)
    if newest is None:
        raise CommandError("There is no job; create one with `tfbbb remote train`.")
    follow(newest)


def follow(job: "Job") -> None:
    """Shows the progress of a job, then the version that the job published."""
    from tfbbb.cli.figures import echo_judgement, echo_recalibration, echo_recipe

    show_progress(job)
    details = job.model.describe_version(job.version)
    description, lineage = details["description"], details["lineage"] or {}
    recipe, figures = lineage.get("source", {}).get("recipe"), "held-out figures"
    if recipe is not None:
        echo_recipe(recipe)
        figures = f"figures of {recipe['metrics_from']}"
    took = job.duration
    after = "" if took is None else f" after {took:.0f} s"
    typer.echo(f"published {job.name}, version {job.version}{after}; {figures}:")
    judgement = lineage.get("source", {}).get("judgement") or {}
    echo_judgement(judgement)
    echo_recalibration(description.get("recalibration_choice"))
    echo_next(f"tfbbb remote predict {job.name} TABLE")
    if not judgement.get("learned", True):
        raise typer.Exit(EXIT_LEARNED_NOTHING)


def show_progress(job: "Job", details: bool = True) -> None:
    """Shows the progress of a job until the job ends."""
    from rich.console import Console

    from tfbbb.cli.progress import EpochBar
    from tfbbb.training.job_clock import WAITING

    typer.echo(f"job {job.id} trains {job.name}", err=True)
    # The service sends past events at once: those of before are not shown.
    already_done = job.progress.get("epoch", 0)
    timing, told_at = job.timing, time.monotonic()

    def left() -> "JsonObject | None":
        """Returns the timing told last, less the time since unless the job waits."""
        if timing is None or timing["seconds_left"] is None:
            return timing
        waits = timing["stage"] == WAITING
        since = 0.0 if waits else time.monotonic() - told_at
        least, most = (max(x - since, 0.0) for x in timing["seconds_left"])
        return {**timing, "seconds_left": [least, most]}

    with EpochBar(Console(stderr=True), left) as bar:

        def show(event: "Event") -> None:
            nonlocal timing, told_at
            data = event.data
            if event.type == "stage":
                timing, told_at = data, time.monotonic()
            elif event.type == "epoch" and data["epoch"] >= already_done:
                if details:
                    stage = data.get("stage", "")
                    bar.show(data["epoch"], data, stage)
            elif event.type == "state":
                # `JobFailedError` gives the reason of a failed job.
                queued = data["state"] == "queued" and "reason" in data
                bar.print(data["state"] + (f": {data['reason']}" if queued else ""))
                if data["state"] == "succeeded":
                    done = {"stage": "done", "done": 1.0, "seconds_left": None}
                    timing = done

        try:
            job.wait(show)
        except KeyboardInterrupt:
            bar.print(
                f"job {job.id} is still running; `tfbbb remote watch` shows it again, "
                f"`tfbbb remote cancel {job.id}` cancels it"
            )
            raise
