"""Recalibration of the distribution function by isotonic regression."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence

import numpy as np

from tfbbb.base import array_ops as ops
from tfbbb.base.row_weights import effective_rows
from tfbbb.base.types import ArrayLike, Config, Tensor
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.prediction.answers import Quantiles, Summary
from tfbbb.prediction.mixture import Mixture
from tfbbb.prediction.recalibration.recalibration import (
    VARIANCES,
    Recalibration,
    register,
)
from tfbbb.prediction.result import Predictive

# In standard deviations of a normal: beyond it, 1 - F is rounding.
_FARTHEST = 8.0
# From the outermost knots to the ends of the map: no score is farther.
_BEYOND = 100.0
# The recalibrated scores up to this one must be within `_FARTHEST`: those of all but
# 0.3 % of the targets.
_NEEDED = 3.0
_MAX_KNOTS = 16
# Knots closer than this, in normal scores, are merged; most are at least 0.1 apart.
_SAME_PLACE = 0.01
# Numbers of quadrature nodes between two knots and beyond the outermost knots, and the
# limit of the quadrature.
_INNER_NODES, _OUTER_NODES = 3, 8
_QUADRATURE_LIMIT = 6.0


@register("isotonic_pit")
class IsotonicPIT(Recalibration):
    """Maps the distribution function by an increasing R (Kuleshov et al. 2018).

        P(y <= v | x, data) = R(F(v))

    F is the distribution function of the mixture, and R(p) the share of held-out
    targets with F(y) <= p, an isotonic regression on p. R corrects errors in the form
    of the distribution that all rows share: spread, bias relative to the spread, skew.
    Quantiles are those of F at `R^-1(p)`, and the density is `p(y) R'(F(y))`.

    The share itself is a step function without a density. R interpolates it at
    `m = n^(1/3)` knots for n rows, at most 16, at the levels 0.5/m, 1.5/m, .... R is
    linear between the knots and beyond them on normal scores, that is, if both axes
    are normal quantiles. A straight line on these axes corrects a normal prediction
    with a wrong mean or spread, tails included. Beyond the outermost knots the line is
    parallel to the line between these two. For a calibrated model, recalibration costs
    about `m / (2 n)` nats per row.

    Mean and variance are integrals over the quantiles, by Gauss-Legendre quadrature
    between the knots. Their relative error is 2e-4 for normal and log-normal densities;
    the integrals ignore heavier tails beyond the quantiles of 1e-9. Epistemic and
    aleatoric variance keep their shares of the variance.

    Example:

    >>> import keras, tfbbb
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> model = tfbbb.BayesianModel(inputs, outputs)
    >>> lower = model.predictive([[1.0, 2.0]]).quantile(0.05)
    >>> # A tenth of the targets is found where a twentieth should be, on either side.
    >>> model.recalibration = tfbbb.recalibration.IsotonicPIT([0.05, 0.95], [0.1, 0.9])
    >>> prediction = model.predictive([[1.0, 2.0]])
    >>> bool(abs(prediction.quantile(0.1) - lower) < 1e-6)
    True

    Args:
        pit: Values p of F at the knots, at least two, increasing and strictly between 0
            and 1. Empty for the identity.
        levels: R(p) at the knots, with the same conditions.

    Raises:
        ValueError: The knots do not increase, or are not strictly between 0 and 1.
    """

    least_rows = 50

    def __init__(self, pit: Sequence[float] = (), levels: Sequence[float] = ()):
        self.pit, self.levels = tuple(map(float, pit)), tuple(map(float, levels))
        increase = all(
            np.all(np.diff([0.0, *knots, 1.0]) > 0.0)
            for knots in (self.pit, self.levels)
        )
        if not increase or len(pit) != len(levels) or len(pit) == 1:
            raise ValueError(
                "`pit` and `levels` must have the same length, at least two, and be "
                "increasing numbers strictly between 0 and 1. "
                f"Received: pit={list(pit)}, levels={list(levels)}"
            )

    @functools.cached_property
    def _map(self) -> _PiecewiseLinear:
        """The map of normal scores."""
        return _PiecewiseLinear(*map(ops.ndtri, map(np.array, (self.pit, self.levels))))

    def get_config(self) -> Config:
        return {"pit": list(self.pit), "levels": list(self.levels)}

    def check(self, likelihood: Likelihood) -> None:
        steps = likelihood.discrete or likelihood.masses
        if likelihood.task != "regression" or steps:
            raise ValueError(
                "`'isotonic_pit'` needs a likelihood with a density alone; use "
                "`'temperature'` for classes and `'conformal_intervals'` for counts. "
                f"Received: likelihood={type(likelihood).__name__}"
            )
        num_targets = getattr(likelihood, "num_targets", 1)
        if num_targets > 1:
            raise ValueError(
                "`'isotonic_pit'` needs one target, because a joint distribution "
                "function has no quantiles; use `'variance_scaling'`, or a model for "
                "each target. "
                f"Received: {num_targets} targets"
            )

    def fitted(
        self,
        likelihood: Likelihood,
        prediction: Predictive,
        targets: np.ndarray,
        weights: np.ndarray | None = None,
    ) -> IsotonicPIT:
        found = prediction.cdf(targets).ravel()
        if weights is None:
            weights = np.ones(len(targets))
        of_each = np.repeat(weights, len(found) // len(weights))
        number = min(_MAX_KNOTS, round(effective_rows(of_each) ** (1.0 / 3.0)))
        levels = (np.arange(number) + 0.5) / number
        scores = np.clip(ops.ndtri(found), -_FARTHEST, _FARTHEST)
        order = np.argsort(scores)
        # The share of the weight below the middle of each row.
        shares = (np.cumsum(of_each[order]) - 0.5 * of_each[order]) / of_each.sum()
        places = np.interp(levels, shares, scores[order])
        # Rows with the same F(y) share one knot, at the mean of their levels.
        apart = np.flatnonzero(np.diff(places) >= _SAME_PLACE) + 1
        places, levels = (
            np.array([part.mean() for part in np.split(x, apart)])
            for x in (places, levels)
        )
        outermost = np.array([-_NEEDED, _NEEDED])
        if len(places) > 1:
            through = _PiecewiseLinear(places, ops.ndtri(levels))
            outermost = through.inverse(outermost)
        if len(places) < 2 or np.abs(outermost).max() > _FARTHEST:
            raise ValueError(
                "The targets lie so far out in the tails of the predictive "
                "distributions that F(y) cannot resolve them; use "
                "`method='variance_scaling'`, or check that the targets belong to the "
                f"rows. Received: F(y) from {found.min():.2g} to {found.max():.2g}"
            )
        return IsotonicPIT(_probability(places).tolist(), levels.tolist())

    def summary(self, summary: Summary, quantiles: Quantiles) -> Summary:
        if not self.pit:
            return summary
        nodes, weights = self._quadrature()
        values = quantiles(_probability(nodes))
        weights = ops.reshape(
            ops.cast(weights, "float64"), [-1, *[1] * (len(values.shape) - 2)]
        )
        mean = ops.reduce_sum(weights * values, axis=1)
        deviations = values - mean[:, ops.newaxis]
        variance = ops.reduce_sum(weights * ops.square(deviations), axis=1)
        ratio = variance / summary["variance"]
        found = {
            name: ratio * values if name in VARIANCES else values
            for name, values in summary.items()
        }
        error = ops.sqrt(ratio) * summary["mean_standard_error"]
        return {**found, "mean": mean, "mean_standard_error": error}

    def quantiles(self, mixture: Mixture, levels: ArrayLike) -> Tensor:
        scores = ops.ndtri(np.asarray(levels, np.float64))
        return mixture.quantiles(_probability(self._raw_score(scores)))

    def cdf(self, mixture: Mixture, values: ArrayLike) -> Tensor:
        return _probability(self._map(_score(mixture.cdf(values))))

    def change_of_variables(
        self, mixture: Mixture, targets: ArrayLike
    ) -> tuple[ArrayLike, Tensor]:
        """Returns the targets and `log R'(F(y))`, [rows, ...]."""
        score = _score(mixture.cdf(targets))
        mapped, slope = self._map(score), self._map.slope(score)
        change = 0.5 * (np.square(score) - np.square(mapped)) + np.log(slope)
        return targets, change.sum(axis=-1)

    def sample(self, mixture: Mixture, components: Tensor, noise: Tensor) -> Tensor:
        # By quantiles: R acts on the mixture, not on the draws of a component.
        scores = np.asarray(noise[..., :1], np.float64)
        return mixture.quantiles(_probability(self._raw_score(scores)))

    def _raw_score(self, score: ArrayLike) -> np.ndarray:
        """Returns the normal quantile of `R^-1(p)` from the normal quantile of p."""
        return np.clip(self._map.inverse(score), -_FARTHEST, _FARTHEST)

    def _quadrature(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns nodes and weights of averages under a standard normal, [Q] each."""
        limit = max(_QUADRATURE_LIMIT, 1.0 + np.abs(self._map.values).max())
        knots = [-limit, *self._map.values, limit]
        parts = []
        for low, high in itertools.pairwise(knots):
            outer = low == knots[0] or high == knots[-1]
            x, w = np.polynomial.legendre.leggauss(
                _OUTER_NODES if outer else _INNER_NODES
            )
            half = 0.5 * (high - low)
            parts.append((low + half * (x + 1.0), half * w))
        nodes, weights = (np.concatenate(x) for x in zip(*parts, strict=True))
        weights = weights * np.exp(-0.5 * np.square(nodes))
        return nodes, weights / weights.sum()


def _score(below: ArrayLike) -> np.ndarray:
    """Returns normal quantiles, [...], clipped to `_FARTHEST`."""
    return np.clip(ops.ndtri(below), -_FARTHEST, _FARTHEST)


def _probability(score: ArrayLike) -> np.ndarray:
    return 0.5 * ops.erfc(-np.asarray(score) * math.sqrt(0.5))


class _PiecewiseLinear:
    """An increasing function: linear between knots, and parallel to their ends beyond.

    Without knots it is the identity.
    """

    def __init__(self, places: np.ndarray, values: np.ndarray):
        if not len(places):
            places = values = np.array([0.0, 1.0])
        beyond = np.array([-_BEYOND, _BEYOND])
        slope = (values[-1] - values[0]) / (places[-1] - places[0])
        self.values = values
        self._x = np.insert(places + 0.0, [0, len(places)], places[[0, -1]] + beyond)
        ends = values[[0, -1]] + slope * beyond
        self._y = np.insert(values + 0.0, [0, len(values)], ends)

    def __call__(self, x: ArrayLike) -> np.ndarray:
        return np.asarray(np.interp(x, self._x, self._y))

    def inverse(self, y: ArrayLike) -> np.ndarray:
        return np.asarray(np.interp(y, self._y, self._x))

    def slope(self, x: ArrayLike) -> np.ndarray:
        slopes = np.diff(self._y) / np.diff(self._x)
        return slopes[np.searchsorted(self._x[1:-1], x)]
