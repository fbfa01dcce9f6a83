"""`tfbbb tune`."""

import signal
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from tfbbb.cli.errors import CommandError
from tfbbb.cli.notes import echo_next
from tfbbb.cli.options import Ignore, ModelOutput, Sheet, Spec, Table, Target
from tfbbb.cli.training_table import check_output, read_training_table

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

    from tfbbb.training.job_clock import Progress


def tune(
    data: Table,
    target: Target,
    output: ModelOutput,
    trials: Annotated[
        int, typer.Option(min=1, help="Trials, one of which is the default.")
    ] = 20,
    storage: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Database that keeps the trials, as Optuna takes it, such as "
            "sqlite:///houses.db: the same command goes on from there, and several at "
            "a time share the trials.",
        ),
    ] = None,
    sheet: Sheet = None,
    ignore: Ignore = None,
    spec: Spec = None,
    **options: object,
) -> None:
    """Search for a better network than the default; train and export it.

    Each trial trains another spec, and is measured by rows left out. Options
    that you give are not searched. No trial sees the rows that --validation-...
    names, by default a tenth: they compare the best trial with the default.

    Example: tfbbb tune houses.csv --target price --output saved_models/houses
    """
    from tfbbb.base.extras import import_extra
    from tfbbb.cli.job_options import job_fields

    check_output(output)
    try:
        import_extra("tune", "optuna")
    except ImportError as error:
        raise CommandError(str(error)) from None
    fields = job_fields(target, spec, options, name=output.resolve().name)
    table, job = read_training_table(data, fields, ignore or (), sheet=sheet)

    from tfbbb.cli.imports import import_tensorflow

    import_tensorflow()
    from rich.console import Console

    from tfbbb.base.diverged_training import TrainingDivergedError
    from tfbbb.cli.figures import (
        describe_trial,
        echo_comparison,
        echo_figures,
        echo_trials,
    )
    from tfbbb.cli.progress import EpochBar
    from tfbbb.training import tuning

    found: list[FrozenTrial] = []

    def show(trial: "FrozenTrial") -> None:
        found.append(trial)
        typer.echo(f"trial {trial.number}: {describe_trial(trial)}")

    stack = ExitStack()
    bars: list[EpochBar] = []

    def show_epoch(at: "Progress") -> None:
        if not bars:
            bars.append(stack.enter_context(EpochBar(Console(stderr=True))))
        bars[0].show(at.epoch, at.epochs, at.figures, at.stage)

    try:
        with stack:
            tuned = tuning.tune(
                table,
                job,
                trials=trials,
                storage=storage,
                finished=show,
                report=show_epoch,
            )
    except KeyboardInterrupt:
        if found:
            echo_trials(found)
        goes_on = "The same command starts anew; --storage URL would keep trials."
        if storage is not None:
            goes_on = "The same command goes on."
        typer.echo(f"Interrupted after {len(found)} of {trials} trials. {goes_on}")
        raise typer.Exit(128 + signal.SIGINT) from None
    except tuning.StudyError as error:
        raise CommandError(str(error)) from None
    except TrainingDivergedError as error:
        raise CommandError(
            "The training of every trial diverged; lower --learning-rate. "
            f"Received: --learning-rate {error.learning_rate:g}"
        ) from None
    echo_trials(tuned.trials)
    echo_figures(tuned.trained)
    echo_comparison(tuned)
    typer.echo(f"exported to {tuned.export(output)}")
    echo_next(f"tfbbb predict {output} TABLE")
