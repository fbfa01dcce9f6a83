"""What likelihoods of real targets have in common."""

import math
from typing import Any, Literal

import keras
import numpy as np
import tensorflow as tf

from tfbbb.fold import with_gradient_times
from tfbbb.likelihoods.likelihood import Likelihood

# In units of the targets' scale. It bounds the density where a heteroscedastic net
# meets a row that it fits exactly.
SMALLEST_NOISE = 1e-4
# softplus(RAW_UNIT) = 1: at first, all of the targets' variance is noise.
RAW_UNIT = math.log(math.expm1(1.0))
# The square of what is larger is infinite in single precision; its inverse's is 0.
LARGEST_TARGET = 1e18
# What the targets of a positive likelihood may be, in an error.
POSITIVE = f"positive numbers, {1 / LARGEST_TARGET:.0e} to {LARGEST_TARGET:.0e}"
# A spread below this share of a target's size is lost in single precision.
_SMALLEST_SPREAD = 1e-6
_NUMBER_WORDS = {1: "one", 2: "two", 3: "three"}


class Regression(Likelihood):
    """A density of k real targets, each with a location and further parameters.

    The network gives the locations, in standard units: times `target_scale` plus
    `target_shift`, which are those of the training targets, fixed at the first `fit`,
    and 1 and 0 until then. The parameters of the noise are learned, one number per
    target and member of the ensemble, or are outputs of the network, after the
    locations (`heteroscedastic=True`), or are given, as the class has it.

    Subclasses say in `_location_sizes` and `_noise_sizes` what these are, and read them
    from `_raw`.

    Args:
        heteroscedastic: Whether the network gives the noise of each row.
        standardize: Whether the network gives the locations in standard units; else
            they are in the units of the targets.
    """

    task: Literal["regression", "classification"] = "regression"
    ordered = True
    # What the targets may be, in an error.
    _support = f"finite numbers, {LARGEST_TARGET:.0e} at most in size"
    # Added to a raw noise, so that outputs of 0 are a noise of the targets' spread.
    _noise_offset = RAW_UNIT

    def __init__(
        self,
        *,
        heteroscedastic: bool = False,
        standardize: bool = True,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.heteroscedastic = heteroscedastic
        self.standardize = standardize

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "standardize": self.standardize}

    def _location_sizes(self, num_targets: int) -> dict[str, int]:
        """Returns how many numbers each parameter has that is always an output."""
        return {"location": num_targets}

    def _noise_sizes(self, num_targets: int) -> dict[str, int]:
        """Returns how many numbers each has that is learned or an output."""
        return {"noise": num_targets}

    @property
    def learns(self) -> bool:
        return not self.heteroscedastic and bool(self._noise_sizes(1))

    def num_outputs(self, num_targets: int) -> int:
        return sum(self._output_sizes(num_targets).values())

    def _output_sizes(self, num_targets: int) -> dict[str, int]:
        sizes = self._location_sizes(num_targets)
        if self.heteroscedastic:
            sizes |= self._noise_sizes(num_targets)
        return sizes

    def build(self, output_shape: tuple[int | None, ...]) -> None:
        self.num_targets = self._num_targets(output_shape)
        self._columns = self._output_sizes(self.num_targets)
        self.target_shift = self._constants("target_shift", 0.0)
        self.target_scale = self._constants("target_scale", 1.0)
        # 1 once the targets have been seen.
        self._adapted = self._variable("adapted", (), 0.0)
        self._learned: dict[str, keras.Variable] = {}
        if self.learns:
            leading = () if self.members == 1 else (self.members,)
            for name, size in self._noise_sizes(self.num_targets).items():
                initial = RAW_UNIT - self._noise_offset if name == "noise" else 0.0
                self._learned[name] = self._variable(
                    f"raw_{name}", (*leading, size), initial, trainable=True
                )
                if self.members > 1:
                    self._columns[name] = size

    def _num_targets(self, output_shape: tuple[int | None, ...]) -> int:
        size = output_shape[-1]
        for num_targets in range(1, (size or 0) + 1):
            if self.num_outputs(num_targets) == size:
                return num_targets
        raise ValueError(
            f"The likelihood {type(self).__name__} needs {self._needed_outputs()} "
            f"units. Received: output_shape={output_shape}"
        )

    def _needed_outputs(self) -> str:
        number, names = self.num_outputs(1), self._output_sizes(1)
        return (
            f"{_NUMBER_WORDS.get(number, number)} outputs per target "
            f"({', then '.join(names)}). End the network with a layer of "
            f"{number} * num_targets"
        )

    def _constants(self, name: str, value: float) -> keras.Variable:
        return self._variable(name, (self.num_targets,), value)

    def _variable(
        self, name: str, shape: tuple[int, ...], value: float, trainable: bool = False
    ) -> keras.Variable:
        return self.add_weight(
            name=name,
            shape=shape,
            initializer=keras.initializers.Constant(value),
            trainable=trainable,
            dtype="float32",
            autocast=False,
        )

    def check_targets(self, targets: Any) -> np.ndarray:
        values = np.asarray(targets, dtype=np.float64)
        if values.ndim == 1 and self.num_targets == 1:
            values = values[:, np.newaxis]
        if values.ndim < 2 or values.shape[-1] != self.num_targets:
            raise ValueError(
                f"The targets must have the shape [rows, {self.num_targets}]. "
                f"Received: shape={np.shape(targets)}"
            )
        usable = self._supported(values).reshape(len(values), -1).all(axis=1)
        if not usable.all():
            row = int(np.argmin(usable))
            raise ValueError(
                f"The targets of {type(self).__name__} must be {self._support}; drop "
                "or fill the rows where they are not. "
                f"Received: {values[row].tolist()} in row {row}"
            )
        return values

    def _supported(self, values: np.ndarray) -> np.ndarray:
        return np.abs(values) <= LARGEST_TARGET

    @property
    def adapted(self) -> bool:
        return bool(self._adapted.numpy())

    def adapt(self, targets: Any) -> None:
        if self.adapted:
            return
        values = self.check_targets(targets).reshape(-1, self.num_targets)
        shift, scale = self._shift_and_scale(values)
        self.target_shift.assign(shift)
        self.target_scale.assign(scale)
        self._adapted.assign(1.0)

    def _shift_and_scale(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns mean and standard deviation of each column, [k] each."""
        shift, scale = values.mean(axis=0), values.std(axis=0)
        smallest = np.maximum(
            _SMALLEST_SPREAD * np.abs(values).max(axis=0), 1.0 / LARGEST_TARGET
        )
        constant = scale <= smallest
        if constant.any():
            column = int(np.argmax(constant))
            raise ValueError(
                f"Target {column} is constant in single precision, so there is nothing "
                "to learn; where it is not, subtract a number close to its mean. "
                f"Received: {values[0, column]} with a standard deviation of "
                f"{scale[column]:.2g} in {len(values)} rows"
            )
        return shift, scale

    def _aligned(self, targets: Any, outputs: tf.Tensor) -> tf.Tensor:
        rows = tf.shape(outputs)[:-1]
        return tf.reshape(targets, tf.concat([rows, [self.num_targets]], 0))

    def of_members(self, outputs: Any, member: Any) -> tf.Tensor:
        outputs = tf.convert_to_tensor(outputs)
        if self.members == 1:
            return outputs
        together = [outputs]
        for variable in self._learned.values():
            each = with_gradient_times(tf.convert_to_tensor(variable), self.members)
            together.append(_spread_over(tf.gather(each, member), outputs))
        return tf.concat(together, axis=-1)

    def with_location_variance(self, outputs: Any, variance: Any) -> tf.Tensor:
        if not self.integrates_location:
            return super().with_location_variance(outputs, variance)
        outputs = tf.convert_to_tensor(outputs)
        return tf.concat([outputs, _spread_over(variance, outputs)], axis=-1)

    def location_variance(self, outputs: Any) -> tf.Tensor:
        raw = self._raw(outputs)
        if "location_variance" not in raw:
            return super().location_variance(outputs)
        return self._raw_location_variance(raw)

    def _raw_location_variance(self, raw: dict[str, tf.Tensor]) -> tf.Tensor:
        """Returns the added variance of the locations in raw units, [..., k]."""
        variance = raw["location_variance"]
        if not self.standardize:
            return variance
        return tf.square(self._value(self.target_scale, variance)) * variance

    @property
    def noise_size(self) -> int:
        return self.num_targets

    def _raw(self, outputs: Any) -> dict[str, tf.Tensor]:
        """Returns every parameter as the network gave it or it was learned.

        Those of the outputs are [..., size], the learned ones of a single model [size].
        """
        outputs, sizes = at_least_float32(outputs), self._columns
        beyond = outputs.shape[-1] - sum(sizes.values())
        if self.integrates_location and beyond == self.num_targets:
            sizes = {**sizes, "location_variance": beyond}
        elif beyond:
            raise ValueError(
                f"The likelihood was built for {self.num_targets} targets; make one "
                f"for each model. Received: outputs of shape {tuple(outputs.shape)}"
            )
        parts = tf.split(outputs, list(sizes.values()), axis=-1)
        raw = dict(zip(sizes, parts, strict=True))
        for name, variable in self._learned.items():
            if name not in raw:
                raw[name] = self._value(variable, outputs)
        return raw

    def _value(self, variable: Any, like: tf.Tensor) -> tf.Tensor:
        return tf.cast(tf.convert_to_tensor(variable), like.dtype)

    def _located(self, raw: tf.Tensor) -> tf.Tensor:
        """Returns locations [..., k] in the units that the targets are modelled in."""
        if not self.standardize:
            return raw
        scale = self._value(self.target_scale, raw)
        return self._value(self.target_shift, raw) + scale * raw

    def _noise(self, raw: tf.Tensor) -> tf.Tensor:
        """Returns the noise in units of the targets' scale."""
        return positive(raw, self._noise_offset)


def positive(raw: tf.Tensor, offset: float = RAW_UNIT) -> tf.Tensor:
    """Returns positive numbers: a softplus with a floor, 1 where `raw` is 0."""
    return tf.nn.softplus(raw + offset) + SMALLEST_NOISE


def is_positive(values: np.ndarray) -> np.ndarray:
    """Returns which values can be targets of a positive likelihood: see `POSITIVE`."""
    return (values >= 1.0 / LARGEST_TARGET) & (values <= LARGEST_TARGET)


def check_given_or_output(name: str, value: Any, heteroscedastic: bool) -> None:
    """Raises ValueError where a parameter is both given and an output."""
    if value is not None and heteroscedastic:
        raise ValueError(
            f"The noise is either given (`{name}=`) or an output of the network "
            "(`heteroscedastic=True`). "
            f"Received: heteroscedastic=True, {name}={value}"
        )


def _spread_over(values: Any, outputs: tf.Tensor) -> tf.Tensor:
    """Returns values [..., size], one of each for every place of the outputs."""
    values = tf.cast(values, outputs.dtype)
    shape = tf.concat([tf.shape(outputs)[:-1], tf.shape(values)[-1:]], 0)
    spread = tf.broadcast_to(values, shape)
    return tf.ensure_shape(spread, [*outputs.shape[:-1], values.shape[-1]])


def at_least_float32(outputs: Any) -> tf.Tensor:
    """Returns outputs in the precision that a likelihood computes in."""
    outputs = tf.convert_to_tensor(outputs)
    return outputs if outputs.dtype == tf.float64 else tf.cast(outputs, tf.float32)
