"""`tfbbb train`."""

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tfbbb.cli.errors import EXIT_LEARNED_NOTHING, CommandError
from tfbbb.cli.notes import echo_next
from tfbbb.cli.options import (
    Ignore,
    ModelOutput,
    Quick,
    Sheet,
    Spec,
    Table,
    Target,
)
from tfbbb.cli.training_table import check_output, read_training_table

if TYPE_CHECKING:
    from tfbbb.training import JobSpec


def train(
    data: Table,
    target: Target,
    output: ModelOutput,
    sheet: Sheet = None,
    ignore: Ignore = None,
    spec: Spec = None,
    quick: Quick = False,
    **options: object,
) -> None:
    """Train a Bayesian network on a table and export it.

    Ends with the exit code 3 if the model learned nothing of use.

    Example: tfbbb train houses.csv --target price --output saved_models/houses
    """
    from tfbbb.cli.job_options import job_fields, validate_fields
    from tfbbb.training.job_clock import JobClock
    from tfbbb.training.record import TrainingRecord

    # Until here, the process did nothing but import.
    clock = JobClock(elapsed=time.process_time())
    clock.skip("version")
    clock.begin("loading")

    check_output(output)
    if quick:
        if options.get("effort") not in (None, "quick"):
            raise CommandError(
                "--quick is --effort quick: leave one of them out. "
                f"Received: --effort {options['effort']}"
            )
        options["effort"] = "quick"
    fields = job_fields(target, spec, options, name=output.resolve().name)
    job = validate_fields(fields)
    parent = _find_parent_version(job, output)
    record = TrainingRecord.read(parent) if parent else None
    table, job = read_training_table(
        data, fields, ignore or (), sheet=sheet, record=record
    )

    from rich.console import Console

    from tfbbb.base.threads import num_processors
    from tfbbb.cli.figures import echo_figures
    from tfbbb.cli.imports import import_tensorflow
    from tfbbb.cli.progress import EpochBar

    # A step computes means beside variances: each with half of the cores.
    threads = str(max(1, num_processors() // 2))
    os.environ.setdefault("TF_NUM_INTRAOP_THREADS", threads)
    fault = None
    with EpochBar(Console(stderr=True), lambda: clock.left().to_json()) as bar:
        import_tensorflow()
        from tfbbb.base.diverged_training import TrainingDivergedError
        from tfbbb.training import train_table
        from tfbbb.training.serving_version import ServingVersion

        try:
            trained = train_table(
                table,
                job,
                start_from=parent,
                serving=ServingVersion.under(output),
                report=lambda at: bar.show(at.epoch, at.figures, at.stage),
                clock=clock,
            )
        except TrainingDivergedError as error:
            raise CommandError(
                "Training diverged: its loss or held-out figures are not finite; "
                "lower --learning-rate, or look for numbers that are far too "
                f"large. Received: --learning-rate {error.learning_rate:g}"
            ) from None
        try:
            exported = trained.export(output)
        except OSError as error:
            # After the figures, which the training was for.
            fault = error
        clock.end()
    echo_figures(trained)
    if fault is not None:
        raise fault
    typer.echo(f"it took {clock.elapsed:.1f} s")
    typer.echo(f"exported to {exported}")
    echo_next(f"tfbbb predict {output} TABLE")
    if not trained.judgement["learned"]:
        raise typer.Exit(EXIT_LEARNED_NOTHING)


def _find_parent_version(job: "JobSpec", output: Path) -> Path | None:
    """Returns the version beside the output whose posterior becomes the prior."""
    if job.start_from is None:
        return None
    model = output.resolve().parent / job.start_from.model
    version = model / str(job.start_from.version)
    if not (version / "saved_model.pb").is_file():
        raise CommandError(
            f"There is no version to start from at {version}; name an existing version "
            "with --start-from."
        )
    return version
