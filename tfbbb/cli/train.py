"""`tfbbb train`."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tfbbb.cli.errors import CommandError, errors_in_one_sentence

if TYPE_CHECKING:
    from tfbbb.data.table_error import ColumnError
    from tfbbb.training import JobSpec


def train(
    data: Annotated[
        Path, typer.Argument(help="Table: .csv, .csv.gz, .parquet or .arrow.")
    ],
    target: Annotated[str, typer.Option(help="Column to predict.")],
    output: Annotated[
        Path,
        typer.Option(
            help="Directory of the model, e.g. saved_models/NAME; the next version is "
            "written under it."
        ),
    ],
    task: Annotated[
        Literal["regression", "classification"] | None,
        typer.Option(help="By default classification of text and booleans."),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(help="Column to leave out; may be given again.", metavar="COLUMN"),
    ] = None,
    text: Annotated[
        list[str] | None,
        typer.Option(
            help="Column of codes that are categories although they look like numbers; "
            "may be given again.",
            metavar="COLUMN",
        ),
    ] = None,
    hidden: Annotated[
        str | None,
        typer.Option(
            metavar="UNITS,...",
            help="Units of the hidden layers, e.g. 50,50; empty for a linear model; "
            "one layer, chosen by the number of rows, by default.",
        ),
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(min=1, help="Passes over the rows; chosen by default."),
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(min=1, help="Rows per step; chosen by default.")
    ] = None,
    learning_rate: Annotated[
        float, typer.Option(help="Learning rate at the start; it falls to 0.")
    ] = 0.01,
    validation_fraction: Annotated[
        float | None,
        typer.Option(
            help="Fraction of the rows to hold out; by default 0.1, and 10000 rows at "
            "most."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**20, help="Seed.")] = 0,
) -> None:
    """Train a Bayesian network on a table and export it."""
    units = None if hidden is None else _positive_integers(hidden)
    if validation_fraction is not None and not 0 < validation_fraction < 1:
        raise typer.BadParameter(
            f"{validation_fraction} is not between 0 and 1.",
            param_hint="--validation-fraction",
        )
    if not 0 < learning_rate < float("inf"):
        raise typer.BadParameter(
            f"{learning_rate} is not a positive number.", param_hint="--learning-rate"
        )
    with errors_in_one_sentence():
        _check_output(output)
        from tfbbb.data import Schema, read_table
        from tfbbb.data.column_names import check_column_exists
        from tfbbb.data.table_error import ColumnError

        table = read_table(data, text_columns=text or (), notify=typer.echo)
        for name in ignore or ():
            check_column_exists(table, name, role="ignored")
        for name in text or ():
            check_column_exists(table, name, role="text")
        features = [n for n in table.column_names if n not in (target, *(ignore or ()))]
        try:
            schema = Schema.infer(
                table, target, task=task, features=features, text_columns=text or ()
            )
        except ColumnError as error:
            if error.column == target:
                raise
            raise CommandError(f"{error} {_options_for(error)}") from None

        from tfbbb.cli.imports import import_tensorflow
        from tfbbb.cli.report import echo_figures, echo_identifiers, echo_schema

        echo_schema(schema)
        echo_identifiers(schema, table.num_rows)
        spec = _spec(
            target=target,
            task=schema.task,
            features=features,
            text_columns=text or (),
            model={"hidden_units": units},
            training={
                "epochs": epochs,
                "batch_size": batch_size,
                "learning_rate": learning_rate,
                "validation": {"fraction": validation_fraction},
                "seed": seed,
            },
        )
        import_tensorflow()
        from rich.console import Console

        from tfbbb.cli.epoch_bar import EpochBar
        from tfbbb.diverged_training import TrainingDivergedError
        from tfbbb.training import train_table

        try:
            with EpochBar(Console(stderr=True)) as bar:
                trained = train_table(
                    table,
                    spec,
                    report=lambda at: bar.show(at.epoch, at.epochs, at.figures),
                )
        except TrainingDivergedError:
            raise CommandError(
                "Training diverged: its loss or held-out figures are not finite; lower "
                f"--learning-rate. Received: --learning-rate {learning_rate:g}"
            ) from None
        echo_figures(trained)
        typer.echo(f"exported to {trained.export(output)}")


def _spec(**fields: Any) -> "JobSpec":
    """Returns the spec of a job, or says which part of it is wrong."""
    from pydantic import ValidationError

    from tfbbb.training.spec import JobSpec

    try:
        return JobSpec.model_validate(fields)
    except ValidationError as error:
        first = error.errors()[0]
        place = " ".join(map(str, first["loc"]))
        raise CommandError(
            f"This can't be trained: {place}: {first['msg']}. "
            f"Received: {first['input']!r:.80}"
        ) from None


def _options_for(error: "ColumnError") -> str:
    column = shlex.quote(error.column)
    options = f"--ignore {column} leaves it out"
    if error.may_be_text:
        options += f", --text {column} takes it as text"
    return f"({options}.)"


def _check_output(output: Path) -> None:
    """Finds out before training that nothing could be written after it."""
    if output.exists() and not output.is_dir():
        raise CommandError(f"{output} is a file, so no model can be written under it.")
    if (output / "saved_model.pb").exists():
        raise CommandError(
            f"{output} is a version of a model; give the directory above it."
        )
    if output.name.isdecimal():
        raise CommandError(
            f"{output} names a version, but versions are numbered by themselves; name "
            "the directory of the model, e.g. saved_models/NAME."
        )


def _positive_integers(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise typer.BadParameter(
            f"{text!r} is not a list of positive whole numbers such as 50,50.",
            param_hint="--hidden",
        )
    return tuple(map(int, parts))
