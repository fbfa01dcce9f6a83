"""Recalibration of classes by linear functions of their logits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tfbbb.base import array_ops as ops
from tfbbb.base.types import Config, Tensor
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.bayes.likelihoods.classification import Classification
from tfbbb.prediction.draw_weights import average_over_draws, log_average_over_draws
from tfbbb.prediction.recalibration.factors import draw_rows
from tfbbb.prediction.recalibration.recalibration import Recalibration, register
from tfbbb.prediction.result import Predictive

# Standard deviations of the offsets, and of the logarithms of slopes about their mean.
_OFFSETS, _SLOPES = 1.0, 0.5
# Of log slopes and offsets: no table has needed more.
_MOST = 5.0
# Numbers in memory, rows times draws times logits, but for a fit of so few rows.
_MOST_NUMBERS, _FEWEST = 200_000, 500


@register("vector_scaling")
class VectorScaling(Recalibration):
    """Scales and shifts the logit of each class under every draw (Guo et al. 2017).

        p(y = c | x, data) = E_w[softmax(a * f(x, w) + b)_c]

    with a slope a_c and an offset b_c for each class, or one of each for the logit of
    `tfbbb.likelihoods.Bernoulli`. They minimise the negative log likelihood of the
    mixture on the n held-out rows plus

        (sum_c b_c^2 + 4 sum_c (log a_c - mean(log a))^2) / (2 n)

    the smoothing by normal priors: few rows give hardly more than one temperature.

    Example:

    >>> import keras, tfbbb
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(3)(inputs)
    >>> model = tfbbb.BayesianModel(inputs, outputs, likelihood="categorical")
    >>> before = model.predictive([[1.0, 2.0]]).probabilities
    >>> model.recalibration = tfbbb.recalibration.VectorScaling(1.0, [0.0, 0.0, 1.0])
    >>> bool(model.predictive([[1.0, 2.0]]).probabilities[0, 2] > before[0, 2])
    True

    Args:
        slopes: The slope of each logit, or one number for all; positive.
        offsets: The offset of each logit, or one number for all.

    Raises:
        ValueError: A slope is not positive, or a number not finite.
    """

    least_rows = 20
    acts_on_outputs = True
    _shares_slope = False

    def __init__(
        self,
        slopes: float | Sequence[float] = 1.0,
        offsets: float | Sequence[float] = 0.0,
    ):
        self.slopes, self.offsets = (
            tuple(map(float, np.ravel(values))) for values in (slopes, offsets)
        )
        every = np.array([*self.slopes, *self.offsets])
        if not (np.isfinite(every).all() and min(self.slopes) > 0.0):
            raise ValueError(
                "`slopes` must be positive numbers, and `offsets` finite numbers. "
                f"Received: slopes={slopes}, offsets={offsets}"
            )

    def get_config(self) -> Config:
        return {"slopes": list(self.slopes), "offsets": list(self.offsets)}

    def check(self, likelihood: Likelihood) -> None:
        if not isinstance(likelihood, Classification):
            raise ValueError(
                "Only classes have logits to scale one by one. "
                f"Received: likelihood={type(likelihood).__name__}"
            )

    def outputs(self, likelihood: Likelihood, outputs: Tensor) -> Tensor:
        outputs = likelihood.as_array(outputs)
        slopes, offsets = (
            ops.cast(values, outputs.dtype) for values in (self.slopes, self.offsets)
        )
        return slopes * outputs + offsets

    def wider(self, factor: float) -> VectorScaling:
        slopes, offsets = (
            [x / factor for x in values] for values in (self.slopes, self.offsets)
        )
        return type(self)(slopes, offsets)

    def fitted(
        self,
        likelihood: Likelihood,
        prediction: Predictive,
        targets: np.ndarray,
        weights: np.ndarray | None = None,
    ) -> VectorScaling:
        from scipy.optimize import minimize

        likelihood = likelihood.frozen()
        assert isinstance(likelihood, Classification)
        prediction, targets, weights = draw_rows(prediction, targets, weights)[-1]
        drawn = prediction.of_outputs(lambda outputs: np.asarray(outputs, np.float64))
        most = max(_FEWEST, _MOST_NUMBERS * len(drawn) // drawn.size)
        if len(drawn) > most:
            some = np.linspace(0, len(drawn) - 1, most).astype(int)
            drawn, targets, weights = drawn[some], targets[some], weights[some]
        width = drawn.shape[-1]
        of_draws = np.eye(drawn.shape[1])[np.newaxis]
        of_draws = average_over_draws(likelihood, of_draws, axis=1)[0]
        of_draws = of_draws.reshape(-1, *[1] * (targets.ndim - 1))
        # Classes of all draws, and the weight of each place of a row.
        classes, counted = targets[:, np.newaxis], targets != likelihood.ignore_class
        of_places = weights.reshape(-1, *[1] * (targets.ndim - 1)) * counted
        of_places = of_places * len(targets) / of_places.size
        total = float(weights.sum())
        number = 1 if self._shares_slope else width

        def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
            log_slopes, offsets = np.split(parameters, [number])
            scaled = np.exp(log_slopes) * drawn
            outputs = scaled + offsets
            log_probs = likelihood.log_prob(classes, outputs)
            mixture = log_average_over_draws(likelihood, log_probs)
            # How much of the likelihood of a row is that of each draw.
            shares = np.exp(log_probs - mixture[:, np.newaxis]) * of_draws
            probabilities = likelihood.probabilities(outputs)
            picked = classes[..., np.newaxis] == np.arange(probabilities.shape[-1])
            pulls = (picked - probabilities)[..., -width:] * (
                shares * of_places[:, np.newaxis]
            )[..., np.newaxis]
            deviations = log_slopes - log_slopes.mean()
            axes = tuple(range(pulls.ndim - 1))
            of_slopes = (pulls * scaled).sum(axis=axes)
            of_slopes = of_slopes.sum(keepdims=True) if number == 1 else of_slopes
            penalty = np.sum(np.square(offsets)) / _OFFSETS**2
            penalty += np.sum(np.square(deviations)) / _SLOPES**2
            value = 0.5 * penalty - np.sum(of_places * mixture)
            gradient = [
                deviations / _SLOPES**2 - of_slopes,
                offsets / _OFFSETS**2 - pulls.sum(axis=axes),
            ]
            return value / total, np.concatenate(gradient) / total

        found = minimize(
            loss,
            np.zeros(number + width),
            jac=True,
            method="L-BFGS-B",
            bounds=[(-_MOST, _MOST)] * (number + width),
        )
        log_slopes, offsets = np.split(found.x, [number])
        return type(self)(np.exp(log_slopes).tolist(), offsets.tolist())


@register("platt")
class Platt(VectorScaling):
    """Scales all logits by one slope, and shifts each (Platt 1999).

        p(y = c | x, data) = E_w[softmax(a f(x, w) + b)_c]

    Of two classes these are slope and offset of the logit. They are fitted as those of
    `VectorScaling`.

    Example:

    >>> import tfbbb
    >>> tfbbb.recalibration.Platt(0.5, [0.0, 0.1])
    Platt(slopes=[0.5], offsets=[0.0, 0.1])

    Args:
        slopes: The slope, positive.
        offsets: The offset of each logit, or one number for all.
    """

    _shares_slope = True
