"""Evaluates a model on rows whose targets are known."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tfbbb.base.types import Config
from tfbbb.judging.evaluation.baselines import Baselines
from tfbbb.judging.evaluation.judgement import MODEL, judge
from tfbbb.judging.evaluation.predicted_rows import PredictedRows, joined
from tfbbb.judging.types import Inputs, Model

_ROWS_AT_ONCE = 2048


def evaluate(
    model: Model,
    inputs: Inputs,
    targets: np.ndarray,
    baselines: Baselines | None = None,
    *,
    places: np.ndarray | None = None,
    num_samples: int | None = None,
    seed: int | None = None,
    target_names: Sequence[str] = (),
    track: Callable[[range], Iterable[int]] = lambda starts: starts,
) -> Config:
    """Judges a model beside its baselines on rows with known targets.

    Args:
        model: A `tfbbb.BayesianModel`, or a model that `tfbbb.load` returned.
        inputs: Arrays [n] by name, or a matrix [n, d].
        targets: Targets [n, k], or class indices [n].
        baselines: The baselines of the training rows; None to judge the model alone.
        places: The index of each row in its table, [n]; None if these are all rows.
        num_samples: Draws per row; the model's own number by default.
        seed: Seed of the draws; the model's own by default.
        target_names: Names of several targets.
        track: Shows the progress through the first rows of the blocks.

    Returns:
        As `tfbbb.evaluation.judge`.

    Example:

    >>> import keras, numpy as np, tfbbb
    >>> x = keras.Input((2,))
    >>> model = tfbbb.BayesianModel(x, tfbbb.layers.DenseVariational(1)(x))
    >>> rows = np.random.normal(size=(50, 2)).astype("float32")
    >>> evaluate(model, rows, rows[:, :1])["rows"]
    50
    """
    draws: dict[str, Any] = {"num_samples": num_samples, "seed": seed}
    draws = {name: value for name, value in draws.items() if value is not None}
    parts: list[dict[str, PredictedRows]] = []
    blocks = []
    for start in track(range(0, len(targets), _ROWS_AT_ONCE)):
        block = slice(start, start + _ROWS_AT_ONCE)
        rows, truth = _rows(inputs, block), targets[block]
        prediction = model.predictive(rows, **draws)
        others = {} if baselines is None else baselines.predict(rows, truth)
        parts.append({MODEL: PredictedRows.score(prediction, truth), **others})
        blocks.append(np.arange(len(targets))[block])
    return judge(
        {name: joined([part[name] for part in parts], blocks) for name in parts[0]},
        targets,
        places,
        target_names=target_names,
    )


def _rows(inputs: Inputs, rows: slice) -> Inputs:
    if isinstance(inputs, Mapping):
        return {name: values[rows] for name, values in inputs.items()}
    return inputs[rows]
