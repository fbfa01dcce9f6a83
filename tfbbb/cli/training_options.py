"""Options shared by `tfbbb train`, `tfbbb tune` and `tfbbb remote train`."""

import math
from pathlib import Path
from typing import Annotated, Literal

import typer


def _check_units(text: str | None) -> str | None:
    units = [] if text is None else [part.strip() for part in text.split(",")]
    units = [part for part in units if part]
    if not all(part.isdecimal() and int(part) > 0 for part in units):
        raise typer.BadParameter(
            f"{text!r} is not a list of positive whole numbers such as 50,50."
        )
    return text if text is None else ",".join(units)


def _check_positive(number: float | None) -> float | None:
    if number is not None and not 0 < number < math.inf:
        raise typer.BadParameter(f"{number} is not a positive number.")
    return number


def _check_fraction(number: float | None) -> float | None:
    if number is not None and not 0 < number < 1:
        raise typer.BadParameter(f"{number} is not between 0 and 1.")
    return number


def _check_columns(given: list[str] | None) -> list[str] | None:
    for text in given or ():
        name, _, kind = text.rpartition("=")
        if not (name and kind):
            raise typer.BadParameter(
                f"{text!r} is not a column and its kind, such as price=number."
            )
    return given


Output = Annotated[
    Path,
    typer.Option(
        help="Directory of the model, e.g. saved_models/NAME; the command writes the "
        "next version under it."
    ),
]
Target = Annotated[str, typer.Option(help="Column to predict.")]
Task = Annotated[
    Literal["regression", "classification"] | None,
    typer.Option(
        metavar="TASK",
        help="regression or classification; by default classification if the target "
        "is text, boolean, or all 0 and 1.",
    ),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option(help="Column to leave out; may be repeated.", metavar="COLUMN"),
]
Text = Annotated[
    list[str] | None,
    typer.Option(
        help="Column to read as text, such as codes made of digits; may be repeated.",
        metavar="COLUMN",
    ),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        callback=_check_columns,
        metavar="COLUMN=KIND",
        help="What a column is: number, boolean, date, duration, ordered, text, hashed "
        "or ignore, with options, as in price=number:percent, "
        "when=date:day-first, size=ordered:S,M,L; may be repeated.",
    ),
]
Hidden = Annotated[
    str | None,
    typer.Option(
        callback=_check_units,
        metavar="UNITS,...",
        help="Units of the hidden layers, e.g. 50,50; empty for a linear model; by "
        "default two layers of 64 units, of 128 from 5000 rows on.",
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
        callback=_check_positive,
        help="Initial learning rate; it decays to 0.",
        show_default="0.01",
    ),
]
MaxSeconds = Annotated[
    float | None,
    typer.Option(
        callback=_check_positive,
        metavar="SECONDS",
        help="Most seconds of the training with its judgement and export; if they end "
        "it, the model is that of the last step.",
        show_default="no limit",
    ),
]
ValidationFraction = Annotated[
    float | None,
    typer.Option(
        callback=_check_fraction,
        help="Fraction of the rows to hold out; by default each member leaves out "
        "a part of the rows, and 0.1, at most 10000 rows, is held out from 5000 on.",
    ),
]
ValidationColumn = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column that is true or 1 in the rows to hold out; it is not a feature.",
    ),
]
ValidationTime = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of numbers, dates or times: its last rows are held out, a tenth "
        "unless --validation-fraction is given. It is not a feature.",
    ),
]
ValidationGroup = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column whose equal values mark rows that stay together, such as those of "
        "a patient: no row is measured by a member that trained on others of its "
        "group. It is not a feature.",
    ),
]
Partitions = Annotated[
    int | None,
    typer.Option(
        min=2,
        metavar="K",
        help="Train one posterior in K partitions whose rows stay apart: the files of "
        "a dataset of K files, else parts drawn at random.",
    ),
]
Devices = Annotated[
    Literal["one", "all"] | None,
    typer.Option(
        metavar="one|all",
        help="Whether to train on one device, or on all GPUs that TensorFlow sees.",
        show_default="one",
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
        help="Version of the model to start from: its posterior becomes the prior, so "
        "the table needs only new rows.",
    ),
]
Spec = Annotated[
    Path | None,
    typer.Option(
        help="JSON file of further fields of POST /v1/jobs, such as `model` and "
        "`training`; the other options override it."
    ),
]
