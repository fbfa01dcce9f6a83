"""One of several targets, as a likelihood of this target alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfbbb.base.types import ArrayLike, Tensor
from tfbbb.bayes.likelihoods import Likelihood

# A density below it is taken for it: its logarithm stays finite.
_LEAST_DENSITY = 1e-300


class Marginal:
    """The marginal distribution of one target, by arrays of the joint likelihood.

    It has what answers ask of a likelihood, [..., 1] where the joint one has [..., k].
    """

    num_targets = 1

    def __init__(self, joint: Likelihood, target: int):
        self.joint, self._target = joint, slice(target, target + 1)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.joint, name)

    def frozen(self) -> Marginal:
        return self

    def check_targets(
        self, targets: ArrayLike, counted: np.ndarray | None = None
    ) -> np.ndarray:
        values = np.asarray(targets, np.float64)
        return values if values.shape[-1:] == (1,) else values[..., np.newaxis]

    def mean(self, outputs: Tensor) -> Tensor:
        return self.joint.mean(outputs)[..., self._target]

    def variance(self, outputs: Tensor) -> Tensor:
        return self.joint.variance(outputs)[..., self._target]

    def location_variance(self, outputs: Tensor) -> Tensor:
        return self.joint.location_variance(outputs)[..., self._target]

    def cdf(self, values: ArrayLike, outputs: Tensor) -> Tensor:
        return self.joint.cdf(values, outputs)[..., self._target]

    def prob(self, values: ArrayLike, outputs: Tensor) -> Tensor:
        return self.joint.prob(values, outputs)[..., self._target]

    def log_prob(self, targets: ArrayLike, outputs: Tensor) -> Tensor:
        density = self.prob(targets, outputs)[..., 0]
        return np.log(np.maximum(density, _LEAST_DENSITY))

    def quantile(self, levels: ArrayLike, outputs: Tensor) -> Tensor:
        return self.joint.quantile(levels, outputs)[..., self._target]

    def sample(self, outputs: Tensor, noise: Tensor) -> Tensor:
        return self.joint.sample(outputs, noise)[..., self._target]
