"""Options of the commands that read a table, and of those that predict."""

from pathlib import Path
from typing import Annotated

import typer

from tfbbb.data.format import SUFFIX_LIST

Table = Annotated[Path, typer.Argument(help=f"Table: {SUFFIX_LIST}.")]
Sheet = Annotated[
    str | None,
    typer.Option(
        help="Sheet of an .xlsx or .ods file; the first with rows by default."
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(help="File to write, .csv or .parquet; stdout by default."),
]
NumSamples = Annotated[
    int | None,
    typer.Option(
        min=2, max=2**31 - 1, help="Draws per row; the model's default if not given."
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        min=-(2**31), max=2**31 - 1, help="Seed; the model's default if not given."
    ),
]


def _between_0_and_1(level: float) -> float:
    if not 0 < level < 1:
        raise typer.BadParameter(f"{level} is not between 0 and 1.")
    return level


Level = Annotated[
    float,
    typer.Option(
        callback=_between_0_and_1,
        help="Probability of the interval from lower to upper, and of prediction sets.",
    ),
]
PredictionSets = Annotated[
    bool,
    typer.Option(
        "--prediction-sets",
        help="Also print prediction_set: the classes that hold the true one with the "
        "probability --level.",
    ),
]
LogProb = Annotated[
    bool,
    typer.Option(
        "--log-prob",
        help="Also print log_prob of the target, a column of the table, in nats.",
    ),
]


def echo_note(note: str) -> None:
    """Prints a note about the table beside the predictions."""
    typer.echo(note, err=True)
