"""The likelihood of grades: few whole numbers in their order."""

from __future__ import annotations

import math
from typing import Annotated, Any

from pydantic import Field

from tfbbb.base import array_ops as ops
from tfbbb.base.lazy import np
from tfbbb.base.types import ArrayLike, Tensor
from tfbbb.bayes.families.arguments import Integer
from tfbbb.bayes.families.support import Support
from tfbbb.bayes.likelihoods.likelihood import register
from tfbbb.bayes.likelihoods.regression import Heteroscedastic, Regression, positive

# More have a distribution that is hardly told from a density.
_MOST_GRADES = 50
_SMALLEST_GAP = 1e-7
Low = Annotated[Integer, Field(ge=0, le=1_000_000, description="Least grade.")]
High = Annotated[Integer, Field(ge=1, le=1_000_000, description="Greatest grade.")]


@register("grades", "A whole number between two, such as a rating of 1 to 5.")
class Grades(Regression):
    """Few whole numbers in their order, by the cumulative logit model (McCullagh 1980).

        P(y <= c | f) = sigmoid(cutpoints[c] - loc),  c = low, ..., high - 1

    The grade says between which cutpoints a logistic variable around `loc` lies. Means
    and quantiles are numbers, and `prob` has the probability of each grade. `loc` is an
    output of the network. The cutpoints are learned, or outputs of the network after
    the k locations (`heteroscedastic=True`): the first is free, and each of the others
    exceeds the one before by a softplus. They start where the grades are as frequent as
    in the training targets for `loc = 0`.

    Example:

    >>> import tfbbb
    >>> likelihood = tfbbb.likelihoods.Grades(1, 4)
    >>> likelihood.build((None, 1))
    >>> likelihood.prob([[1.0], [4.0]], [[0.0]]).numpy().round(3).tolist()
    [[0.25], [0.25]]
    >>> likelihood.mean([[0.0]]).numpy().round(3).tolist()
    [[2.5]]

    Args:
        low: The least grade, zero or more.
        high: The greatest grade, at most 49 more.
        heteroscedastic: Whether the network gives the cutpoints of each row.
    """

    def __init__(
        self,
        low: Low = 1,
        high: High = 5,
        heteroscedastic: Heteroscedastic = False,
        **kwargs: Any,
    ):
        super().__init__(heteroscedastic=heteroscedastic, **kwargs)
        if not 1 <= high - low < _MOST_GRADES or low < 0:
            raise ValueError(
                "Grades are whole numbers from `low`, at least 0, to a larger `high`, "
                f"{_MOST_GRADES} at most. Received: low={low}, high={high}"
            )
        self.low, self.high = low, high
        self.support = self.support_of(low, high)

    @classmethod
    def support_of(cls, low: int = 1, high: int = 5, **options: Any) -> Support:
        return Support(low, high, integer=True)

    def _noise_sizes(self, num_targets: int) -> dict[str, int]:
        return {"cutpoints": (self.high - self.low) * num_targets}

    def build(self, output_shape: tuple[int | None, ...]) -> None:
        super().build(output_shape)
        equal = np.ones((self.high - self.low + 1, self.num_targets))
        shape = (self.high - self.low, self.num_targets)
        self.initial_cutpoints = self._variable("initial_cutpoints", shape, 0.0)
        if self._values is None:
            self.initial_cutpoints.assign(initial_cutpoints(equal))

    def _shift_and_scale(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Sets the initial cutpoints; the network gives locations as they are."""
        grades = np.arange(self.low, self.high + 1)[:, np.newaxis, np.newaxis]
        # Half a row more of each, so that no grade is impossible.
        counts = (values == grades).sum(axis=1) + 0.5
        self.initial_cutpoints.assign(initial_cutpoints(counts))
        return np.zeros(self.num_targets), np.ones(self.num_targets)

    def _log_probabilities(self, outputs: Tensor) -> Tensor:
        """Returns the log probability of each grade, [..., k, C], from low to high."""
        return log_probabilities_between(*self._parts(outputs))

    def _parts(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        """Returns locations [..., k, 1] and cutpoints [..., k, C - 1]."""
        raw = self._raw(outputs)
        location, cutpoints = raw["location"][..., ops.newaxis], raw["cutpoints"]
        shape = [self.high - self.low, self.num_targets]
        cutpoints = ops.reshape(
            cutpoints, ops.concat([ops.shape(cutpoints)[:-1], shape], 0)
        )
        initial = self._value(self.initial_cutpoints, cutpoints)
        return location, cutpoints_of(
            ops.matrix_transpose(initial), ops.matrix_transpose(cutpoints)
        )

    def _grades(self, like: Tensor) -> Tensor:
        return self.low + ops.range(self.high - self.low + 1, dtype=like.dtype)

    def parameters(self, outputs: Tensor) -> dict[str, Tensor]:
        location, cutpoints = self._parts(outputs)
        return {"loc": location[..., 0], "cutpoints": cutpoints + 0.0 * location}

    def mean(self, outputs: Tensor) -> Tensor:
        probabilities = ops.exp(self._log_probabilities(outputs))
        return ops.reduce_sum(probabilities * self._grades(probabilities), axis=-1)

    def variance(self, outputs: Tensor) -> Tensor:
        probabilities = ops.exp(self._log_probabilities(outputs))
        grades = self._grades(probabilities)
        mean = ops.reduce_sum(probabilities * grades, axis=-1, keepdims=True)
        return ops.reduce_sum(probabilities * ops.square(grades - mean), axis=-1)

    def log_densities(self, values: ArrayLike, outputs: Tensor) -> Tensor:
        logs = self._log_probabilities(outputs)
        chosen = ops.cast(values, logs.dtype)[..., ops.newaxis] == self._grades(logs)
        none = ops.constant(-math.inf, logs.dtype)
        return ops.reduce_max(ops.where(chosen, logs, none), axis=-1)

    def cdf(self, values: ArrayLike, outputs: Tensor) -> Tensor:
        below = self._cumulative(outputs)
        values = ops.cast(values, below.dtype)[..., ops.newaxis]
        reached = values >= self._grades(below)
        return ops.reduce_max(ops.where(reached, below, 0.0), axis=-1)

    def _cumulative(self, outputs: Tensor) -> Tensor:
        """Returns P(y <= c) of every grade, [..., k, C], the last of them 1."""
        location, cutpoints = self._parts(outputs)
        below = ops.sigmoid(cutpoints - location)
        return ops.concat([below, ops.ones_like(below[..., :1])], axis=-1)

    def quantile(self, levels: ArrayLike, outputs: Tensor) -> Tensor:
        below = self._cumulative(outputs)
        levels = ops.cast(levels, below.dtype) + ops.zeros_like(below[..., 0])
        under = below[..., :-1] < levels[..., ops.newaxis]
        return self.low + ops.reduce_sum(ops.cast(under, below.dtype), axis=-1)


def initial_cutpoints(counts: np.ndarray) -> np.ndarray:
    """Returns the cutpoints that give classes, [C, ...], these counts at `loc = 0`."""
    below = np.cumsum(counts / counts.sum(axis=0), axis=0)[:-1]
    return np.log(below) - np.log1p(-below)


def cutpoints_of(initial: Tensor, raw: Tensor) -> Tensor:
    """Returns increasing cutpoints, [..., C - 1], which are initial ones for 0."""
    first = initial[..., :1] + raw[..., :1]
    increments = (initial[..., 1:] - initial[..., :-1]) * positive(raw[..., 1:])
    return ops.cumsum(ops.concat([first, increments], axis=-1), axis=-1)


def log_probabilities_between(location: Tensor, cutpoints: Tensor) -> Tensor:
    """Returns log probabilities of a logistic variable between cutpoints, [..., C]."""
    # sigmoid(b) - sigmoid(a) = sigmoid(b) sigmoid(-a) (1 - exp(a - b))
    standardized = cutpoints - location
    gaps = cutpoints[..., 1:] - cutpoints[..., :-1]
    # Single precision may lose the distance of cutpoints far from 0.
    gaps = ops.maximum(gaps, _SMALLEST_GAP)
    end = ops.zeros_like(standardized[..., :1])
    below_upper = ops.concat([ops.log_sigmoid(standardized), end], axis=-1)
    above_lower = ops.concat([end, ops.log_sigmoid(-standardized)], axis=-1)
    between = ops.log(-ops.expm1(-gaps)) + ops.zeros_like(standardized[..., 1:])
    return below_upper + above_lower + ops.concat([end, between, end], axis=-1)
