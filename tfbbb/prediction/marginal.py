"""One of several targets, as a likelihood of this target alone."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from tfbbb.base.types import ArrayLike, Tensor
from tfbbb.bayes.likelihoods import Likelihood

# A density below it is taken for it: its logarithm stays finite.
_LEAST_DENSITY = 1e-300
_BY_TARGET = (
    "mean",
    "variance",
    "location_variance",
    "cdf",
    "prob",
    "quantile",
    "sample",
)


def marginal(joint: Likelihood, target: int) -> Likelihood:
    """Returns what answers ask of the likelihood of one target alone, by arrays."""
    found: Any = _Marginal(joint, target)
    return cast("Likelihood", found)


class _Marginal:
    """Methods return [..., 1] where those of the joint likelihood return [..., k]."""

    num_targets = 1

    def __init__(self, joint: Likelihood, target: int):
        self.joint, self._target = joint, slice(target, target + 1)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.joint, name)
        if name in _BY_TARGET:
            return lambda *arguments: found(*arguments)[..., self._target]
        return found

    def frozen(self) -> _Marginal:
        return self

    def check_targets(
        self, targets: ArrayLike, counted: np.ndarray | None = None
    ) -> np.ndarray:
        values = np.asarray(targets, np.float64)
        return values if values.shape[-1:] == (1,) else values[..., np.newaxis]

    def log_prob(self, targets: ArrayLike, outputs: Tensor) -> Tensor:
        density = self.prob(targets, outputs)[..., 0]
        return np.log(np.maximum(density, _LEAST_DENSITY))
