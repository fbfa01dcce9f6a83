"""Likelihoods of numbers: targets in standard units, and parameters of the noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field

from tfbbb.base import array_ops as ops
from tfbbb.base.batch_layout import of_member
from tfbbb.base.lazy import keras, np, tf
from tfbbb.base.types import ArrayLike, Tensor
from tfbbb.bayes.families.arguments import Flag
from tfbbb.bayes.families.support import LARGEST_TARGET, Support
from tfbbb.bayes.likelihoods.inversion import LARGEST_LEVEL
from tfbbb.bayes.likelihoods.likelihood import (
    Likelihood,
    first_row,
    given_noise,
    over_targets,
)
from tfbbb.bayes.likelihoods.standard_normal import standard_normal_cdf
from tfbbb.bayes.target_shape import target_width

# In units of the targets' scale. It bounds the density of rows that a heteroscedastic
# network fits exactly.
SMALLEST_NOISE = 1e-4
# softplus(RAW_UNIT) = 1: initially the noise has the variance of the targets.
RAW_UNIT = math.log(math.expm1(1.0))

# Single and double precision lose a spread below this share of a target's size.
_SMALLEST_SPREADS = 1e-6, 1e-13

Heteroscedastic = Annotated[
    Flag, Field(description="Whether the network predicts the noise of each row.")
]
Standardize = Annotated[
    Flag, Field(description="Whether the network predicts standardised targets.")
]


class Regression(Likelihood):
    """A distribution of k numbers, each with a location and further parameters.

    The network gives the locations in standard units: in raw units they are
    `target_shift + target_scale * location`. The first `fit` sets shift and scale, by
    default to mean and standard deviation of the training targets; until then they are
    0 and 1. The parameters of the noise are learned (one number per target and member
    of the ensemble), or are outputs of the network after the locations
    (`heteroscedastic=True`), or arguments of a subclass.

    A likelihood whose mean or variance could grow exponentially in the outputs bounds
    its parameters by the range of the training targets, `target_low` to `target_high`
    in the units of the locations. Every `fit` widens this range by its targets.

    Subclasses define the parameters in `_location_sizes` and `_noise_sizes`, and read
    their values from `_raw`.

    Args:
        heteroscedastic: Whether the network gives the noise of each row.
        standardize: Whether the network gives locations in standard units; else they
            are in the units of the targets.
    """

    task = "regression"
    support: Support | None = Support(-LARGEST_TARGET, LARGEST_TARGET)
    ordered = True
    num_targets: int
    # Of a likelihood that bounds its parameters by the range of the training targets:
    # the range before `adapt`, in the units that the targets are modelled in.
    _widest_range: tuple[float, float] | None = None
    _smallest_spread = _SMALLEST_SPREADS[0]
    # Added to a raw noise, so that outputs of 0 give noise with the targets' spread.
    _noise_offset = RAW_UNIT

    def __init__(
        self,
        *,
        heteroscedastic: Heteroscedastic = False,
        standardize: Standardize = True,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.heteroscedastic = heteroscedastic
        self.standardize = standardize

    def _location_sizes(self, num_targets: int) -> dict[str, int]:
        """Returns the size of each parameter that is always an output, by name."""
        return {"location": num_targets}

    def _noise_sizes(self, num_targets: int) -> dict[str, int]:
        """Returns the size of each parameter that is learned or an output, by name."""
        return {} if given_noise(self) else {"noise": num_targets}

    def _check_noise(self) -> None:
        """Raises ValueError if the noise is both given and an output."""
        name = given_noise(self)
        if self.heteroscedastic and name:
            value = getattr(self, name)
            raise ValueError(
                f"The noise is either given (`{name}=`) or an output of the network "
                "(`heteroscedastic=True`); leave one out. "
                f"Received: heteroscedastic=True, {name}={value}"
            )

    @property
    def learns(self) -> bool:
        return not self.heteroscedastic and bool(self._noise_sizes(1))

    @property
    def learned_variables(self) -> list[keras.Variable]:
        return list(self._learned.values())

    def num_outputs(self, num_targets: int) -> int:
        return sum(self._output_sizes(num_targets).values())

    def _output_sizes(self, num_targets: int) -> dict[str, int]:
        sizes = self._location_sizes(num_targets)
        if self.heteroscedastic:
            sizes |= self._noise_sizes(num_targets)
        return sizes

    def build(self, output_shape: tuple[int | None, ...]) -> None:
        super().build(output_shape)
        self.num_targets = self._num_targets(output_shape)
        self._columns = self._output_sizes(self.num_targets)
        # The scale may be small beside it.
        each, double = (self.num_targets,), "float64"
        self.target_shift = self._variable("target_shift", each, 0.0, dtype=double)
        self.target_scale = self._variable("target_scale", each, 1.0)
        # 1 after `adapt`, else 0.
        self._adapted = self._variable("adapted", (), 0.0)
        if self._widest_range is not None:
            # The last ones: files of earlier releases lack them.
            low, high = self._widest_range
            self.target_low = self._variable("target_low", each, low, dtype=double)
            self.target_high = self._variable("target_high", each, high, dtype=double)
        self._learned: dict[str, keras.Variable] = {}
        if self.learns:
            leading = () if self.members == 1 else (self.members,)
            for name, size in self._noise_sizes(self.num_targets).items():
                initial = RAW_UNIT - self._noise_offset if name == "noise" else 0.0
                variable = self._variable(
                    f"raw_{name}", (*leading, size), initial, trainable=True
                )
                self._learned[name] = variable
                # `ops.train.Checkpoint` saves variables that are attributes.
                setattr(self, f"_learned_{name}", variable)
                if self.members > 1:
                    self._columns[name] = size

    def _variable(
        self,
        name: str,
        shape: tuple[int, ...],
        value: float,
        trainable: bool = False,
        dtype: str = "float32",
    ) -> keras.Variable:
        return self.add_weight(
            name=name,
            shape=shape,
            initializer=lambda shape, dtype=None: tf.fill(
                shape, tf.constant(value, dtype)
            ),
            trainable=trainable,
            dtype=dtype,
            autocast=False,
        )

    def _num_targets(self, output_shape: tuple[int | None, ...]) -> int:
        size = output_shape[-1]
        for num_targets in range(1, (size or 0) + 1):
            if self.num_outputs(num_targets) == size:
                return num_targets
        raise ValueError(
            f"The likelihood {type(self).__name__} needs {self._needed_outputs()} "
            f"units. Received: output_shape={output_shape}"
        )

    def num_integrated(self, num_outputs: int) -> int:
        return self._num_targets((None, num_outputs)) if self.integrates_location else 0

    def _needed_outputs(self) -> str:
        number, names = self.num_outputs(1), self._output_sizes(1)
        return (
            f"{number} outputs per target ({', then '.join(names)}). End the network "
            f"with a layer of {number} * num_targets"
        )

    @property
    def target_widths(self) -> tuple[int, ...]:
        return (self.num_targets,)

    def check_targets(
        self, targets: ArrayLike, counted: ArrayLike = None
    ) -> np.ndarray:
        values = np.asarray(targets, dtype=np.float64)
        if target_width(values.shape, self._places, self.target_widths) is None:
            values = values[..., np.newaxis]
        return self._check_support(values, counted)

    def _check_support(
        self, values: np.ndarray, counted: ArrayLike = None
    ) -> np.ndarray:
        """Returns numbers [..., k]; raises ValueError for those that cannot be."""
        assert self.support is not None
        inside = self.support.contains(values)
        if counted is not None:
            inside = inside | ~over_targets(counted, values)
        if not inside.all():
            row = first_row(~inside)
            raise ValueError(
                f"The targets of {type(self).__name__} must be "
                f"{self.support.description}; drop or fill the other rows. "
                f"Received: {values[row].tolist()} in row {row}"
            )
        return values

    @property
    def adapted(self) -> bool:
        # Nothing depends on the targets of a likelihood with given noise in raw units.
        given = given_noise(self) is not None and self._widest_range is None
        return (given and not self.standardize) or bool(self._adapted.numpy())

    def adapt(
        self,
        targets: ArrayLike,
        counted: ArrayLike = None,
        double: bool = False,
        exposures: ArrayLike = None,
    ) -> None:
        values = self.check_targets(targets, counted)
        every = [values]
        if self.exposure:
            every.append(checked_exposures(exposures, values, counted))
        if counted is not None:
            kept = over_targets(counted, values).all(axis=-1)
            every = [each[kept] for each in every]
        rows = [each.reshape(-1, each.shape[-1]) for each in every]
        self.adapt_to_columns(rows, double)

    def adapt_to_columns(self, every: Sequence[np.ndarray], double: bool) -> None:
        """Adapts to targets [n, k], and to exposures [n, 1] if there are any."""
        known = bool(self._adapted.numpy())
        if not known:
            self._smallest_spread = _SMALLEST_SPREADS[double]
            shift, scale = self._shift_and_scale(*every)
            self.target_shift.assign(shift)
            self.target_scale.assign(scale)
            self._adapted.assign(1.0)
        if self._widest_range is not None:
            low, high = self._range(*every)
            if known:
                low = np.minimum(low, self.target_low)
                high = np.maximum(high, self.target_high)
            self.target_low.assign(low)
            self.target_high.assign(high)

    def _range(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns the range of the targets in the units of the locations, [k] each."""
        return values.min(axis=0), values.max(axis=0)

    def _shift_and_scale(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns mean and standard deviation of each column, [k] each."""
        shift, scale = values.mean(axis=0), values.std(axis=0)
        smallest = np.maximum(
            self._smallest_spread * np.abs(values).max(axis=0), 1.0 / LARGEST_TARGET
        )
        constant = scale <= smallest
        if constant.any():
            column = int(np.argmax(constant))
            raise ValueError(
                f"Target {column} is constant in single precision, so there is nothing "
                "to learn. If it varies, subtract a number close to its mean, or use "
                "smaller units. "
                f"Received: {values[0, column]} with a standard deviation of "
                f"{scale[column]:.2g} in {len(values)} rows"
            )
        return shift, scale

    def log_densities(self, values: ArrayLike, outputs: Tensor) -> Tensor:
        """Returns the log density or log mass at `values`, target by target."""
        raise NotImplementedError

    def log_prob(self, targets: ArrayLike, outputs: Tensor) -> Tensor:
        return ops.reduce_sum(self.log_densities(targets, outputs), axis=-1)

    def prob(self, values: ArrayLike, outputs: Tensor) -> Tensor:
        return ops.exp(self.log_densities(values, outputs))

    def aligned(self, targets: ArrayLike, outputs: Tensor) -> Tensor:
        targets = tf.convert_to_tensor(targets)
        self.width_of(targets, outputs)
        rows = tf.shape(outputs)[:-1]
        return tf.reshape(targets, tf.concat([rows, self.target_widths[-1:]], 0))

    @property
    def noise_size(self) -> int:
        return self.num_targets

    def sample(self, outputs: Tensor, noise: Tensor) -> Tensor:
        levels = standard_normal_cdf(ops.cast(noise, "float64"))
        # The largest level below 1 is at eight standard deviations.
        return self.quantile(ops.minimum(levels, LARGEST_LEVEL), outputs)

    def _value(self, variable: keras.Variable, like: Tensor) -> Tensor:
        return ops.cast(variable, like.dtype)

    def _unlocated(self, values: np.ndarray) -> np.ndarray:
        """Returns values [n, k] in the units of `_located` as outputs of a network."""
        if not self.standardize:
            return values
        return (values - self.target_shift.numpy()) / self.target_scale.numpy()

    def _located(self, raw: Tensor) -> Tensor:
        """Returns locations [..., k] in the units that the targets are modelled in."""
        if not self.standardize:
            return raw
        scale = self._value(self.target_scale, raw)
        return self._value(self.target_shift, raw) + scale * raw

    def of_members(self, outputs: Tensor, member: int | Tensor) -> Tensor:
        outputs = tf.convert_to_tensor(outputs)
        if self.members == 1:
            return outputs
        together = [outputs]
        for variable in self._learned.values():
            each = of_member(tf.convert_to_tensor(variable), self.members)
            together.append(_spread_over(tf.gather(each, member), outputs))
        return tf.concat(together, axis=-1)

    def with_location_variance(self, outputs: Tensor, variance: Tensor) -> Tensor:
        if not self.integrates_location:
            return super().with_location_variance(outputs, variance)
        return self._with_appended(outputs, variance)

    @property
    def _appended(self) -> str | None:
        """The name of a number for each location that may follow the parameters."""
        return "location_variance" if self.integrates_location else None

    def _with_appended(self, outputs: Tensor, values: Tensor) -> Tensor:
        outputs = self.as_array(outputs)
        return ops.concat([outputs, _spread_over(values, outputs)], axis=-1)

    def location_variance(self, outputs: Tensor) -> Tensor:
        raw = self._raw(outputs)
        if "location_variance" not in raw:
            return super().location_variance(outputs)
        return self._raw_location_variance(raw)

    def _raw_location_variance(self, raw: dict[str, Tensor]) -> Tensor:
        """Returns the added variance of the locations in raw units, [..., k]."""
        variance = raw["location_variance"]
        if not self.standardize:
            return variance
        return ops.square(self._value(self.target_scale, variance)) * variance

    def units_of_outputs(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns scale and offset of the outputs in the units of the targets.

        `scale * outputs + offset`, [P], is what a network gives for
        `standardize=False`: its locations change, its other parameters do not.
        """
        zero, one = self._unlocated(np.outer([0.0, 1.0], np.ones(self.num_targets)))
        scales, offsets = [], []
        for name, size in self._output_sizes(self.num_targets).items():
            is_location = name in ("location", "locations")
            scale = 1.0 / (one - zero) if is_location else np.ones(self.num_targets)
            offset = -zero * scale if is_location else np.zeros(self.num_targets)
            # A mixture has the locations of one component after the other.
            scales.append(np.resize(scale, size))
            offsets.append(np.resize(offset, size))
        return np.concatenate(scales), np.concatenate(offsets)

    def _raw(self, outputs: Tensor) -> dict[str, Tensor]:
        """Returns every parameter by name, from the outputs or as learned.

        Parameters from outputs are [..., size], learned ones of a single model [size].
        """
        outputs, sizes = self.at_least_float32(outputs), self._columns
        beyond = outputs.shape[-1] - sum(sizes.values())
        if self._appended and beyond == self.num_targets:
            sizes = {**sizes, self._appended: beyond}
        elif beyond:
            raise ValueError(
                f"The likelihood was built for {self.num_targets} targets; make one "
                f"for each model. Received: outputs of shape {tuple(outputs.shape)}"
            )
        parts = ops.split(outputs, list(sizes.values()), axis=-1)
        raw = dict(zip(sizes, parts, strict=True))
        for name, variable in self._learned.items():
            if name not in raw:
                raw[name] = self._value(variable, outputs)
        return raw

    def _noise(self, raw: Tensor) -> Tensor:
        """Returns the noise in units of the targets' scale."""
        return positive(raw, self._noise_offset)


def checked_exposures(
    exposures: ArrayLike, values: np.ndarray, counted: ArrayLike = None
) -> np.ndarray:
    """Returns the exposures of targets [..., k] as positive numbers, [..., 1]."""
    if exposures is None:
        raise ValueError(
            "A likelihood with `exposure=True` needs the exposure of each target. Pass "
            "`exposures`, or let `fit` read them from the input that "
            "`tfbbb.layers.Exposure` takes. Received: exposures=None"
        )
    found = np.asarray(exposures, np.float64).reshape(*values.shape[:-1], 1)
    wrong = ~(np.isfinite(found) & (found > 0.0))
    if counted is not None:
        wrong &= over_targets(counted, found)
    if wrong.any():
        row = first_row(wrong)
        raise ValueError(
            "Every exposure must be a positive number, such as the days or the "
            "kilometres in which a count was made; drop or fill the other rows. "
            f"Received: {found[row].tolist()} in row {row}"
        )
    return found


def positive(raw: Tensor, offset: float = RAW_UNIT) -> Tensor:
    """Returns positive numbers: a softplus with a floor, 1 where `raw` is 0."""
    return ops.softplus(raw + offset) + SMALLEST_NOISE


def _spread_over(values: ArrayLike, outputs: Tensor) -> Tensor:
    """Returns `values`, [size] or [..., size], broadcast to the places of `outputs`."""
    values = ops.cast(values, outputs.dtype)
    shape = ops.concat([ops.shape(outputs)[:-1], ops.shape(values)[-1:]], 0)
    spread = ops.broadcast_to(values, shape)
    return ops.ensure_shape(spread, [*outputs.shape[:-1], values.shape[-1]])


def broadcast_together(*tensors: Tensor) -> list[Tensor]:
    """Returns the tensors in the shape that all of them broadcast to."""
    shape = ops.shape(tensors[0])
    for tensor in tensors[1:]:
        shape = ops.broadcast_dynamic_shape(shape, ops.shape(tensor))
    return [ops.broadcast_to(tensor, shape) for tensor in tensors]


def soft_clip(values: Tensor, low: Tensor, high: Tensor, margin: float) -> Tensor:
    """Returns values between `low` and `high`, [k], as they are, others near them.

        b + d m / (m + |d|),    d = v - b,

    for values v beyond the nearest bound b, less than the margin m outside. The slope
    falls with the square of the distance d, not exponentially: a value far outside can
    still learn.
    """
    inside = ops.clip_by_value(values, low, high)
    distance = values - inside
    return inside + distance / (1.0 + ops.abs(distance) / margin)


def soft_limit(values: Tensor, limit: Tensor) -> Tensor:
    """Returns positive values up to half the limit as they are, others below it."""
    half = 0.5 * limit
    excess = ops.relu(values - half)
    return ops.minimum(values, half) + excess / (1.0 + excess / half)
