"""Likelihoods of numbers of which some values have a probability of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from pydantic import Field

from tfbbb.base import array_ops as ops
from tfbbb.base.lazy import keras, np, tf
from tfbbb.base.strategy import options
from tfbbb.base.types import ArrayLike, Config, Tensor
from tfbbb.bayes.families.support import Support
from tfbbb.bayes.likelihoods.beta import Beta, High, Low
from tfbbb.bayes.likelihoods.inversion import LARGEST_LEVEL, SMALLEST_LEVEL
from tfbbb.bayes.likelihoods.likelihood import Likelihood, register, registry
from tfbbb.bayes.likelihoods.regression import (
    Heteroscedastic,
    Regression,
    Standardize,
)

# In the shares of the training targets, so that no value is impossible.
_ADDED = 0.5

BASES = Literal["gamma", "log_normal", "poisson", "negative_binomial"]
if TYPE_CHECKING:
    Base = BASES | Likelihood | Mapping[str, Any]
else:
    # Jobs give a name.
    Base = Annotated[
        BASES, Field(description="Distribution of the numbers that are not 0.")
    ]


class Inflated(Regression):
    """Numbers with another likelihood, of which some have a probability of their own.

    With the values a_j of these probabilities, and logits l_j that are outputs of the
    network after those of the other likelihood, value by value:

        P_j, ..., P_rest = softmax(l_1, ..., l_m, 0)
        p(y) = sum_j P_j [y = a_j] + P_rest * p_base(y)

    This is a density with respect to lengths and, at each a_j, a probability; of a
    likelihood of counts, all are probabilities. With `standardize`, outputs of 0 give
    the shares of the training targets.
    """

    def __init__(self, base: Likelihood, values: tuple[float, ...], **kwargs: Any):
        super().__init__(
            heteroscedastic=base.heteroscedastic,
            standardize=base.standardize,
            **kwargs,
        )
        self.base = base
        self._inflated = values

    @property
    def masses(self) -> tuple[float, ...]:  # type: ignore[override]
        return () if self.base.discrete else self._inflated

    @property
    def slow_quantiles(self) -> bool:  # type: ignore[override]
        return self.base.slow_quantiles

    def _output_sizes(self, num_targets: int) -> dict[str, int]:
        logits = len(self._inflated) * num_targets
        return {**self.base._output_sizes(num_targets), "logits": logits}

    def build(self, output_shape: tuple[int | None, ...]) -> None:
        Likelihood.build(self, output_shape)
        self.num_targets = self._num_targets(output_shape)
        size = self.base.num_outputs(self.num_targets)
        self.base.members = self.members
        self.base.build((*output_shape[:-1], size))
        shape = (len(self._inflated), self.num_targets)
        self.logit_shift = self._variable("logit_shift", shape, 0.0)

    def check_targets(
        self, targets: ArrayLike, counted: ArrayLike = None
    ) -> np.ndarray:
        values = super().check_targets(targets, counted)
        assert self.base.support is not None
        # Single precision rounds some numbers to one with a probability of its own.
        distances = np.abs(values[..., np.newaxis] - self._inflated)
        nearest = np.take(self._inflated, distances.argmin(axis=-1))
        return np.where(self.base.support.contains(values), values, nearest)

    @property
    def learns(self) -> bool:
        return self.base.learns

    @property
    def learned_variables(self) -> list[keras.Variable]:
        return self.base.learned_variables

    @property
    def adapted(self) -> bool:
        return self.base.adapted

    def adapt_to_columns(self, every: Sequence[np.ndarray], double: bool) -> None:
        (values,) = every
        counts = np.stack([(values == value).sum(axis=0) for value in self._inflated])
        others = [column[~np.isin(column, self._inflated)] for column in values.T]
        if not all(map(len, others)):
            raise ValueError(
                f"A target is {' or '.join(f'{x:g}' for x in self._inflated)} in every "
                "row, so there is nothing to learn beside; leave it out. "
                f"Received: {len(values)} rows"
            )
        if not self.adapted:
            rest = len(values) - counts.sum(axis=0)
            self.logit_shift.assign(np.log((counts + _ADDED) / (rest + _ADDED)))
        # Columns of fewer numbers repeat them.
        most = max(map(len, others))
        filled = [np.resize(column, most) for column in others]
        self.base.adapt_to_columns([np.stack(filled, axis=1)], double)
        if self.discrete:
            # The other likelihood has these counts too, and may have a small mean.
            self.base.adapt_to_columns([values], double)

    def units_of_outputs(self) -> tuple[np.ndarray, np.ndarray]:
        scale, offset = self.base.units_of_outputs()
        shift = np.ravel(self.logit_shift) if self.standardize else 0.0
        zeros = np.zeros(len(self._inflated) * self.num_targets)
        return np.append(scale, zeros + 1.0), np.append(offset, zeros + shift)

    def of_members(self, outputs: Tensor, member: int | Tensor) -> Tensor:
        outputs = tf.convert_to_tensor(outputs)
        size = self.base.num_outputs(self.num_targets)
        of_base = self.base.of_members(outputs[..., :size], member)
        return ops.concat([outputs, of_base[..., size:]], axis=-1)

    def _parts(self, outputs: Tensor) -> tuple[list[Tensor], Tensor, Tensor]:
        """Returns log P_j and log P_rest, [..., k] each, and outputs of the base."""
        outputs = self.at_least_float32(outputs)
        size = self.base.num_outputs(self.num_targets)
        shape = [len(self._inflated), self.num_targets]
        end = size + shape[0] * shape[1]
        logits = outputs[..., size:end]
        logits = ops.reshape(logits, ops.concat([ops.shape(logits)[:-1], shape], 0))
        if self.standardize:
            logits = logits + self._value(self.logit_shift, logits)
        logits = ops.concat([logits, ops.zeros_like(logits[..., :1, :])], axis=-2)
        logs = ops.log_softmax(logits, axis=-2)
        of_base = ops.concat([outputs[..., :size], outputs[..., end:]], axis=-1)
        *of_values, rest = [logs[..., place, :] for place in range(shape[0] + 1)]
        return of_values, rest, of_base

    def parameters(self, outputs: Tensor) -> dict[str, Tensor]:
        of_values, _, of_base = self._parts(outputs)
        named = zip(self._inflated, of_values, strict=True)
        probabilities = {f"probability_of_{x:g}": ops.exp(log) for x, log in named}
        return {**probabilities, **self.base.parameters(of_base)}

    def _means(self, outputs: Tensor) -> tuple[list[tuple[Tensor, Any]], Tensor]:
        """Returns probability and mean of each part, and the mean of all."""
        of_values, rest, of_base = self._parts(outputs)
        parts = [(ops.exp(rest), self.base.mean(of_base))]
        parts += [
            (ops.exp(log), value)
            for log, value in zip(of_values, self._inflated, strict=True)
        ]
        return parts, sum(probability * mean for probability, mean in parts)

    def mean(self, outputs: Tensor) -> Tensor:
        return self._means(outputs)[1]

    def variance(self, outputs: Tensor) -> Tensor:
        parts, centre = self._means(outputs)
        _, rest, of_base = self._parts(outputs)
        between = sum(
            probability * ops.square(mean - centre) for probability, mean in parts
        )
        return between + ops.exp(rest) * self.base.variance(of_base)

    def log_densities(self, values: ArrayLike, outputs: Tensor) -> Tensor:
        of_values, rest, of_base = self._parts(outputs)
        values = ops.cast(values, rest.dtype)
        inside = values
        if not self.discrete:
            # The gradient of a density at its end may be infinite.
            inside = ops.where(self._is_inflated(values), self._middle, values)
        of_rest = rest + self.base.log_densities(inside, of_base)
        found = of_rest
        for value, log in zip(self._inflated, of_values, strict=True):
            there = log
            if self.discrete:
                there = log + ops.softplus(of_rest - log)
            found = ops.where(values == value, there, found)
        return found

    def prob(self, values: ArrayLike, outputs: Tensor) -> Tensor:
        of_values, rest, of_base = self._parts(outputs)
        values = ops.cast(values, rest.dtype)
        found = ops.exp(rest) * self.base.prob(values, of_base)
        for value, log in zip(self._inflated, of_values, strict=True):
            found = found + ops.where(values == value, ops.exp(log), 0.0)
        return found

    def cdf(self, values: ArrayLike, outputs: Tensor) -> Tensor:
        of_values, rest, of_base = self._parts(outputs)
        values = ops.cast(values, rest.dtype)
        found = ops.exp(rest) * self.base.cdf(values, of_base)
        for value, log in zip(self._inflated, of_values, strict=True):
            found = found + ops.where(values >= value, ops.exp(log), 0.0)
        return found

    def quantile(self, levels: ArrayLike, outputs: Tensor) -> Tensor:
        dtype = self.at_least_float32(outputs).dtype
        of_values, rest, of_base = self._parts(ops.cast(outputs, "float64"))
        levels, rest = ops.cast(levels, "float64"), ops.exp(rest)
        low, *high = [ops.exp(log) for log in of_values]
        inside = ops.clip_by_value((levels - low) / rest, SMALLEST_LEVEL, LARGEST_LEVEL)
        found = ops.cast(self.base.quantile(inside, of_base), "float64")
        if self.masses:
            found = ops.where(levels <= low, self._inflated[0], found)
        if high:
            found = ops.where(levels > low + rest, self._inflated[1], found)
        return ops.cast(found, dtype)

    def _is_inflated(self, values: Tensor) -> Tensor:
        found = values == self._inflated[0]
        for value in self._inflated[1:]:
            found = found | (values == value)
        return found

    @property
    def _middle(self) -> float:
        """A number that the other likelihood may have."""
        return 1.0 if len(self._inflated) == 1 else 0.5 * sum(self._inflated)


@register("zero_inflated", "An amount or a count that is often 0.")
class ZeroInflated(Inflated):
    """Targets that are often exactly 0, and else an amount or a count.

    The network gives, beside the outputs of `base`, the logit of one probability p per
    target. An amount (`Gamma`, `LogNormal`) is 0 with this probability, and else has
    the density of `base` (a hurdle model, Cragg 1971):

        P(y = 0) = p,    p(y) = (1 - p) p_base(y) for y > 0

    Of counts (`Poisson`, `NegativeBinomial`) p is that of further zeros (Lambert 1992):

        P(y = 0) = p + (1 - p) p_base(0),    P(y) = (1 - p) p_base(y) for y > 0

    Example:

    >>> import tfbbb
    >>> likelihood = tfbbb.likelihoods.ZeroInflated(tfbbb.likelihoods.Gamma())
    >>> likelihood.num_outputs(1)
    2
    >>> likelihood.build((None, 2))
    >>> likelihood.adapt([0.0, 0.0, 1.0, 2.0, 3.0, 0.0])
    >>> outputs = [[0.0, 0.0]]
    >>> likelihood.mean(outputs).numpy().round(6).tolist()
    [[1.0]]
    >>> likelihood.quantile([[0.4], [0.8]], outputs).numpy().round(1).tolist()
    [[0.0], [2.1]]

    Args:
        base: The likelihood of the amounts or counts, or its name.
        heteroscedastic: As for the base, where that is a name.
        standardize: As for the base, where that is a name.
    """

    def __init__(
        self,
        base: Base = "gamma",
        heteroscedastic: Heteroscedastic = False,
        standardize: Standardize = True,
        **kwargs: Any,
    ):
        given = {"heteroscedastic": heteroscedastic, "standardize": standardize}
        super().__init__(_made(base, given, self._values), (0.0,), **kwargs)
        self.support = self.support_of(self.base)

    @classmethod
    def support_of(
        cls, base: Likelihood | str | Mapping[str, Any] = "gamma", **options: Any
    ) -> Support:
        if isinstance(base, Likelihood):
            support = base.support
        else:
            name = base if isinstance(base, str) else base["name"]
            support = registry.classes[name].support
        assert support is not None
        return support if support.integer else Support(0.0, support.high)

    def get_config(self) -> Config:
        base = type(self.base)
        name = next(name for name, cls in registry.classes.items() if cls is base)
        # mypy looks for the hash of a class in its instances.
        own = {name: getattr(self.base, name) for name in options(base)}  # type: ignore[arg-type]
        return {**super().get_config(), "base": {"name": name, **own}}


def _made(
    base: Likelihood | str | Mapping[str, Any],
    given: Mapping[str, bool],
    values: Mapping[str, np.ndarray] | None,
) -> Likelihood:
    """Returns the base of `ZeroInflated`, which has these `values` without Keras."""
    if isinstance(base, Likelihood):
        support = base.support
        suits = isinstance(base, Regression) and not (base.exposure or base.censored)
        is_positive = support is not None and (support.integer or support.least > 0.0)
        if not (suits and is_positive):
            raise ValueError(
                "`base` must be a likelihood of positive numbers or of counts, such as "
                f"`Gamma()`. Received: base={type(base).__name__}"
            )
        if given != {"heteroscedastic": False, "standardize": True}:
            raise ValueError(
                "`heteroscedastic` and `standardize` are options of the base: pass "
                f"`{type(base).__name__}(heteroscedastic=True)`. Received: {given}"
            )
        return base
    if not isinstance(base, str):
        name, arguments = base["name"], {**base}
        del arguments["name"]
        return registry.classes[name].with_values(arguments, values)
    if base not in get_args(BASES):
        raise ValueError(
            f"`base` must be one of {', '.join(get_args(BASES))}, or a likelihood. "
            f"Received: base={base!r}"
        )
    cls = registry.classes[base]
    known = options(cls)  # type: ignore[arg-type]
    if given["heteroscedastic"] and "heteroscedastic" not in known:
        raise ValueError(
            f"A {base} distribution has no noise besides its mean: leave "
            "`heteroscedastic` out. Received: heteroscedastic=True"
        )
    return cls.with_values({name: given[name] for name in given.keys() & known}, values)


@register("inflated_beta", "A number between two bounds, which it may reach.")
class InflatedBeta(Inflated):
    """Targets between two bounds that they may reach, such as shares of 0 and of 1.

    The network gives, beside the outputs of `tfbbb.likelihoods.Beta`, two logits per
    target (Ospina and Ferrari 2010):

        P(y = low), P(y = high), P_rest = softmax(l_1, l_2, 0)
        p(y) = P_rest * p_beta(y) between the bounds

    Example:

    >>> import tfbbb
    >>> likelihood = tfbbb.likelihoods.InflatedBeta()
    >>> likelihood.build((None, likelihood.num_outputs(1)))
    >>> likelihood.mean([[0.0, 0.0, 0.0]]).numpy().round(3).tolist()
    [[0.5]]
    >>> likelihood.cdf([[0.0], [1.0]], [[0.0, 0.0, 0.0]]).numpy().round(3).tolist()
    [[0.333], [1.0]]

    Args:
        low: Lower bound of the targets.
        high: Upper bound of the targets.
        heteroscedastic: Whether the network gives the concentration of each row, after
            the k means.
        standardize: Whether the network works in standard units.
    """

    def __init__(
        self,
        low: Low = 0.0,
        high: High = 1.0,
        heteroscedastic: Heteroscedastic = False,
        standardize: Standardize = True,
        **kwargs: Any,
    ):
        given = {"heteroscedastic": heteroscedastic, "standardize": standardize}
        base = Beta.with_values({"low": low, "high": high, **given}, self._values)
        super().__init__(base, (low, high), **kwargs)
        self.low, self.high = low, high
        self.support = self.support_of(low, high)

    @classmethod
    def support_of(cls, low: float = 0.0, high: float = 1.0, **options: Any) -> Support:
        return Support(low, high)
