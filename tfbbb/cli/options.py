"""Arguments and options that several commands have, beside the fields of a job."""

import math
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tfbbb.cli.errors import CommandError
from tfbbb.tables.format import SUFFIX_LIST, WRITTEN_SUFFIX_LIST

if TYPE_CHECKING:
    from tfbbb.cli.model_table import ModelTable
    from tfbbb.export.manifest import Manifest

_STANDARD = Path("-")


def _read_standard_input(context: typer.Context, path: Path) -> Path:
    """Returns a file with the standard input for `-`, until the command ends."""
    if path != _STANDARD or context.resilient_parsing:
        return path
    from tfbbb.tables.format import BEGINNING_BYTES, table_format

    given = typer.get_binary_stream("stdin")
    beginning = given.read(BEGINNING_BYTES)
    directory = context.with_resource(tempfile.TemporaryDirectory(prefix="tfbbb-"))
    path = Path(directory) / f"standard-input.{table_format(beginning) or 'csv'}"
    with path.open("wb") as file:
        file.write(beginning)
        shutil.copyfileobj(given, file)
    return path


Model = Annotated[
    Path,
    typer.Argument(
        help="Exported model, or a directory of versions, of which the highest is used."
    ),
]
Table = Annotated[
    Path,
    typer.Argument(
        callback=_read_standard_input,
        help=f"Table: {SUFFIX_LIST}; - for standard input.",
    ),
]
Sheet = Annotated[
    str | None,
    typer.Option(
        help="Sheet of an .xlsx or .ods file; the first with rows by default."
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        callback=lambda path: None if path == _STANDARD else path,
        help=f"File to write: {WRITTEN_SUFFIX_LIST}; stdout by default, or for -.",
    ),
]
Keep = Annotated[
    bool,
    typer.Option(
        "--keep",
        help="Put all columns of the table before the predictions; by default only "
        "those that identify rows.",
    ),
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


def _parse_level(text: str) -> float:
    # Its libraries are imported when a command runs.
    from tfbbb.prediction.levels import write_as_probability

    try:
        level = float(text)
    except ValueError:
        level = math.nan
    if not 0 < level < 1:
        hint = write_as_probability(text)
        raise typer.BadParameter(f"{text} is not between 0 and 1.{hint}")
    return level


Level = Annotated[
    float,
    typer.Option(
        parser=_parse_level,
        metavar="FLOAT",
        help="Probability of the interval, as lower_90 and upper_90, and of prediction "
        "sets.",
    ),
]


class Numbers(list[float]):
    """Numbers that an option takes, separated by commas."""


def interval_levels(text: str) -> Numbers:
    """Returns the probabilities of intervals of percentages such as 50 and 90."""
    levels = Numbers()
    for part in text.split(","):
        try:
            level = float(part.strip().removesuffix("%")) / 100.0
        except ValueError:
            level = 0.0
        # 0.9 is meant as a probability.
        if not 0.01 <= level < 1:
            raise typer.BadParameter(
                f"{part.strip()!r} is not a percentage from 1 to below 100; write for "
                "example 50,90."
            )
        levels.append(level)
    return levels


Intervals = Annotated[
    Numbers | None,
    typer.Option(
        metavar="50,90",
        parser=interval_levels,
        help="Print intervals of these percentages, as lower_50, upper_50 and so on, "
        "in place of that of --level.",
    ),
]


def _parse_numbers(text: str) -> Numbers:
    try:
        numbers = Numbers(map(float, text.split(",")))
    except ValueError:
        numbers = Numbers([math.nan])
    if not all(map(math.isfinite, numbers)):
        raise typer.BadParameter(f"{text!r} names no numbers such as 30,365.")
    return numbers


Times = Annotated[
    Numbers | None,
    typer.Option(
        metavar="30,365",
        parser=_parse_numbers,
        help="Also print the probability of being beyond these times, or other numbers "
        "in units of the target, as survival_30 and so on.",
    ),
]
PredictionSets = Annotated[
    bool,
    typer.Option(
        "--prediction-sets",
        help="Also print prediction_set_90: the classes that hold the true one with "
        "the probability --level.",
    ),
]
LogProb = Annotated[
    bool,
    typer.Option(
        "--log-prob",
        help="Also print log_prob of the target, a column of the table, in nats.",
    ),
]
ModelOutput = Annotated[
    Path,
    typer.Option(
        help="Directory of the model, e.g. saved_models/NAME; the command writes the "
        "next version under it."
    ),
]
Target = Annotated[
    list[str],
    typer.Option(help="Column to predict; may be repeated, to predict all together."),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option(help="Column to leave out; may be repeated.", metavar="COLUMN"),
]
Spec = Annotated[
    Path | None,
    typer.Option(
        help="JSON file of further fields of POST /v1/jobs, such as `model` and "
        "`training`; the other options override it."
    ),
]
Quick = Annotated[
    bool, typer.Option("--quick", help="The short form of --effort quick.")
]


@dataclass(frozen=True)
class Asked:
    """What the predictions of a table are asked for, and where they go."""

    output: Output = None
    sheet: Sheet = None
    keep: Keep = False
    num_samples: NumSamples = None
    seed: Seed = None
    level: Level = 0.9
    intervals: Intervals = None
    times: Times = None
    prediction_sets: PredictionSets = False
    log_prob: LogProb = False

    def levels(self, manifest: "Manifest") -> dict[str, list[float]]:
        """Returns the levels of each answer; refuses those that a model lacks."""
        if manifest.classes is None:
            if self.prediction_sets:
                raise CommandError(
                    "Only classes have prediction sets, and this model predicts "
                    "numbers, with intervals. Leave out `--prediction-sets`."
                )
            levels: dict[str, list[float]]
            levels = {"intervals": self.intervals or [self.level]}
            if self.times is not None:
                levels["survival"] = self.times
            if len(manifest.target_names) > 1:
                levels["joint_intervals"] = levels["intervals"]
            return levels
        if self.intervals is not None:
            raise CommandError(
                "Only numbers have intervals, and this model predicts classes, with "
                "prediction sets. Leave out `--intervals`."
            )
        if self.times is not None:
            raise CommandError(
                "Only numbers are beyond a time, and this model predicts classes. "
                "Leave out `--times`."
            )
        return {"prediction_sets": [self.level]} if self.prediction_sets else {}


@contextmanager
def model_table(
    model: Model, data: Table, sheet: Sheet = None
) -> "Iterator[ModelTable]":
    """Opens a table for a model; exits with 3 if the model can use no cell of a column.

    A `ValueError` of the model ends the command with its sentence.
    """
    from tfbbb.cli.model_table import ModelTable, end_if_useless

    given = ModelTable.read(model, data, sheet)
    try:
        yield given
    except ValueError as error:
        raise CommandError(str(error)) from None
    end_if_useless(given.faults.by_column())
