"""Targets of a regression, and the standard units that the network works in."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from tfbbb.base.lazy import keras, np, tf
from tfbbb.base.types import ArrayLike, Tensor
from tfbbb.bayes.families.arguments import Flag
from tfbbb.bayes.families.support import LARGEST_TARGET, Support
from tfbbb.bayes.likelihoods.likelihood import Likelihood, given_noise
from tfbbb.bayes.target_shape import target_width

# Single and double precision lose a spread below this share of a target's size.
_SMALLEST_SPREADS = 1e-6, 1e-13

Standardize = Annotated[
    Flag, Field(description="Whether the network predicts standardised targets.")
]


class StandardizedTargets(Likelihood):
    """A likelihood of k numbers with a shift and a scale.

    The network gives locations in standard units: in raw units they are
    `target_shift + target_scale * location`. The first `fit` sets shift and scale, by
    default to mean and standard deviation of the training targets; until then they are
    0 and 1.

    A likelihood whose mean or variance could grow exponentially in the outputs bounds
    its parameters by the range of the training targets, `target_low` to `target_high`
    in the units of the locations. Every `fit` widens this range by its targets.

    Args:
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

    def __init__(self, *, standardize: Standardize = True, **kwargs: Any):
        super().__init__(**kwargs)
        self.standardize = standardize

    def _build_standard_units(self, num_targets: int) -> None:
        # The scale may be small beside it.
        self.target_shift = self._double("target_shift", num_targets, 0.0)
        self.target_scale = self._variable("target_scale", (num_targets,), 1.0)
        # 1 after `adapt`, else 0.
        self._adapted = self._variable("adapted", (), 0.0)
        if self._widest_range is not None:
            # The last ones: files of earlier releases lack them.
            low, high = self._widest_range
            self.target_low = self._double("target_low", num_targets, low)
            self.target_high = self._double("target_high", num_targets, high)

    def _double(self, name: str, num_targets: int, value: float) -> keras.Variable:
        return self._variable(name, (num_targets,), value, dtype="float64")

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
            initializer=keras.initializers.Constant(value),
            trainable=trainable,
            dtype=dtype,
            autocast=False,
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
        assert self.support is not None
        inside = self.support.contains(values)
        if counted is not None:
            inside = inside | ~over_targets(counted, values)
        usable = inside.reshape(len(values), -1).all(axis=1)
        if not usable.all():
            row = int(np.argmin(usable))
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
        self, targets: ArrayLike, counted: ArrayLike = None, double: bool = False
    ) -> None:
        bounds = self._widest_range is not None
        adapted = bool(self._adapted.numpy())
        if adapted and not bounds:
            return
        values = self.check_targets(targets, counted)
        if counted is not None:
            values = values[over_targets(counted, values).all(axis=-1)]
        values = values.reshape(-1, self.num_targets)
        if not adapted:
            self._smallest_spread = _SMALLEST_SPREADS[double]
            shift, scale = self._shift_and_scale(values)
            self.target_shift.assign(shift)
            self.target_scale.assign(scale)
            if bounds:
                self._assign_range(*self._range(values))
            self._adapted.assign(1.0)
        elif bounds:
            low, high = self._range(values)
            self._assign_range(
                np.minimum(low, self.target_low), np.maximum(high, self.target_high)
            )

    def _range(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns the range of the targets in the units of the locations, [k] each."""
        return values.min(axis=0), values.max(axis=0)

    def _assign_range(self, low: np.ndarray, high: np.ndarray) -> None:
        self.target_low.assign(low)
        self.target_high.assign(high)

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

    def aligned(self, targets: ArrayLike, outputs: tf.Tensor) -> tf.Tensor:
        targets = tf.convert_to_tensor(targets)
        self.width_of(targets, outputs)
        rows = tf.shape(outputs)[:-1]
        return tf.reshape(targets, tf.concat([rows, [self.num_targets]], 0))

    @property
    def noise_size(self) -> int:
        return self.num_targets

    def _value(self, variable: keras.Variable, like: tf.Tensor) -> tf.Tensor:
        return tf.cast(tf.convert_to_tensor(variable), like.dtype)

    def _unlocated(self, values: np.ndarray) -> np.ndarray:
        """Returns values [n, k] in the units of `_located` as outputs of a network."""
        if not self.standardize:
            return values
        return (values - self.target_shift.numpy()) / self.target_scale.numpy()

    def _located(self, raw: tf.Tensor) -> tf.Tensor:
        """Returns locations [..., k] in the units that the targets are modelled in."""
        if not self.standardize:
            return raw
        scale = self._value(self.target_scale, raw)
        return self._value(self.target_shift, raw) + scale * raw


def over_targets(counted: ArrayLike, values: np.ndarray) -> np.ndarray:
    """Returns which rows or places count as an array of the shape of the targets."""
    counted = np.asarray(counted, bool)
    trailing = [1] * (values.ndim - counted.ndim)
    return np.broadcast_to(counted.reshape(*counted.shape, *trailing), values.shape)


def soft_clip(values: tf.Tensor, low: Tensor, high: Tensor, margin: float) -> tf.Tensor:
    """Returns values between `low` and `high`, [k], as they are, others near them.

        b + d m / (m + |d|),    d = v - b,

    for values v beyond the nearest bound b, less than the margin m outside. The slope
    falls with the square of the distance d, not exponentially: a value far outside can
    still learn.
    """
    inside = tf.clip_by_value(values, low, high)
    distance = values - inside
    return inside + distance / (1.0 + tf.abs(distance) / margin)


def soft_limit(values: tf.Tensor, limit: Tensor) -> tf.Tensor:
    """Returns positive values up to half the limit as they are, others below it."""
    half = 0.5 * limit
    excess = tf.nn.relu(values - half)
    return tf.minimum(values, half) + excess / (1.0 + excess / half)
