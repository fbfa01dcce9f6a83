"""`tfbbb predict`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tfbbb.cli.errors import errors_in_one_sentence

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_ROWS_SHOWN = 50


def predict(
    model: Annotated[
        Path,
        typer.Argument(
            help="Exported model, or a directory of versions, of which the highest is "
            "taken."
        ),
    ],
    data: Annotated[Path, typer.Argument(help="Table: .csv, .csv.gz or .parquet.")],
    output: Annotated[
        Path | None,
        typer.Option(help="Where to write: .csv or .parquet. By default stdout."),
    ] = None,
    num_samples: Annotated[
        int | None,
        typer.Option(min=2, max=2**31 - 1, help="Draws; the model's own by default."),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            min=-(2**31), max=2**31 - 1, help="Seed; the model's own by default."
        ),
    ] = None,
    level: Annotated[
        float, typer.Option(help="Probability of the interval from lower to upper.")
    ] = 0.9,
) -> None:
    """Predict the rows of a table with an exported model.

    Numbers get mean, standard_deviation, epistemic_variance and aleatoric_variance
    (which add up to the variance), lower and upper. Classes get class, a probability
    each, entropy and mutual_information in nats.
    """
    if not 0 < level < 1:
        raise typer.BadParameter(
            f"{level} is not between 0 and 1.", param_hint="--level"
        )
    with errors_in_one_sentence():
        from tfbbb.cli.model_path import resolve_model
        from tfbbb.data import Column, read_table
        from tfbbb.data.writing import check_writable, write_csv, write_table
        from tfbbb.export.manifest import Manifest

        if output is not None:
            check_writable(output)
        path = resolve_model(model)
        columns = [
            Column(feature.name, feature.kind, feature.missing)
            for feature in Manifest.read(path).features
        ]
        texts = [column.name for column in columns if column.kind == "categorical"]
        table = read_table(data, text_columns=texts)
        inputs = {column.name: column.values_of(table) for column in columns}

        from tfbbb.cli.imports import import_tensorflow

        import_tensorflow()
        from tfbbb.cli.prediction_table import predict_table
        from tfbbb.export import load

        predictions = predict_table(
            load(path), inputs, num_samples=num_samples, seed=seed, level=level
        )
        if output is not None:
            write_table(predictions, output)
            typer.echo(f"{_rows(predictions.num_rows)} written to {output}", err=True)
        elif sys.stdout.isatty():
            _show(predictions)
        else:
            write_csv(predictions, sys.stdout.buffer)


def _show(predictions: "pa.Table") -> None:
    from rich.console import Console
    from rich.table import Table

    # Headings of several words can be broken into lines.
    headings = (name.replace("_", " ") for name in predictions.column_names)
    shown = Table("row", *headings)
    for row, values in enumerate(predictions.slice(0, _MOST_ROWS_SHOWN).to_pylist(), 1):
        cells = (v if isinstance(v, str) else f"{v:.5g}" for v in values.values())
        shown.add_row(str(row), *cells)
    Console().print(shown)
    if predictions.num_rows > _MOST_ROWS_SHOWN:
        more = predictions.num_rows - _MOST_ROWS_SHOWN
        typer.echo(f"and {_rows(more)} more; --output writes all")


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"
