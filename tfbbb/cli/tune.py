"""`tfbbb tune`."""

import signal
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tfbbb.cli.errors import CommandError, errors_in_one_sentence
from tfbbb.cli.prediction_options import Sheet, Table
from tfbbb.cli.training_options import Ignore, Output, Spec, Target
from tfbbb.cli.training_table import check_output, find_schema, read_training_table

if TYPE_CHECKING:
    from tfbbb.training.progress import Progress
    from tfbbb.training.tuning import Trial


def tune(
    data: Table,
    target: Target,
    output: Output,
    trials: Annotated[
        int,
        typer.Option(min=1, help="Trials, of which the first one is the default."),
    ] = 20,
    study: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="SQLite file that keeps the finished trials: the same command goes "
            "on from there, and one with more --trials adds to them.",
        ),
    ] = None,
    processes: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Processes of this machine that train at the same time, with one "
            "thread each; the results do not depend on their number.",
            show_default="1",
        ),
    ] = None,
    ray_address: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Ray cluster to train on, in place of processes: HOST:PORT, `auto` "
            "for that of this machine, or `local` to start one.",
        ),
    ] = None,
    round_size: Annotated[
        int,
        typer.Option(
            "--round",
            min=1,
            metavar="N",
            help="Trials that start from the same knowledge, and so the most that run "
            "at the same time; the results depend on this number.",
        ),
    ] = 4,
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
    with errors_in_one_sentence():
        from tfbbb.base.extras import import_extra
        from tfbbb.cli.job_fields import job_fields

        check_output(output)
        try:
            import_extra("tune", "optuna")
        except ImportError as error:
            raise CommandError(str(error)) from None
        fields = job_fields(target, spec, options, name=output.resolve().name)
        table, job = read_training_table(data, fields, ignore or (), sheet=sheet)
        schema = find_schema(table, job, None)

        from tfbbb.cli.column_report import echo_columns
        from tfbbb.cli.imports import import_tensorflow
        from tfbbb.cli.report import echo_figures, echo_schema

        echo_schema(schema)
        echo_columns(schema)
        from concurrent.futures.process import BrokenProcessPool

        from tfbbb.training.parallel import compute_with_one_thread, places

        # The trials and the final training compute alike in any number of processes.
        compute_with_one_thread()
        stack = ExitStack()
        try:
            stack.enter_context(places(processes, ray_address))
        except (ValueError, ImportError, ConnectionError) as error:
            raise CommandError(str(error)) from None
        import_tensorflow()
        from rich.console import Console

        from tfbbb.base.diverged_training import TrainingDivergedError
        from tfbbb.cli.epoch_bar import EpochBar
        from tfbbb.cli.trial_table import describe_trial, echo_comparison, echo_trials
        from tfbbb.training import tuning

        found: list[Trial] = []

        def show(trial: "Trial") -> None:
            found.append(trial)
            typer.echo(f"trial {trial.number}: {describe_trial(trial)}")

        bars: list[EpochBar] = []

        def show_epoch(at: "Progress") -> None:
            if not bars:
                # After the bar of the trials: there can be one at a time.
                bars.append(stack.enter_context(EpochBar(Console(stderr=True))))
            bars[0].show(at.epoch, at.epochs, at.figures, at.stage)

        try:
            with stack:
                tuned = tuning.tune(
                    table,
                    job,
                    trials=trials,
                    study=study,
                    round_size=round_size,
                    progress="trials",
                    finished=show,
                    report=show_epoch,
                )
        except KeyboardInterrupt:
            if found:
                echo_trials(found)
            goes_on = "The same command starts anew; --study FILE would keep trials."
            if study is not None:
                goes_on = f"The same command goes on. Study: {study}"
            typer.echo(f"Interrupted after {len(found)} of {trials} trials. {goes_on}")
            raise typer.Exit(128 + signal.SIGINT) from None
        except tuning.StudyError as error:
            raise CommandError(str(error)) from None
        except BrokenProcessPool as error:
            raise CommandError(
                "A process died, which a lack of memory can cause: train fewer trials "
                "at a time, with --study FILE to keep those that have finished. "
                f"Received: {str(error).partition('.')[0]}"
            ) from None
        except TrainingDivergedError as error:
            raise CommandError(
                "The training of every trial diverged; lower --learning-rate. "
                f"Received: --learning-rate {error.learning_rate:g}"
            ) from None
        echo_trials(tuned.trials)
        echo_figures(tuned.trained)
        echo_comparison(tuned)
        typer.echo(f"exported to {tuned.export(output)}")
