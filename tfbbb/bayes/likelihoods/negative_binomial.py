"""The negative binomial likelihood."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from tfbbb.base.lazy import tf
from tfbbb.base.numbers import positive_number
from tfbbb.base.types import Tensor
from tfbbb.bayes.families.arguments import PositiveNumber
from tfbbb.bayes.likelihoods.counts import Counts
from tfbbb.bayes.likelihoods.likelihood import register
from tfbbb.bayes.likelihoods.regression import LEARNED, Heteroscedastic
from tfbbb.bayes.likelihoods.soft_bounds import soft_limit
from tfbbb.bayes.likelihoods.standardized_targets import Standardize

Concentration = Annotated[
    PositiveNumber | None,
    Field(description="Null to learn it.", json_schema_extra=LEARNED),
]


@register("negative_binomial", "A count whose variance may exceed its mean.")
class NegativeBinomial(Counts):
    """Counts whose variance exceeds their mean, by mean m and concentration r.

        p(y | f) = G(y + r) / (G(r) y!) * (r / (r + m))^r (m / (r + m))^y,
        log m = log(average) + f

    with the variance `m + m^2 / r` (NB2 of Cameron and Trivedi 1986): a Poisson rate
    that is gamma distributed. The limit for r to infinity is `Poisson`. `average` is
    the mean of the training targets, set by the first `fit` of a
    `tfbbb.BayesianModel`, and 1 until then. The concentration is one of

    - learned and the same for all rows (the default), one per target; the network gives
      k outputs. Initially it gives the variance of the training targets, or twice
      their mean if that is more;
    - a given number: `NegativeBinomial(concentration=2.0)`;
    - a second output per target (`heteroscedastic=True`): the network gives 2k outputs,
      first k for the means, then k for the dispersion `1 / r`, which is a softplus of
      them. Outputs of 0 give the initial value of a learned dispersion.

    The training targets bound a learned or predicted dispersion so that the length of
    the tail, m / r, is less than four times the greatest of them. Up to half of that,
    the dispersion is left as it is.

    Example:

    >>> import tfbbb
    >>> likelihood = tfbbb.likelihoods.NegativeBinomial(concentration=4.0)
    >>> likelihood.build((None, 1))
    >>> likelihood.adapt([0, 1, 2, 5])
    >>> likelihood.variance([[0.0]]).numpy().tolist()
    [[3.0]]

    Args:
        heteroscedastic: Whether the network gives the dispersion of each row.
        concentration: The concentration r, positive; None to learn it.
        standardize: Whether the network gives the log of the mean relative to
            `average`; else it gives the log of the mean itself.

    Raises:
        ValueError: `concentration` is not positive and finite, or is given together
            with `heteroscedastic=True`.
    """

    def __init__(
        self,
        heteroscedastic: Heteroscedastic = False,
        concentration: Concentration = None,
        standardize: Standardize = True,
        **kwargs: Any,
    ):
        super().__init__(
            heteroscedastic=heteroscedastic, standardize=standardize, **kwargs
        )
        if concentration is not None:
            positive_number("concentration", concentration)
        self.concentration = concentration
        self._check_noise()

    def _concentration(
        self, raw: dict[str, tf.Tensor], log_mean: tf.Tensor
    ) -> tf.Tensor:
        location = raw["location"]
        if self.concentration is not None:
            concentration = tf.constant(self.concentration, location.dtype)
        else:
            initial = self._initial_dispersion(location)
            limit = self._longest_tail(log_mean)
            concentration = 1.0 / soft_limit(initial * self._noise(raw["noise"]), limit)
        return tf.broadcast_to(concentration, tf.shape(location))

    def _initial_dispersion(self, like: tf.Tensor) -> tf.Tensor:
        """Returns 1 / r at the variance of the training targets, [k]."""
        inverse_mean = tf.exp(-self._value(self.target_shift, like))
        variation = tf.square(self._value(self.target_scale, like))
        return tf.maximum(variation - inverse_mean, inverse_mean)

    def parameters(self, outputs: Tensor) -> dict[str, tf.Tensor]:
        mean, _, concentration = self._distribution(outputs)
        return {"mean": mean, "concentration": concentration}
