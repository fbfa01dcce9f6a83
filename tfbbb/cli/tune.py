"""`tfbbb tune`."""

import signal
from typing import TYPE_CHECKING, Annotated

import typer

from tfbbb.cli.errors import CommandError
from tfbbb.cli.notes import echo_next
from tfbbb.cli.options import Ignore, ModelOutput, Sheet, Spec, Table, Target
from tfbbb.cli.training_table import check_output, read_training_table

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial


def tune(
    data: Table,
    target: Target,
    output: ModelOutput,
    trials: Annotated[
        int, typer.Option(min=1, help="Trials, one of which is the default.")
    ] = 20,
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
    from tfbbb.base.diverged_training import TrainingDivergedError
    from tfbbb.cli.figures import describe_trial, echo_comparison, echo_figures
    from tfbbb.training import tuning

    number = 0

    def show(trial: "FrozenTrial") -> None:
        nonlocal number
        number += 1
        typer.echo(f"trial {trial.number}: {describe_trial(trial)}")

    typer.echo("trials, with the log-likelihood of rows left out, in nats per row:")
    try:
        tuned = tuning.tune(table, job, trials=trials, finished=show)
    except KeyboardInterrupt:
        typer.echo(f"Interrupted after {number} of {trials} trials.")
        raise typer.Exit(128 + signal.SIGINT) from None
    except TrainingDivergedError as error:
        raise CommandError(
            "The training of every trial diverged; lower --learning-rate. "
            f"Received: --learning-rate {error.learning_rate:g}"
        ) from None
    echo_figures(tuned.trained)
    echo_comparison(tuned)
    typer.echo(f"exported to {tuned.export(output)}")
    echo_next(f"tfbbb predict {output} TABLE")
