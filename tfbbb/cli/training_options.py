"""The options of commands that train, here or by a service."""

import math
from pathlib import Path
from typing import Annotated, Literal

import typer


def _units(text: str | None) -> str | None:
    units = [] if text is None else [part.strip() for part in text.split(",")]
    units = [part for part in units if part]
    if not all(part.isdecimal() and int(part) > 0 for part in units):
        raise typer.BadParameter(
            f"{text!r} is not a list of positive whole numbers such as 50,50."
        )
    return text if text is None else ",".join(units)


def _positive(number: float | None) -> float | None:
    if number is not None and not 0 < number < math.inf:
        raise typer.BadParameter(f"{number} is not a positive number.")
    return number


def _share(number: float | None) -> float | None:
    if number is not None and not 0 < number < 1:
        raise typer.BadParameter(f"{number} is not between 0 and 1.")
    return number


Target = Annotated[str, typer.Option(help="Column to predict.")]
Task = Annotated[
    Literal["regression", "classification"] | None,
    typer.Option(
        metavar="TASK",
        help="regression or classification; by default classification of text and "
        "booleans.",
    ),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option(help="Column to leave out; may be given again.", metavar="COLUMN"),
]
Text = Annotated[
    list[str] | None,
    typer.Option(
        help="Column of codes that are categories although they look like numbers; may "
        "be given again.",
        metavar="COLUMN",
    ),
]
Hidden = Annotated[
    str | None,
    typer.Option(
        callback=_units,
        metavar="UNITS,...",
        help="Units of the hidden layers, e.g. 50,50; empty for a linear model; one "
        "layer, chosen by the number of rows, by default.",
    ),
]
Epochs = Annotated[
    int | None, typer.Option(min=1, help="Passes over the rows; chosen by default.")
]
BatchSize = Annotated[
    int | None, typer.Option(min=1, help="Rows per step; chosen by default.")
]
LearningRate = Annotated[
    float | None,
    typer.Option(
        callback=_positive,
        help="Learning rate at the start; it falls to 0.",
        show_default="0.01",
    ),
]
ValidationFraction = Annotated[
    float | None,
    typer.Option(
        callback=_share,
        help="Fraction of the rows to hold out; by default 0.1, and 10000 rows at "
        "most.",
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(help="Seed, from 0 to 2147483647.", show_default="0"),
]
StartFrom = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="VERSION",
        help="Version of the model to go on from: its posterior is the prior, so that "
        "only new rows are needed.",
    ),
]
Spec = Annotated[
    Path | None,
    typer.Option(
        help="JSON file with what the other options do not say: fields of POST "
        "/v1/jobs such as `model` and `training`."
    ),
]
