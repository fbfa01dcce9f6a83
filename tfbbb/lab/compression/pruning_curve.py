"""A metric of a model against the share of its removed weights."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import keras
import numpy as np

from tfbbb.base.types import ArrayLike, Identifier
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.model.compression import ranking as rankings
from tfbbb.model.compression.pruning import (
    Removal,
    Scope,
    copied,
    validate_shares,
)
from tfbbb.model.compression.ranking import Ranking
from tfbbb.prediction import Predictive, predictive

Metric = Callable[[Predictive, ArrayLike], float]


@dataclass(frozen=True)
class PruningCurve:
    """A metric of a model against the share of its weights that were removed.

    Attributes:
        shares: Shares of removed weights, ascending, [n].
        figures: The metric of the model at each share, [n].
    """

    shares: np.ndarray
    figures: np.ndarray


def pruning_curve(
    model: keras.Model,
    x: ArrayLike,
    y: ArrayLike,
    *,
    shares: Sequence[float] = (0.0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98),
    metric: str | Metric = "log_likelihood",
    ranking: str | Ranking = "signal_to_noise",
    scope: Scope = "global",
    likelihood: Identifier | Likelihood | None = None,
    num_samples: int = 100,
    seed: int = 0,
) -> PruningCurve:
    """Computes a metric for growing shares of removed weights (Blundell et al. 2015).

    The model itself does not change. At share 0 the metric is the model's own.

    Example:

    >>> import keras, numpy as np, tfbbb
    >>> x = np.random.normal(size=(80, 3)).astype("float32")
    >>> inputs = keras.Input((3,))
    >>> model = tfbbb.BayesianModel(
    ...     inputs, tfbbb.layers.DenseVariational(1)(inputs), likelihood="normal"
    ... )
    >>> model.compile("adam")
    >>> history = model.fit(x, x[:, :1], verbose=0)
    >>> curve = tfbbb.lab.compression.pruning_curve(
    ...     model, x, x[:, :1], shares=[0, 0.5, 1], metric="rmse"
    ... )
    >>> len(curve.figures)
    3

    Args:
        model: A built Keras model with variational layers.
        x: Inputs of held-out rows.
        y: Targets of these rows, in raw units.
        shares: Shares of the weights to remove, from 0 to 1.
        metric: `"log_likelihood"` per row in nats, `"rmse"` in the units of the
            targets, `"accuracy"`, or a function of the `tfbbb.Predictive` and `y`.
        ranking: As for `prune`.
        scope: As for `prune`.
        likelihood: As for `tfbbb.predictive`; not needed for a `BayesianModel`.
        num_samples: Number of draws from the posterior.
        seed: Seed of the draws, the same at each share.

    Raises:
        ValueError: A share is out of range, the metric is unknown, or for a reason of
            `prune` or `tfbbb.predictive`.
    """
    measure = _get_metric(metric)
    ascending = np.array(validate_shares(shares))
    copy = copied(model)
    removal = Removal(copy, rankings.get(ranking), scope)
    figures = []
    for share in ascending:
        removal.remove(share)
        prediction = predictive(
            copy, x, likelihood=likelihood, num_samples=num_samples, seed=seed
        )
        figures.append(float(measure(prediction, y)))
    return PruningCurve(shares=ascending, figures=np.array(figures))


def _get_metric(metric: str | Metric) -> Metric:
    if callable(metric):
        return metric
    if metric in _METRICS:
        return _METRICS[metric]
    names = ", ".join(f"'{name}'" for name in sorted(_METRICS))
    raise ValueError(
        f"Unknown metric. Pass one of {names}, or a function of the prediction and the "
        f"targets. Received: metric={metric!r}"
    )


def _log_likelihood(prediction: Predictive, y: ArrayLike) -> float:
    return float(np.mean(prediction.log_prob(y)))


def _rmse(prediction: Predictive, y: ArrayLike) -> float:
    targets = np.asarray(y)
    if targets.size != prediction.mean.size:
        raise ValueError(
            f"The targets must have the shape {prediction.mean.shape}, or be flat. "
            f"Received: y of shape {targets.shape}"
        )
    errors = prediction.mean - targets.reshape(prediction.mean.shape)
    return float(np.sqrt(np.mean(errors**2)))


def _accuracy(prediction: Predictive, y: ArrayLike) -> float:
    probabilities = prediction.probabilities
    labels = np.asarray(y)
    if labels.shape == probabilities.shape:
        labels = labels.argmax(axis=-1)
    if labels.size != math.prod(probabilities.shape[:-1]):
        raise ValueError(
            f"The targets must be one class for each of {len(probabilities)} rows, as "
            f"indices or one-hot rows. Received: y of shape {labels.shape}"
        )
    labels = labels.reshape(probabilities.shape[:-1])
    return float(np.mean(probabilities.argmax(axis=-1) == labels))


_METRICS: dict[str, Metric] = {
    "log_likelihood": _log_likelihood,
    "rmse": _rmse,
    "accuracy": _accuracy,
}
