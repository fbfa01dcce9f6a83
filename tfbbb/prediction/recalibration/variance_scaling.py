"""Scaling of the predictive spread of real numbers."""

from collections.abc import Callable, Sequence

import keras
import numpy as np
import tensorflow as tf

from tfbbb.base.numbers import positive_number
from tfbbb.base.types import ArrayLike, Config, Tensor
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.prediction.answers import Quantiles, Summary
from tfbbb.prediction.mixture import Mixture
from tfbbb.prediction.recalibration.best_factor import best_factor, draw_rows
from tfbbb.prediction.recalibration.recalibration import Recalibration
from tfbbb.prediction.result import Predictive

# A density below it is taken for it: its logarithm stays finite.
_LEAST_DENSITY = 1e-300
# Parts of the summary that are variances.
VARIANCES = ("variance", "epistemic", "aleatoric", "between_members")


@keras.saving.register_keras_serializable(package="tfbbb.recalibration")
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
    ) -> "VarianceScaling":
        drawn = draw_rows(prediction, targets, weights)
        loss, rough = (_losses(likelihood, *rows) for rows in drawn)

        def best(target: int) -> float:
            # The factors of similar rows, if this recalibration is fitted to some.
            known = self.factors[target if len(self.factors) > 1 else 0]
            return best_factor(
                "factor",
                lambda x: float(loss(x)[target]),
                None if known == 1.0 else known,
                rough=lambda x: float(rough(x)[target]),
            )

        return VarianceScaling([best(target) for target in range(targets.shape[-1])])

    def summary(self, summary: Summary, quantiles: Quantiles) -> Summary:
        squares = np.square(self.factors)
        return {
            name: squares * values if name in VARIANCES else values
            for name, values in summary.items()
        }

    def quantiles(self, mixture: Mixture, levels: ArrayLike) -> tf.Tensor:
        return self._scaled(mixture.quantiles(levels), mixture.mean[:, tf.newaxis])

    def cdf(self, mixture: Mixture, values: ArrayLike) -> tf.Tensor:
        return mixture.cdf(self._unscaled(values, mixture.mean))

    def change_of_variables(
        self, mixture: Mixture, targets: ArrayLike
    ) -> tuple[ArrayLike, tf.Tensor]:
        """Returns the targets before scaling, and minus the log of the factors."""
        values = self._unscaled(targets, mixture.mean)
        log_factors = np.broadcast_to(np.log(self.factors), values.shape[-1:])
        return values, tf.constant(-log_factors.sum(), tf.float64)

    def sample(self, mixture: Mixture, components: Tensor, noise: Tensor) -> tf.Tensor:
        drawn = tf.cast(mixture.sample(components, noise), tf.float64)
        return self._scaled(drawn, mixture.mean[:, tf.newaxis])

    def _scaled(self, values: ArrayLike, mean: Tensor) -> tf.Tensor:
        return mean + tf.constant(self.factors, tf.float64) * (values - mean)

    def _unscaled(self, values: ArrayLike, mean: Tensor) -> tf.Tensor:
        distance = tf.cast(values, tf.float64) - mean
        return mean + distance / tf.constant(self.factors, tf.float64)


def _losses(
    likelihood: Likelihood,
    prediction: Predictive,
    targets: np.ndarray,
    weights: np.ndarray,
) -> Callable[[float], np.ndarray]:
    """Returns from a factor to the weighted mean of minus log p(y'), by target, [k]."""
    mean = prediction.of_outputs(lambda outputs: Mixture(likelihood, outputs).mean)

    def losses(factor: float) -> np.ndarray:
        values = mean + (targets - mean) / factor

        def log_densities(outputs: tf.Tensor, values: np.ndarray) -> tf.Tensor:
            density = Mixture(likelihood, outputs).prob(values)
            return tf.math.log(tf.maximum(density, _LEAST_DENSITY))

        found = prediction.of_outputs(log_densities, values) - np.log(factor)
        by_row = found.reshape(len(targets), -1, targets.shape[-1]).mean(axis=1)
        return -np.average(by_row, axis=0, weights=weights)

    return losses
