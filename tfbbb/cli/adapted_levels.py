"""Levels of intervals and sets that cover the rows of a table."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from tfbbb.cli.errors import CommandError
from tfbbb.export.exported_model import ExportedModel
from tfbbb.export.shift_reference import ShiftReference

# Of the rows whose intervals give the factor of the width.
_MOST_ROWS = 2048


def adapt_levels(
    model: ExportedModel,
    version: Path,
    inputs: Mapping[str, np.ndarray],
    levels: Mapping[str, float],
) -> tuple[dict[str, float], str]:
    """Returns the levels to ask for by name, and a note about them."""
    reference = ShiftReference.read(version)
    if reference is None:
        raise CommandError(
            "The model carries no rows of its calibration, with which the table could "
            "be compared: train it again with 40 rows or more, or leave out `--adapt`."
        )
    wanted = list(levels.values())
    found = reference.adapt(inputs, model.manifest, wanted)
    if found.levels == tuple(wanted):
        note = (
            f"The table is like the {found.num_rows} rows of the calibration, so "
            "intervals and sets stay as they are."
        )
        return dict(levels), note
    some = {name: values[:_MOST_ROWS] for name, values in inputs.items()}
    factors = [
        f"{100 * level:g} % {_factor(model, some, level, adapted):.3g} times as large"
        for level, adapted in zip(wanted, found.levels, strict=True)
    ]
    kind = "intervals" if model.manifest.classes is None else "prediction sets"
    note = (
        f"The table differs from the {found.num_rows} rows of the calibration, which "
        f"count for {found.effective_rows} rows like those of the table: {kind} of "
        f"{', of '.join(factors)}."
    )
    return dict(zip(levels, found.levels, strict=True)), note


def _factor(
    model: ExportedModel, inputs: Mapping[str, np.ndarray], level: float, adapted: float
) -> float:
    """Returns the ratio of the mean widths of intervals, or sizes of sets."""
    levels = [level, adapted]
    if model.manifest.classes is None:
        ends = model.ask("intervals", inputs, levels)
        sizes = (ends[:, 1] - ends[:, 0]).mean(axis=(0, 2))
    else:
        sizes = model.ask("prediction_sets", inputs, levels).sum(axis=-1).mean(axis=0)
    return float(sizes[1] / sizes[0])
