"""Recalibrations by string name, and their fit to a model."""

import keras
import numpy as np

from tfbbb.base.row_weights import effective_rows, one_weight
from tfbbb.base.types import ArrayLike
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.prediction.gathered import gathered
from tfbbb.prediction.inputs import input_tensors
from tfbbb.prediction.likelihood_model import LikelihoodModel
from tfbbb.prediction.recalibration.conformal import (
    Conformal,
    ConformalIntervals,
    ConformalSets,
    column_of,
)
from tfbbb.prediction.recalibration.cross_fitted import HeldOut
from tfbbb.prediction.recalibration.factors import scaling
from tfbbb.prediction.recalibration.isotonic_pit import IsotonicPIT
from tfbbb.prediction.recalibration.logit_scaling import Platt, VectorScaling
from tfbbb.prediction.recalibration.recalibration import (
    IDENTITY,
    Recalibration,
    registry,
)

# More would take their recalibration long, and each have few rows.
_MOST_CLASSES = 30

names, get, serialize, deserialize = (
    registry.names,
    registry.get,
    registry.serialize,
    registry.deserialize,
)


def recalibrate(
    model: LikelihoodModel,
    x: ArrayLike,
    y: ArrayLike = None,
    method: str | Recalibration = "auto",
    *,
    sample_weight: ArrayLike = None,
    by: str | int | None = None,
    num_samples: int = 100,
    seed: int = 0,
) -> Recalibration:
    """Calibrates the predictions of a model on held-out rows.

    Stores the fitted recalibration as `model.recalibration`. The recalibration is
    saved, loaded and exported with the model, and applies to every prediction from then
    on. `model.recalibration = None` removes it, and so does further training.

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
        x: Inputs of the held-out rows. Training rows are not suitable: a model is more
            certain about them than about other rows. Or a dataset of inputs and
            targets, and weights if there are any, which is read once.
        y: Targets of the held-out rows in raw units, unless `x` is a dataset.
        method: `"temperature"`, `"platt"` or `"vector_scaling"` for classes;
            `"variance_scaling"` for real numbers;
            `"isotonic_pit"` for one real, positive or bounded number;
            `"conformal_intervals"` for intervals of any numbers, counts included;
            `"conformal_sets"` for prediction sets of classes; or a
            `tfbbb.recalibration.Recalibration`, to fit another one of its class:
            `ConformalIntervals(density=VarianceScaling())` fits both. `"auto"` is the
            first of these methods that suits the likelihood.
        sample_weight: The weight of each held-out row, [rows]; None for 1. A row of
            weight 2 counts as two rows. Where rows were left out, such as nine of ten
            rows of a frequent class, weights of one over the share that was kept make
            the recalibration right for all rows. Weights that differ count for
            `(sum of w)^2 / sum of w^2` rows.
        by: The input whose values tell groups apart, for conformal methods: the name of
            a column, or the index of a column of an input matrix. Each group gets
            intervals or sets of its own if it has 20 held-out rows; the others share
            those of all rows. With `"auto"`, conformal intervals or sets are fitted on
            top of the recalibration of the density.
        num_samples: Number of draws for the predictions of the held-out rows.
        seed: Seed of these draws.

    Returns:
        The fitted recalibration.

    Raises:
        ValueError: The model is not a `BayesianModel`, the method does not suit its
            likelihood, there are too few rows, the targets do not fit the model or the
            rows, or no parameter fits the rows best. The model keeps its previous
            recalibration.
    """
    if not isinstance(model, LikelihoodModel):
        raise ValueError(
            "`model` must be a `tfbbb.BayesianModel`, which has a likelihood. "
            f"Received: model of type {type(model).__name__}"
        )
    if method == "auto":
        chosen = suitable(model.likelihood) or conformal(model.likelihood)
        if by is not None:
            chosen = conformal(model.likelihood, chosen)
    else:
        chosen = get(method)
    chosen.check(model.likelihood)
    if by is not None and not isinstance(chosen, Conformal):
        raise ValueError(
            "Groups have intervals or sets of their own: use `'conformal_intervals'` "
            f"or `'conformal_sets'`. Received: method={method!r}, by={by!r}"
        )
    x, y, sample_weight = gathered(x, y, sample_weight)
    if y is None:
        raise ValueError(
            "Held-out rows need targets: pass `y`, or a dataset of (inputs, targets). "
            f"Received: x of type {type(x).__name__} without targets"
        )
    labels = None if by is None else labels_of(model, x, by)
    if model.likelihood.censored:
        raise ValueError(
            "Rows that were cut off do not tell how far a recalibration must go: a "
            "likelihood with `censored=True` has none. "
            f"Received: likelihood={type(model.likelihood).__name__}"
        )
    targets = model.likelihood.check_targets(y)
    weights = one_weight(sample_weight, len(targets))
    number = len(targets) if weights is None else effective_rows(weights)
    if number < chosen.least_rows:
        as_many = "" if number == len(targets) else f", which count for {number}"
        raise ValueError(
            f"`{type(chosen).__name__}` needs {chosen.least_rows} held-out rows or "
            "more: from fewer rows it would learn noise. "
            f"Received: {len(targets)} rows{as_many}"
        )
    before, model.recalibration = model.recalibration, None
    try:
        prediction = model.predictive(x, num_samples=num_samples, seed=seed)
        if len(prediction) != len(targets):
            raise ValueError(
                "Every held-out row needs one target. "
                f"Received: {len(prediction)} rows and {len(targets)} targets"
            )
        if prediction.mask is not None and not prediction.mask.all():
            raise ValueError(
                "A recalibration counts all places of the held-out rows and knows no "
                "mask. Recalibrate on rows without masked places. "
                f"Received: {np.sum(~prediction.mask)} masked places"
            )
        targets = np.asarray(targets)
        rows = HeldOut(model.likelihood, prediction, targets, by, labels, None, weights)
        fitted = rows.fit(chosen)
    except BaseException:
        model.recalibration = before
        raise
    model.recalibration = fitted
    return fitted


def labels_of(model: keras.Model, x: ArrayLike, by: str | int) -> np.ndarray:
    """Returns the values of the input that tells groups apart, [rows].

    They have the data type in which the model reads them.
    """
    tensors = input_tensors(model, x)
    try:
        return column_of(tensors, by)
    except (KeyError, IndexError, TypeError, ValueError):
        raise ValueError(
            "`by` must be the name of an input column, or the index of a column of the "
            f"input matrix. Received: by={by!r}"
        ) from None


def conformal(likelihood: Likelihood, density: Recalibration = IDENTITY) -> Conformal:
    """Returns unfitted conformal intervals or sets on top of a density."""
    if isinstance(density, Conformal):
        return density
    if likelihood.task == "classification":
        return ConformalSets(density=density)
    return ConformalIntervals(density=density)


def richer(likelihood: Likelihood) -> list[Recalibration]:
    """Returns recalibrations of the density with more numbers than the suitable one."""
    if likelihood.task != "classification" or likelihood.num_classes > _MOST_CLASSES:
        return []
    return [Platt(), VectorScaling()]


def suitable(likelihood: Likelihood) -> Recalibration | None:
    """Returns the unfitted recalibration of the density; None if none suits."""
    factor = scaling(likelihood)
    method = IsotonicPIT() if factor is None else factor()
    try:
        method.check(likelihood)
    except ValueError:
        return None
    return method
