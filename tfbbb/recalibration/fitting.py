"""Fitting a recalibration to a model."""

from typing import TYPE_CHECKING, Any

import numpy as np

from tfbbb.recalibration.recalibration import Recalibration
from tfbbb.recalibration.registry import get

if TYPE_CHECKING:
    from tfbbb.model import BayesianModel


def recalibrate(
    model: "BayesianModel",
    x: Any,
    y: Any,
    method: Any = "auto",
    *,
    num_samples: int = 100,
    seed: int = 0,
) -> Recalibration:
    """Makes a model's predictions calibrated, by rows that it was not trained on.

    What is fitted is kept with the model as `model.recalibration`, is saved, loaded and
    exported with it, and every prediction from then on is recalibrated.
    `model.recalibration = None` takes it off again, and so does training further.

    Example:

    >>> import keras, numpy as np, tfbbb
    >>> x = np.random.normal(size=(200, 2))
    >>> y = x[:, :1] + 0.1 * np.random.normal(size=(200, 1))
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> model = tfbbb.BayesianModel(inputs, outputs)
    >>> before = tfbbb.metrics.negative_log_likelihood(model.predictive(x), y)
    >>> tfbbb.recalibrate(model, x, y)
    VarianceScaling(factors=[...])
    >>> tfbbb.metrics.negative_log_likelihood(model.predictive(x), y) < before
    True

    Args:
        model: The model.
        x: Inputs of the held-out rows. On training rows a model is surer than on any
            others, so that these would not do.
        y: Their targets in raw units.
        method: `"temperature"` for classes; `"variance_scaling"` for real numbers;
            `"isotonic_pit"` for one real, positive or bounded number;
            `"conformal_intervals"` for intervals of any numbers, counts too; or a
            `tfbbb.recalibration.Recalibration`, to fit another of its kind. `"auto"` is
            the first of these that suits the likelihood.
        num_samples: Number of draws behind the predictions that it is fitted on.
        seed: Seed of these draws.

    Returns:
        What has been fitted.

    Raises:
        ValueError: For a model that is no `BayesianModel`, a method that does not suit
            its likelihood, too few rows, targets that do not fit the model or the rows,
            or where nothing fits them best. The model keeps what it had.
    """
    from tfbbb.model import BayesianModel

    if not isinstance(model, BayesianModel):
        raise ValueError(
            "A recalibration is kept with a `tfbbb.BayesianModel`, which knows its "
            f"likelihood. Received: model of type {type(model).__name__}"
        )
    chosen = _automatic(model.likelihood) if method == "auto" else get(method)
    chosen.check(model.likelihood)
    targets = model.likelihood.check_targets(y)
    if len(targets) < chosen.least_rows:
        raise ValueError(
            f"`{type(chosen).__name__}` needs {chosen.least_rows} held-out rows or "
            "more: of fewer, it would learn their noise. "
            f"Received: {len(targets)} rows"
        )
    before, model.recalibration = model.recalibration, None
    try:
        prediction = model.predictive(x, num_samples=num_samples, seed=seed)
        if len(prediction) != len(targets):
            raise ValueError(
                "Every held-out row needs one target. "
                f"Received: {len(prediction)} rows and {len(targets)} targets"
            )
        fitted = chosen.fitted(model.likelihood, prediction, np.asarray(targets))
    except BaseException:
        model.recalibration = before
        raise
    model.recalibration = fitted
    return fitted


def _automatic(likelihood: Any) -> Recalibration:
    if likelihood.task == "classification":
        return get("temperature")
    if likelihood.unbounded:
        return get("variance_scaling")
    if not likelihood.discrete and likelihood.num_targets == 1:
        return get("isotonic_pit")
    return get("conformal_intervals")
