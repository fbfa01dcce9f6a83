"""Predictions that draw until each row has the requested standard error."""

import functools
import math
from collections.abc import Callable

import numpy as np

from tfbbb.base.nested import leaves, map_leaves
from tfbbb.base.numbers import positive_number
from tfbbb.base.types import Array, ArrayLike, Structure
from tfbbb.prediction.gathered import SparseRows
from tfbbb.prediction.passes import PILOT, Passes
from tfbbb.prediction.result import Predictive

# Per row: a draw takes some hundred bytes, a thousand draws a millisecond or more.
MOST_SAMPLES = 1 << 20
# Takes numbers of rows and of samples.
PassesFor = Callable[[int, int], Passes]


def predict_adaptively(
    passes_for: PassesFor,
    inputs: Structure,
    *,
    num_samples: int,
    seed: int,
    max_floats: int,
    max_standard_error: float | None,
    relative_error: bool,
) -> list[Predictive]:
    """Returns predictions whose means have the standard error asked for.

    A pilot of `num_samples` draws estimates each row's standard error `s / sqrt(n)` and
    with it fixes the number n of draws of the row. The answer is made of fresh ones: an
    estimate that stops on its own draws stops where these happen to lie close together,
    which biases it (Stein 1945 on sampling in two stages). Without an error, there is
    no pilot.
    """
    num_rows = len(leaves(inputs)[0])
    passes = passes_for(num_rows, num_samples)
    if max_standard_error is None:
        return passes.predict(inputs, num_samples, seed, max_floats)
    pilot = passes.predict(inputs, num_samples, seed, max_floats, stream=PILOT)
    draws = np.max(
        [
            count_needed_draws(
                prediction.mean_standard_error,
                prediction.stddev,
                int(prediction.num_samples),
                max_standard_error,
                relative_error,
            )
            for prediction in pilot
        ],
        axis=0,
    )
    # Rows with the same number are drawn together: there are few powers of 2.
    times = np.clip(draws / num_samples, 1.0, 2.0**40)
    needed = num_samples * 2 ** np.ceil(np.log2(times)).astype(np.int64)
    granted = np.minimum(needed, MOST_SAMPLES)
    parts, part_rows = [], []
    for number in np.unique(granted).tolist():
        rows = np.flatnonzero(granted == number)
        part = inputs
        if len(rows) < num_rows:
            part = map_leaves(functools.partial(_take, rows), inputs)
        passes = passes_for(len(rows), number)
        parts.append(passes.predict(part, number, seed, max_floats))
        part_rows.append(rows)
    order = np.concatenate(part_rows)
    return [
        Predictive.joined(predictions, order, needed > granted, whole.functions)
        for predictions, whole in zip(zip(*parts, strict=True), pilot, strict=True)
    ]


def _take(rows: np.ndarray, inputs: ArrayLike) -> ArrayLike:
    if isinstance(inputs, SparseRows):
        return inputs.take(rows)
    return np.asarray(inputs)[rows]


def count_needed_draws(
    standard_error: Array,
    stddev: Array,
    num_samples: int,
    max_standard_error: float,
    relative_error: bool,
) -> Array:
    """Returns the number of draws that each row needs, by those of a pilot, [rows].

    The relative error of the pilot's squared error is sqrt(2 / (rounds - 1)): the
    margin is twice this error. The pilot's standard errors and predictive standard
    deviations are [rows, ...]; a relative error is a share of the latter.
    """
    wanted = max_standard_error * stddev if relative_error else max_standard_error
    # Without variance there is no error.
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.nan_to_num(standard_error / wanted, nan=0.0)
    excess = share.reshape(len(share), -1).max(axis=1) ** 2
    margin = 1.0 + 2.0 * math.sqrt(2.0 / max(num_samples / 2 - 1, 1))
    return excess * margin * num_samples


def check_bounds(
    max_standard_error: float | None, relative_error: bool, max_memory_mb: float
) -> None:
    """Raises ValueError for invalid bounds of a prediction."""
    if max_standard_error is not None:
        positive_number("max_standard_error", max_standard_error)
    is_alone = relative_error and max_standard_error is None
    if not isinstance(relative_error, bool) or is_alone:
        raise ValueError(
            "`relative_error=True` makes `max_standard_error` a share of the "
            "predictive standard deviation: give the share there. Received: "
            f"relative_error={relative_error!r}, "
            f"max_standard_error={max_standard_error!r}"
        )
    positive_number("max_memory_mb", max_memory_mb)
