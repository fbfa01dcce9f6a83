"""The Gaussian likelihood, and normal noise."""

from __future__ import annotations

import math

from tfbbb.base import array_ops as ops
from tfbbb.base.lazy import keras
from tfbbb.base.types import ArrayLike, Tensor
from tfbbb.bayes.likelihoods.likelihood import register
from tfbbb.bayes.likelihoods.location_scale import LocationScale
from tfbbb.bayes.likelihoods.standard_normal import (
    standard_normal_cdf,
    standard_normal_log_prob,
)


class NormalNoise(LocationScale):
    """`y = loc + scale * z` for each target, with standard normal z.

    The sum of a normal location and normal noise is normal: if `integrates_location` is
    True, `loc` may have a variance, which adds to `scale^2`.
    """

    def _log_density(self, z: Tensor, *shape: Tensor) -> Tensor:
        return standard_normal_log_prob(z)

    def _distribution(self, z: Tensor, *shape: Tensor) -> Tensor:
        return standard_normal_cdf(z)

    def _log_survival(self, z: Tensor) -> Tensor:
        return ops.logerfc(z * math.sqrt(0.5)) - math.log(2.0)

    def _inverse(self, levels: Tensor, *shape: Tensor) -> Tensor:
        return ops.ndtri(levels)

    def _from_standard_normal(self, noise: Tensor, *shape: Tensor) -> Tensor:
        return noise

    def _standard_variance(self, *shape: Tensor) -> Tensor:
        return 1.0

    def _target_parameters(self, raw: dict[str, Tensor]) -> tuple[Tensor, ...]:
        location, scale = self._noise_parameters(raw)
        if "location_variance" in raw:
            variance = ops.square(scale) + self._raw_location_variance(raw)
            scale = ops.sqrt(variance)
        return location, scale


@register("normal", "A number with normal noise.")
class Normal(NormalNoise):
    """Normal targets: `p(y | f) = N(y; shift + scale * f, (scale * noise)^2)`.

    `shift` and `scale` are mean and standard deviation of the training targets, fixed
    at the first `fit` of a `tfbbb.BayesianModel`, so that the network works in standard
    units and the user in the units of the table. They are 0 and 1 until then. `noise`
    is learned, one number per target (by maximum likelihood); or given in the units of
    the targets, `Normal(scale=2.0)`; or with `heteroscedastic=True` the network gives
    2k outputs, the k means and k numbers whose softplus is the noise.

    Example:

    >>> import tfbbb
    >>> likelihood = tfbbb.likelihoods.Normal(heteroscedastic=True)
    >>> likelihood.num_outputs(1)
    2

    With `standardize=False` the network gives the mean in the units of the targets:
    `p(y | f) = N(y; f, (scale * noise)^2)`. This suits a network that was trained on
    raw targets, and a network whose prior is the posterior of such a network. A learned
    noise then starts at the residuals of the first training rows, at most at `scale`.
    """

    integrates_location = True
    # An output of 0 gives the noise log 2; saved networks depend on this.
    _noise_offset = 0.0

    @property
    def has_expected_log_prob(self) -> bool:  # type: ignore[override]
        """With one noise for all rows: an output of the network would vary too."""
        return not self.heteroscedastic

    def expected_log_prob(
        self, targets: ArrayLike, outputs: Tensor, variance: Tensor
    ) -> Tensor:
        """Returns E[log p(y | f)] over normal locations f, exactly, [...].

        `log N(y; E[f], scale^2) - Var[f] / (2 scale^2)`, summed over the targets.
        """
        _, scale = self._noise_parameters(self._raw(outputs))
        of_location = self._raw_location_variance(
            {"location_variance": ops.cast(variance, scale.dtype)}
        )
        spread = ops.reduce_sum(of_location / ops.square(scale), axis=-1)
        return self.log_prob(targets, outputs) - 0.5 * spread

    @property
    def raw_noise(self) -> keras.Variable:
        """The learned parameter, [k]: its softplus is the noise in standard units."""
        return self._learned["noise"]
