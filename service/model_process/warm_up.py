"""The first calls of a model, which compile: no client should wait for them."""

import contextlib
import time
from typing import TYPE_CHECKING

import numpy as np

from service.model_process.speed import Speed
from tfbbb.export.inputs import Inputs, any_row, to_tensors
from tfbbb.export.manifest import Manifest
from tfbbb.prediction import questions

if TYPE_CHECKING:
    from tfbbb.export.exported_model import ExportedModel

# Any other number of rows costs no more than these: signatures take any number.
_SIZES = (1, 16)
_LEVEL = 0.5


def warm_up(model: "ExportedModel") -> Speed:
    """Calls every signature that the service calls; returns how fast predictions are.

    Raises:
        Exception: If the model cannot predict.
    """
    manifest = model.manifest
    row = to_tensors(any_row(manifest), manifest)
    tables = [
        type(row)({name: np.repeat(value, size, axis=0) for name, value in row.items()})
        for size in _SIZES
    ]
    for table, size in zip(tables, _SIZES, strict=True):
        model.predict(table)
        _ask(model, table, size)
    # Predictions of many rows run block by block, by functions of their own.
    if manifest.passes:
        model.predictive(tables[-1], num_samples=4, max_memory_mb=1e-6)
    small, large = (
        (size * manifest.default_num_samples, _seconds(model, table))
        for table, size in zip(tables, _SIZES, strict=True)
    )
    return Speed.measured(small, large)


def _ask(model: "ExportedModel", table: Inputs, size: int) -> None:
    for question in questions.served_questions():
        if not model.manifest.answers(question):
            continue
        levels = [_LEVEL] if question.takes_levels else None
        targets = _any_targets(model.manifest, size) if question.takes_targets else None
        # Conformal intervals of few held-out rows have no such level.
        with contextlib.suppress(ValueError):
            model.ask(question.name, table, levels, targets=targets)


def _any_targets(manifest: Manifest, size: int) -> np.ndarray:
    """Returns targets that a model takes."""
    targets = manifest.targets
    assert targets is not None
    shape = [size, *(places or 1 for places in targets.shape)]
    if targets.support is None:
        return np.zeros(shape, np.int32)
    return np.full(shape, targets.support.least)


def _seconds(model: "ExportedModel", table: Inputs) -> float:
    begin = time.perf_counter()
    model.predict(table)
    return time.perf_counter() - begin
