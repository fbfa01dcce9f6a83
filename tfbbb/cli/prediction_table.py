"""Prediction of a table by an exported model."""

import sys
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.progress import track

from tfbbb.cli.answer_table import classes_table, numbers_table, with_warnings
from tfbbb.cli.table_targets import empty_log_prob
from tfbbb.export.exported_model import ExportedModel
from tfbbb.export.inputs import to_tensors
from tfbbb.tables.known_targets import KnownTargets
from tfbbb.tables.row_warnings import Faults

_ROWS_AT_ONCE = 2048


def predict_table(
    model: ExportedModel,
    inputs: Mapping[str, np.ndarray],
    faults: Faults,
    *,
    num_samples: int | None = None,
    seed: int | None = None,
    level: float = 0.9,
    intervals: Mapping[str, float] | None = None,
    prediction_sets: bool = False,
    targets: KnownTargets | None = None,
) -> pa.Table:
    """Predicts rows in blocks; several blocks get a progress bar."""
    num_rows = len(next(iter(inputs.values())))
    tensors = to_tensors(inputs, model.manifest)
    warnings = faults.by_row()
    filled = None
    if targets is not None:
        for row, target in targets.unusable.items():
            warnings[row] = [*warnings[row], target.warning]
        filled = targets.filled if targets.known.any() else None
    blocks = []
    for start in track_blocks(range(0, num_rows, _ROWS_AT_ONCE)):
        block = tensors.take(slice(start, start + _ROWS_AT_ONCE))
        moments = model.predict(block, num_samples, seed)
        if (familiarity := moments.get("familiarity")) is not None:
            unlike = model.describe_unlike(block, familiarity)
            for row, sentences in enumerate(unlike, start=start):
                warnings[row] = [*warnings[row], *sentences]
        log_prob = sets = None
        if filled is not None:
            given = filled[start : start + _ROWS_AT_ONCE]
            log_prob = model.ask("log_prob", block, None, num_samples, seed, given)
        if prediction_sets:
            inside = model.ask("prediction_sets", block, [level], num_samples, seed)
            names = np.asarray(model.manifest.classes, dtype=object)
            sets = [names[row].tolist() for row in inside[:, 0]]
        if (classes := model.manifest.classes) is not None:
            blocks.append(classes_table(classes, moments, sets, log_prob))
        else:
            levels = intervals or {"": level}
            asked = list(levels.values())
            ends = model.ask("intervals", block, asked, num_samples, seed)
            bounds = {name: ends[:, :, place] for place, name in enumerate(levels)}
            blocks.append(numbers_table(moments, bounds, log_prob))
    predictions = pa.concat_tables(blocks)
    if targets is not None:
        predictions = empty_log_prob(predictions, targets.known)
    return with_warnings(predictions, warnings)


def track_names(names: Sequence[str]) -> Iterable[str]:
    """Yields names of columns, with a progress bar."""
    return track(
        names, description="columns", console=Console(file=sys.stderr), transient=True
    )


def track_blocks(starts: range) -> Iterable[int]:
    """Yields the first rows of blocks; several blocks get a progress bar."""
    return track(
        starts,
        description="rows",
        console=Console(file=sys.stderr),
        transient=True,
        disable=len(starts) == 1,
    )
