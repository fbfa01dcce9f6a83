"""Recalibration by one factor, of logits or of distances from the mean."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from tfbbb.base import array_ops as ops
from tfbbb.base.numbers import positive_number
from tfbbb.base.row_weights import effective_rows
from tfbbb.base.types import ArrayLike, Config, Tensor
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.bayes.likelihoods.classification import Classification
from tfbbb.prediction.answers import Quantiles, Summary
from tfbbb.prediction.draw_weights import average_over_draws
from tfbbb.prediction.mixture import Mixture
from tfbbb.prediction.recalibration.conformal import Conformal
from tfbbb.prediction.recalibration.recalibration import (
    IDENTITY,
    VARIANCES,
    Recalibration,
    register,
)
from tfbbb.prediction.result import Predictive

# A density below it is taken for it: its logarithm stays finite.
_LEAST_DENSITY = 1e-300
_LIMIT = 128.0
# Two points per octave: a likelihood does not have two minima this close together.
_GRID = np.linspace(-math.log(_LIMIT), math.log(_LIMIT), 29)
# Points beside the best one of few rows: a factor of 2.8.
_AROUND = 3
# The standard error of a factor of so many rows is 1 %, and 7 %.
_MOST_ROWS, _ROUGH_ROWS = 5000, 100

# From factors, [F], to the loss of each.
Loss = Callable[[np.ndarray], np.ndarray]


@register("temperature")
class Temperature(Recalibration):
    """Divides the logits under every draw by one number (Guo et al. 2017).

        p(y = c | x, data) = E_w[softmax(f(x, w) / T)_c]

    T > 1 makes predictions less confident, T < 1 more confident; the most probable
    class under each draw does not change. The probabilities of the mixture, its
    entropy, mutual information, log probabilities and drawn labels change accordingly.

    T minimises the negative log likelihood of the mixture on the n held-out rows. If
    it falls for ever, as when all of them are predicted right, T minimises it plus
    `(log T)^2 / (2 n)`, the prior log T ~ N(0, 1).

    Example:

    >>> import keras, numpy as np, tfbbb
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(3)(inputs)
    >>> model = tfbbb.BayesianModel(inputs, outputs, likelihood="categorical")
    >>> x = np.random.normal(size=(50, 2))
    >>> before = model.predictive(x).entropy
    >>> model.recalibration = tfbbb.recalibration.Temperature(2.0)
    >>> bool((model.predictive(x).entropy > before).all())
    True

    Args:
        temperature: T, positive.

    Raises:
        ValueError: `temperature` is not positive and finite.
    """

    least_rows = 20
    acts_on_outputs = True

    def __init__(self, temperature: float = 1.0):
        self.temperature = float(positive_number("temperature", temperature))

    def get_config(self) -> Config:
        return {"temperature": self.temperature}

    def check(self, likelihood: Likelihood) -> None:
        if not isinstance(likelihood, Classification):
            raise ValueError(
                "A temperature divides logits, which only classes have: use "
                "`'variance_scaling'`, `'isotonic_pit'` or `'conformal_intervals'` "
                f"for numbers. Received: likelihood={type(likelihood).__name__}"
            )

    def fitted(
        self,
        likelihood: Likelihood,
        prediction: Predictive,
        targets: np.ndarray,
        weights: np.ndarray | None = None,
    ) -> Temperature:
        drawn = draw_rows(prediction, targets, weights)
        losses = [_loss_of_temperature(likelihood, *rows) for rows in drawn]
        num_rows = effective_rows(drawn[-1][-1])
        return Temperature(_best_factor("temperature", losses, num_rows))

    def wider(self, factor: float) -> Temperature:
        return Temperature(factor * self.temperature)

    def outputs(self, likelihood: Likelihood, outputs: Tensor) -> Tensor:
        assert isinstance(likelihood, Classification)
        return likelihood.tempered(outputs, self.temperature)


def _loss_of_temperature(
    likelihood: Likelihood,
    prediction: Predictive,
    targets: np.ndarray,
    weights: np.ndarray,
) -> Loss:
    """Returns from temperatures to the weighted means of minus log p(y)."""
    likelihood = likelihood.frozen()

    def loss(temperature: float) -> float:
        tempered = Temperature(temperature)

        def log_prob(outputs: Tensor, targets: np.ndarray) -> Tensor:
            outputs = tempered.outputs(likelihood, outputs)
            return Mixture(likelihood, outputs).log_prob(targets)

        found = prediction.of_outputs(log_prob, targets)
        return -float(
            np.average(found.reshape(len(found), -1).mean(1), weights=weights)
        )

    return lambda temperatures: np.array(list(map(loss, temperatures)))


@register("variance_scaling")
class VarianceScaling(Recalibration):
    """Scales each target about its predictive mean (Levi et al. 2019).

        y' = mean + factor * (y - mean)

    for the y that the model predicts. The mean and its standard error do not change.
    The variance and both its parts are multiplied by `factor^2`; the distances of
    quantiles, intervals and draws from the mean are multiplied by `factor`. The density
    at y' is the density of y at `mean + (y' - mean) / factor`, divided by the factors
    of all targets.

    Each factor maximises the likelihood of the scaled mixture of its target on the
    held-out rows (for a Gaussian: Laves et al. 2020). With n rows and an approximately
    Gaussian model, the standard error of the factor is `factor / sqrt(2 n)`.

    Example:

    >>> import keras, tfbbb
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> model = tfbbb.BayesianModel(inputs, outputs)
    >>> before = model.predictive([[1.0, 2.0]]).stddev
    >>> model.recalibration = tfbbb.recalibration.VarianceScaling([2.0])
    >>> model.predictive([[1.0, 2.0]]).stddev / before
    array([[2.]])

    Args:
        factors: The factor of each target, [k], or one number for all; positive.

    Raises:
        ValueError: A factor is not positive and finite.
    """

    least_rows = 20

    def __init__(self, factors: float | Sequence[float] = 1.0):
        given = factors if isinstance(factors, list | tuple) else [factors]
        self.factors = tuple(float(positive_number("factors", x)) for x in given)

    def get_config(self) -> Config:
        return {"factors": list(self.factors)}

    def wider(self, factor: float) -> VarianceScaling:
        return VarianceScaling([factor * x for x in self.factors])

    def of_target(self, target: int) -> VarianceScaling:
        several = len(self.factors) > 1
        return VarianceScaling(self.factors[target] if several else self.factors)

    def check(self, likelihood: Likelihood) -> None:
        if not likelihood.unbounded:
            raise ValueError(
                "Scaling about the mean moves bounded targets beyond their bounds, so "
                "it suits real numbers only; use `'temperature'` for classes and "
                "`'isotonic_pit'` or `'conformal_intervals'` for bounded targets. "
                f"Received: likelihood={type(likelihood).__name__}"
            )
        num_targets = getattr(likelihood, "num_targets", 1)
        if len(self.factors) not in (1, num_targets):
            raise ValueError(
                f"The model has {num_targets} targets, and each needs one factor. "
                f"Received: factors={list(self.factors)}"
            )

    def fitted(
        self,
        likelihood: Likelihood,
        prediction: Predictive,
        targets: np.ndarray,
        weights: np.ndarray | None = None,
    ) -> VarianceScaling:
        drawn = draw_rows(prediction, targets, weights)
        losses = [_losses_of_factor(likelihood, *rows) for rows in drawn]

        def of_target(losses: Loss, target: int) -> Loss:
            return lambda factors: losses(factors)[:, target]

        return VarianceScaling(
            [
                _best_factor("factor", [of_target(x, target) for x in losses])
                for target in range(targets.shape[-1])
            ]
        )

    def summary(self, summary: Summary, quantiles: Quantiles) -> Summary:
        squares = np.square(self.factors)
        return {
            name: squares * values if name in VARIANCES else values
            for name, values in summary.items()
        }

    def quantiles(self, mixture: Mixture, levels: ArrayLike) -> Tensor:
        return self._scaled(mixture.quantiles(levels), mixture.mean[:, ops.newaxis])

    def cdf(self, mixture: Mixture, values: ArrayLike) -> Tensor:
        return mixture.cdf(self._unscaled(values, mixture.mean))

    def change_of_variables(
        self, mixture: Mixture, targets: ArrayLike
    ) -> tuple[ArrayLike, Tensor]:
        """Returns the targets before scaling, and minus the log of the factors."""
        values = self._unscaled(targets, mixture.mean)
        log_factors = np.broadcast_to(np.log(self.factors), values.shape[-1:])
        return values, ops.cast(-log_factors.sum(), "float64")

    def sample(self, mixture: Mixture, components: Tensor, noise: Tensor) -> Tensor:
        drawn = ops.cast(mixture.sample(components, noise), "float64")
        return self._scaled(drawn, mixture.mean[:, ops.newaxis])

    def _scaled(self, values: ArrayLike, mean: Tensor) -> Tensor:
        return mean + ops.cast(self.factors, "float64") * (values - mean)

    def _unscaled(self, values: ArrayLike, mean: Tensor) -> Tensor:
        distance = ops.cast(values, "float64") - mean
        return mean + distance / ops.cast(self.factors, "float64")


def _losses_of_factor(
    likelihood: Likelihood,
    prediction: Predictive,
    targets: np.ndarray,
    weights: np.ndarray,
) -> Loss:
    """Returns from factors to the weighted means of minus log p(y'), [F, k]."""
    likelihood = likelihood.frozen()
    mean = prediction.of_outputs(lambda outputs: Mixture(likelihood, outputs).mean)

    def log_densities(outputs: Tensor, values: np.ndarray) -> np.ndarray:
        outputs = np.asarray(outputs, np.float64)[:, np.newaxis]
        of_draws = likelihood.prob(values[:, :, np.newaxis], outputs)
        density = average_over_draws(likelihood, of_draws, axis=2)
        return np.log(np.maximum(density, _LEAST_DENSITY))

    def losses(factors: np.ndarray) -> np.ndarray:
        by_factor = factors.reshape(-1, *[1] * (mean.ndim - 1))
        values = mean[:, np.newaxis]
        values = values + (targets[:, np.newaxis] - values) / by_factor
        found = prediction.of_outputs(log_densities, values) - np.log(by_factor)
        by_row = found.reshape(*found.shape[:2], -1, targets.shape[-1]).mean(axis=2)
        return -np.average(by_row, axis=0, weights=weights)

    return losses


def scaling(likelihood: Likelihood) -> type[Temperature] | type[VarianceScaling] | None:
    """Returns the kind of recalibration by one factor; None if none suits."""
    if isinstance(likelihood, Classification):
        return Temperature
    return VarianceScaling if likelihood.unbounded else None


def scaled(
    recalibration: Recalibration,
    likelihood: Likelihood,
    factor: float,
    factor_of_intervals: float,
) -> Recalibration:
    """Returns a recalibration whose factor is `factor` times as large."""
    kind = scaling(likelihood)
    if kind is None:
        return recalibration
    if isinstance(recalibration, Conformal):
        density = scaled(recalibration.density, likelihood, factor, factor)
        return recalibration.with_density(density, factor_of_intervals / factor)
    if factor == 1.0:
        return recalibration
    return kind(factor) if recalibration == IDENTITY else recalibration.wider(factor)


def _best_factor(
    name: str, losses: Sequence[Loss], num_rows: int | None = None
) -> float:
    """Returns the factor between 1/128 and 128 with the smallest loss, of the last one.

    Points beside the best one of a grid narrow it down, and a polynomial of their
    losses has its minimum there. The grid may be that of a loss of few rows, unless the
    factor is far from the best then.
    """
    from scipy.optimize import minimize_scalar

    for loss in losses:
        best = int(np.argmin(loss(np.exp(_GRID))))
        near = _GRID[max(best - _AROUND, 0) : best + _AROUND + 1]
        if best in (0, len(_GRID) - 1):
            continue
        place = int(np.argmin(losses[-1](np.exp(near))))
        if place in (0, len(near) - 1):
            continue
        points = np.linspace(near[place - 1], near[place + 1], 2 * _AROUND + 1)
        degree, found = len(points) - 1, losses[-1](np.exp(points))
        curve = np.polynomial.Polynomial.fit(points, found, degree)
        least = minimize_scalar(curve, bounds=points[[0, -1]], method="bounded")
        return math.exp(least.x)
    if num_rows is not None:
        weight = 0.5 / num_rows
        return _best_factor(name, [lambda x: loss(x) + weight * np.log(x) ** 2])
    raise ValueError(
        f"No {name} from 1/{_LIMIT:.0f} to {_LIMIT:.0f} fits the rows best: the "
        "targets equal their predictions, or lie far from them. Pass more rows, "
        "and check that the targets belong to the rows. "
        f"Received: a likelihood that still rises at {math.exp(_GRID[best]):g}"
    )


def draw_rows(
    prediction: Predictive, targets: np.ndarray, weights: np.ndarray | None
) -> list[tuple[Predictive, np.ndarray, np.ndarray]]:
    """Draws as many rows as give a factor roughly, and as many as give it."""
    if weights is None:
        weights = np.ones(len(targets))
    drawn: list[tuple[Predictive, np.ndarray, np.ndarray]] = []
    for most in (_MOST_ROWS, _ROUGH_ROWS):
        if len(targets) > most:
            order = np.random.default_rng(0).permutation(len(targets))
            rows = np.sort(order[:most])
            prediction = prediction.take(rows)
            targets, weights = targets[rows], weights[rows]
        drawn.insert(0, (prediction, targets, weights))
    return drawn
