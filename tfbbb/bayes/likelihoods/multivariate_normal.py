"""The likelihood of correlated Gaussian targets."""

from __future__ import annotations

from typing import Any

from tfbbb.base import array_ops as ops
from tfbbb.base.types import ArrayLike, Tensor
from tfbbb.bayes.likelihoods.likelihood import register
from tfbbb.bayes.likelihoods.normal import NormalNoise
from tfbbb.bayes.likelihoods.regression import Heteroscedastic, Standardize
from tfbbb.bayes.likelihoods.standard_normal import standard_normal_log_prob
from tfbbb.bayes.posteriors.full_covariance_normal import (
    cholesky_factor,
    number_of_correlations,
    solve,
)


@register(
    "multivariate_normal",
    "Numbers with correlated normal noise; the same as `normal` for one target.",
)
class MultivariateNormal(NormalNoise):
    """k targets with correlated noise: `p(y | f) = N(y; loc, L L^T)`.

        loc = shift + scale * f,    L = diag(scale * noise) (I + C)

    with C strictly lower triangular, and shift and scale of the targets as for
    `tfbbb.likelihoods.Normal`. `noise` and C are learned and the same for all rows, or
    outputs of the network (`heteroscedastic=True`): k means, then k raw noises, then
    the k (k - 1) / 2 entries of C, together `k + k (k + 1) / 2`. Initially the noise
    has the variances of the targets, and no correlation.

    `log_prob` and `sample` describe all targets together, other methods the marginals.

    Example:

    >>> import tfbbb
    >>> likelihood = tfbbb.likelihoods.MultivariateNormal(heteroscedastic=True)
    >>> likelihood.num_outputs(2)
    5
    >>> likelihood.build((None, 5))
    >>> likelihood.covariance([[0.0, 0.0, 0.0, 0.0, 0.5]]).numpy().round(2).tolist()
    [[[1.0, 0.5], [0.5, 1.25]]]

    Args:
        heteroscedastic: Whether the network gives the covariance of each row.
    """

    integrates_location = True

    def __init__(
        self,
        heteroscedastic: Heteroscedastic = False,
        standardize: Standardize = True,
        **kwargs: Any,
    ):
        super().__init__(heteroscedastic, standardize=standardize, **kwargs)

    def _noise_sizes(self, num_targets: int) -> dict[str, int]:
        correlations = number_of_correlations(num_targets)
        sizes = super()._noise_sizes(num_targets)
        return {**sizes, "correlations": correlations} if correlations else sizes

    def _needed_outputs(self) -> str:
        if not self.heteroscedastic:
            return super()._needed_outputs()
        return (
            "k + k (k + 1) / 2 outputs for k targets (location, noise, correlations). "
            "End the network with a layer of 2, 5, 9, 14, ..."
        )

    def _factor(self, raw: dict[str, Tensor]) -> Tensor:
        """Returns the Cholesky factor of the noise's covariance, [..., k, k]."""
        noise = self._noise(raw["noise"])
        scale = self._value(self.target_scale, noise) * noise
        if "correlations" not in raw:
            return ops.diag(scale)
        return cholesky_factor(ops.log(scale), raw["correlations"])

    def _target_factor(self, raw: dict[str, Tensor]) -> Tensor:
        factor = self._factor(raw)
        if "location_variance" not in raw:
            return factor
        variance = ops.diag(self._raw_location_variance(raw))
        return ops.cholesky(_squared(factor) + variance)

    def _noise_parameters(self, raw: dict[str, Tensor]) -> tuple[Tensor, ...]:
        """Returns means and standard deviations of the targets, one by one."""
        location = self._located(raw["location"])
        variance = ops.reduce_sum(ops.square(self._factor(raw)), axis=-1)
        return location, ops.broadcast_to(ops.sqrt(variance), ops.shape(location))

    def covariance(self, outputs: Tensor) -> Tensor:
        """Returns the covariance of the noise in raw units, [..., k, k]."""
        return _squared(self.parameters(outputs)["scale_tril"])

    def parameters(self, outputs: Tensor) -> dict[str, Tensor]:
        raw = self._raw(outputs)
        location = self._located(raw["location"])
        shape = ops.concat([ops.shape(location), [self.num_targets]], axis=0)
        return {
            "loc": location,
            "scale_tril": ops.broadcast_to(self._factor(raw), shape),
        }

    def log_prob(self, targets: ArrayLike, outputs: Tensor) -> Tensor:
        raw = self._raw(outputs)
        location, factor = (self._located(raw["location"]), self._target_factor(raw))
        residuals = ops.cast(targets, location.dtype) - location
        densities = standard_normal_log_prob(solve(factor, residuals))
        return ops.reduce_sum(densities - _log_diagonal(factor), axis=-1)

    def sample(self, outputs: Tensor, noise: Tensor) -> Tensor:
        raw = self._raw(outputs)
        location, factor = (self._located(raw["location"]), self._target_factor(raw))
        return location + ops.matvec(factor, ops.cast(noise, location.dtype))


def _squared(factor: Tensor) -> Tensor:
    return ops.matmul(factor, factor, transpose_b=True)


def _log_diagonal(factor: Tensor) -> Tensor:
    return ops.log(ops.diag_part(factor))
