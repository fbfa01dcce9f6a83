"""The Gaussian likelihood, and normal noise."""

from __future__ import annotations

import math
from typing import Any

from tfbbb.base import array_ops as ops
from tfbbb.base.lazy import keras
from tfbbb.base.types import ArrayLike, Tensor
from tfbbb.bayes.likelihoods.likelihood import register
from tfbbb.bayes.likelihoods.location_scale import (
    LocationScale,
    NoiseScale,
    Resolution,
)
from tfbbb.bayes.likelihoods.regression import Heteroscedastic, Standardize
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

    If the noise of each row is known, such as the standard error of a measurement,
    `known_scale=True` takes it from the last k outputs, in the units of the targets:
    append an input to the means.

    >>> import keras
    >>> x, error = keras.Input((3,)), keras.Input((1,))
    >>> mean = tfbbb.layers.DenseVariational(1)(x)
    >>> outputs = keras.layers.Concatenate(dtype="float32")([mean, error])
    >>> likelihood = tfbbb.likelihoods.Normal(known_scale=True)
    >>> model = tfbbb.BayesianModel([x, error], outputs, likelihood=likelihood)

    Args:
        heteroscedastic: Whether the network gives the noise of each row.
        scale: The scale of the noise in the units of the targets, positive; None to
            learn it.
        standardize: Whether the network works in standard units.
        resolution: The step between possible targets, positive; None if a target may be
            any number: see `LocationScale`.
        known_scale: Whether the last outputs are the noise of the row, positive.
    """

    integrates_location = True
    # An output of 0 gives the noise log 2; saved networks depend on this.
    _noise_offset = 0.0

    def __init__(
        self,
        heteroscedastic: Heteroscedastic = False,
        scale: NoiseScale = None,
        standardize: Standardize = True,
        resolution: Resolution = None,
        known_scale: bool = False,
        **kwargs: Any,
    ):
        super().__init__(heteroscedastic, scale, standardize, resolution, **kwargs)
        if known_scale and (heteroscedastic or scale is not None):
            raise ValueError(
                "The noise is either known for each row (`known_scale=True`), the same "
                "for all rows (`scale=`) or an output of the network "
                "(`heteroscedastic=True`); ask for one of them. Received: "
                f"known_scale=True, scale={scale}, heteroscedastic={heteroscedastic}"
            )
        self.known_scale = known_scale

    def _noise_sizes(self, num_targets: int) -> dict[str, int]:
        return {} if self.known_scale else super()._noise_sizes(num_targets)

    def _output_sizes(self, num_targets: int) -> dict[str, int]:
        sizes = super()._output_sizes(num_targets)
        return {**sizes, "scale": num_targets} if self.known_scale else sizes

    def _noise_parameters(self, raw: dict[str, Tensor]) -> tuple[Tensor, ...]:
        if self.known_scale:
            scale = raw["scale"]
            # A prediction that is not finite is refused with its row.
            missing = ops.constant(float("nan"), scale.dtype)
            scale = ops.where(scale > 0.0, scale, missing)
            return self._located(raw["location"]), scale
        return super()._noise_parameters(raw)

    @property
    def has_expected_log_prob(self) -> bool:  # type: ignore[override]
        """With one noise for all rows: an output of the network would vary too."""
        return not (self.heteroscedastic or self.known_scale)

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
