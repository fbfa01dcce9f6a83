"""Parameters of a regression: learned, or outputs of the network."""

from __future__ import annotations

import math
from typing import Annotated, Any

from pydantic import Field

from tfbbb.base.batch_layout import with_gradient_times
from tfbbb.base.lazy import keras, np, tf
from tfbbb.base.types import ArrayLike, Tensor
from tfbbb.bayes.families.arguments import Flag
from tfbbb.bayes.likelihoods.likelihood import given_noise
from tfbbb.bayes.likelihoods.standardized_targets import StandardizedTargets

# In units of the targets' scale. It bounds the density of rows that a heteroscedastic
# network fits exactly.
SMALLEST_NOISE = 1e-4
# softplus(RAW_UNIT) = 1: initially the noise has the variance of the targets.
RAW_UNIT = math.log(math.expm1(1.0))
_NUMBER_WORDS = {1: "one", 2: "two", 3: "three"}

Heteroscedastic = Annotated[
    Flag, Field(description="Whether the network predicts the noise of each row.")
]


class Regression(StandardizedTargets):
    """A distribution of k targets, each with a location and further parameters.

    The network gives the locations, in standard units. The parameters of the noise are
    learned (one number per target and member of the ensemble), or are outputs of the
    network after the locations (`heteroscedastic=True`), or arguments of a subclass.

    Subclasses define the parameters in `_location_sizes` and `_noise_sizes`, and read
    their values from `_raw`.

    Args:
        heteroscedastic: Whether the network gives the noise of each row.
    """

    # Added to a raw noise, so that outputs of 0 give noise with the targets' spread.
    _noise_offset = RAW_UNIT

    def __init__(self, *, heteroscedastic: Heteroscedastic = False, **kwargs: Any):
        super().__init__(**kwargs)
        self.heteroscedastic = heteroscedastic

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
        self._build_standard_units(self.num_targets)
        self._learned: dict[str, keras.Variable] = {}
        if self.learns:
            leading = () if self.members == 1 else (self.members,)
            for name, size in self._noise_sizes(self.num_targets).items():
                initial = RAW_UNIT - self._noise_offset if name == "noise" else 0.0
                variable = self._variable(
                    f"raw_{name}", (*leading, size), initial, trainable=True
                )
                self._learned[name] = variable
                # `tf.train.Checkpoint` saves variables that are attributes.
                setattr(self, f"_learned_{name}", variable)
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

    def num_integrated(self, num_outputs: int) -> int:
        return self._num_targets((None, num_outputs)) if self.integrates_location else 0

    def _needed_outputs(self) -> str:
        number, names = self.num_outputs(1), self._output_sizes(1)
        return (
            f"{_NUMBER_WORDS.get(number, number)} outputs per target "
            f"({', then '.join(names)}). End the network with a layer of "
            f"{number} * num_targets"
        )

    def of_members(self, outputs: Tensor, member: int | Tensor) -> tf.Tensor:
        outputs = tf.convert_to_tensor(outputs)
        if self.members == 1:
            return outputs
        together = [outputs]
        for variable in self._learned.values():
            each = with_gradient_times(tf.convert_to_tensor(variable), self.members)
            together.append(_spread_over(tf.gather(each, member), outputs))
        return tf.concat(together, axis=-1)

    def with_location_variance(self, outputs: Tensor, variance: Tensor) -> tf.Tensor:
        if not self.integrates_location:
            return super().with_location_variance(outputs, variance)
        return self._with_appended(outputs, variance)

    @property
    def _appended(self) -> str | None:
        """The name of a number for each location that may follow the parameters."""
        return "location_variance" if self.integrates_location else None

    def _with_appended(self, outputs: Tensor, values: Tensor) -> tf.Tensor:
        outputs = tf.convert_to_tensor(outputs)
        return tf.concat([outputs, _spread_over(values, outputs)], axis=-1)

    def location_variance(self, outputs: Tensor) -> tf.Tensor:
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

    def _raw(self, outputs: Tensor) -> dict[str, tf.Tensor]:
        """Returns every parameter by name, from the outputs or as learned.

        Parameters from outputs are [..., size], learned ones of a single model [size].
        """
        outputs, sizes = at_least_float32(outputs), self._columns
        beyond = outputs.shape[-1] - sum(sizes.values())
        if self._appended and beyond == self.num_targets:
            sizes = {**sizes, self._appended: beyond}
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

    def _noise(self, raw: tf.Tensor) -> tf.Tensor:
        """Returns the noise in units of the targets' scale."""
        return positive(raw, self._noise_offset)


def positive(raw: tf.Tensor, offset: float = RAW_UNIT) -> tf.Tensor:
    """Returns positive numbers: a softplus with a floor, 1 where `raw` is 0."""
    return tf.nn.softplus(raw + offset) + SMALLEST_NOISE


def _spread_over(values: ArrayLike, outputs: tf.Tensor) -> tf.Tensor:
    """Returns `values`, [size] or [..., size], broadcast to the places of `outputs`."""
    values = tf.cast(values, outputs.dtype)
    shape = tf.concat([tf.shape(outputs)[:-1], tf.shape(values)[-1:]], 0)
    spread = tf.broadcast_to(values, shape)
    return tf.ensure_shape(spread, [*outputs.shape[:-1], values.shape[-1]])


def at_least_float32(outputs: Tensor) -> tf.Tensor:
    """Casts outputs below single precision to float32."""
    outputs = tf.convert_to_tensor(outputs)
    return outputs if outputs.dtype == tf.float64 else tf.cast(outputs, tf.float32)
