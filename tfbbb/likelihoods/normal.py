"""The Gaussian likelihood."""

import math
from typing import Any, Literal

import keras
import numpy as np
import tensorflow as tf

from tfbbb.fold import with_gradient_times
from tfbbb.likelihoods.likelihood import Likelihood

# In units of the targets' scale. It bounds the density where a heteroscedastic net
# meets a row that it fits exactly.
_SMALLEST_NOISE = 1e-4
_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
# A spread below this share of a target's size is lost in single precision.
_SMALLEST_SPREAD = 1e-6
# The square of what is larger is infinite in single precision; its inverse's is 0.
_LARGEST_TARGET = 1e18


@keras.saving.register_keras_serializable(package="tfbbb.likelihoods")
class Normal(Likelihood):
    """Normal targets: `p(y | f) = N(y; shift + scale * f, (scale * noise)^2)`.

    `shift` and `scale` are mean and standard deviation of the training targets, fixed
    at the first `fit` of a `tfbbb.BayesianModel`, so that the network works in standard
    units and the user in the units of the table. They are 0 and 1 until then. `noise`
    is one of

    - learned and the same for all rows (the default): a maximum-likelihood point
      estimate, one per target; the network gives k outputs;
    - a given number, in the units of the targets: `Normal(scale=2.0)`;
    - a second output per target (`heteroscedastic=True`): the network gives 2k outputs,
      first the k means, then k numbers whose softplus is the noise.

    Example:

    >>> import tfbbb
    >>> likelihood = tfbbb.likelihoods.Normal(heteroscedastic=True)
    >>> likelihood.num_outputs(1)
    2

    With `standardize=False` the network gives the mean in the units of the targets:
    `p(y | f) = N(y; f, (scale * noise)^2)`. A network that was trained on raw targets
    is such a one, and so is one whose prior is the posterior of another that works in
    these units. A learned noise still starts at `scale`.

    Args:
        heteroscedastic: Whether the network gives the noise of each row.
        scale: Standard deviation of the noise in the units of the targets, positive;
            None to learn it.
        standardize: Whether the network works in standard units.

    Raises:
        ValueError: For a scale that is not positive and finite, or given together with
            `heteroscedastic=True`.
    """

    task: Literal["regression", "classification"] = "regression"
    ordered = True

    def __init__(
        self,
        heteroscedastic: bool = False,
        scale: float | None = None,
        standardize: bool = True,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        if scale is not None and not (math.isfinite(scale) and scale > 0):
            raise ValueError(
                f"`scale` must be positive and finite. Received: scale={scale}"
            )
        if scale is not None and heteroscedastic:
            raise ValueError(
                "The noise is either given (`scale=`) or an output of the network "
                "(`heteroscedastic=True`). "
                f"Received: heteroscedastic=True, scale={scale}"
            )
        self.heteroscedastic = heteroscedastic
        self.scale = scale
        self.standardize = standardize

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "heteroscedastic": self.heteroscedastic,
            "scale": self.scale,
            "standardize": self.standardize,
        }

    @property
    def learns(self) -> bool:
        return self.scale is None and not self.heteroscedastic

    def num_outputs(self, num_targets: int) -> int:
        return 2 * num_targets if self.heteroscedastic else num_targets

    def build(self, output_shape: tuple[int | None, ...]) -> None:
        num_outputs = output_shape[-1]
        if num_outputs is None or (self.heteroscedastic and num_outputs % 2):
            raise ValueError(
                "A heteroscedastic Normal needs two outputs per target, the means and "
                "then the noise. End the network with a layer of 2 * num_targets "
                f"units. Received: output_shape={output_shape}"
            )
        self.num_targets = num_outputs // self.num_outputs(1)

        def constants(
            name: str, value: float, trainable: bool, members: int = 1
        ) -> keras.Variable:
            leading = () if members == 1 else (members,)
            return self.add_weight(
                name=name,
                shape=(*leading, self.num_targets),
                initializer=keras.initializers.Constant(value),
                trainable=trainable,
                dtype="float32",
                autocast=False,
            )

        self.target_shift = constants("target_shift", 0.0, trainable=False)
        self.target_scale = constants("target_scale", 1.0, trainable=False)
        # 1 once the targets have been seen.
        self._adapted = self.add_weight(
            name="adapted",
            shape=(),
            initializer="zeros",
            trainable=False,
            dtype="float32",
            autocast=False,
        )
        if self.learns:
            # softplus(raw_noise) = 1: at first, all of the targets' variance is noise.
            initial = math.log(math.expm1(1.0))
            self.raw_noise = constants("raw_noise", initial, True, self.members)

    def check_targets(self, targets: Any) -> np.ndarray:
        values = np.asarray(targets, dtype=np.float64)
        if values.ndim == 1 and self.num_targets == 1:
            values = values[:, np.newaxis]
        if values.ndim < 2 or values.shape[-1] != self.num_targets:
            raise ValueError(
                f"The targets must have the shape [rows, {self.num_targets}]. "
                f"Received: shape={np.shape(targets)}"
            )
        within = np.abs(values) <= _LARGEST_TARGET
        usable = within.reshape(len(values), -1).all(axis=1)
        if not usable.all():
            row = int(np.argmin(usable))
            raise ValueError(
                f"The targets must be finite numbers, {_LARGEST_TARGET:.0e} at most in "
                "size; drop or fill the rows where they are not. "
                f"Received: {values[row].tolist()} in row {row}"
            )
        return values

    @property
    def adapted(self) -> bool:
        return bool(self._adapted.numpy())

    def adapt(self, targets: Any) -> None:
        if self.adapted:
            return
        values = self.check_targets(targets).reshape(-1, self.num_targets)
        shift, scale = values.mean(axis=0), values.std(axis=0)
        smallest = np.maximum(
            _SMALLEST_SPREAD * np.abs(values).max(axis=0), 1.0 / _LARGEST_TARGET
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
        self.target_shift.assign(shift)
        self.target_scale.assign(scale)
        self._adapted.assign(1.0)

    def _aligned(self, targets: Any, outputs: tf.Tensor) -> tf.Tensor:
        rows = tf.shape(outputs)[:-1]
        return tf.reshape(targets, tf.concat([rows, [self.num_targets]], 0))

    @property
    def _noise_of_members(self) -> bool:
        return self.learns and self.members > 1

    def of_members(self, outputs: Any, member: Any) -> tf.Tensor:
        outputs = tf.convert_to_tensor(outputs)
        if not self._noise_of_members:
            return outputs
        learned = with_gradient_times(
            tf.convert_to_tensor(self.raw_noise), self.members
        )
        noise = tf.cast(tf.gather(learned, member), outputs.dtype)
        return tf.concat([outputs, tf.broadcast_to(noise, tf.shape(outputs))], axis=-1)

    def mean(self, outputs: Any) -> tf.Tensor:
        return self._location_and_noise(outputs)[0]

    def variance(self, outputs: Any) -> tf.Tensor:
        return tf.square(self._location_and_noise(outputs)[1])

    def log_prob(self, targets: Any, outputs: Any) -> tf.Tensor:
        location, noise = self._location_and_noise(outputs)
        standardized = (tf.cast(targets, location.dtype) - location) / noise
        densities = -0.5 * tf.square(standardized) - tf.math.log(noise) - _HALF_LOG_2PI
        return tf.reduce_sum(densities, axis=-1)

    def cdf(self, values: Any, outputs: Any) -> tf.Tensor:
        location, noise = self._location_and_noise(outputs)
        values = tf.cast(values, location.dtype)
        return _standard_normal_cdf((values - location) / noise)

    def prob(self, values: Any, outputs: Any) -> tf.Tensor:
        location, noise = self._location_and_noise(outputs)
        standardized = (tf.cast(values, location.dtype) - location) / noise
        return tf.exp(-0.5 * tf.square(standardized) - _HALF_LOG_2PI) / noise

    def quantile(self, levels: Any, outputs: Any) -> tf.Tensor:
        location, noise = self._location_and_noise(outputs)
        return location + noise * tf.math.ndtri(tf.cast(levels, noise.dtype))

    @property
    def noise_size(self) -> int:
        return self.num_targets

    def sample(self, outputs: Any, noise: Any) -> tf.Tensor:
        location, scale = self._location_and_noise(outputs)
        return location + scale * tf.cast(noise, scale.dtype)

    def _location_and_noise(self, outputs: Any) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns mean and standard deviation of y in raw units, [..., k] each."""
        outputs = tf.convert_to_tensor(outputs)
        both = self.heteroscedastic or self._noise_of_members
        if outputs.shape[-1] != (2 if both else 1) * self.num_targets:
            raise ValueError(
                f"The likelihood was built for {self.num_targets} targets; make one "
                f"for each model. Received: outputs of shape {tuple(outputs.shape)}"
            )
        if outputs.dtype in (tf.float16, tf.bfloat16):
            outputs = tf.cast(outputs, tf.float32)

        def value(variable: keras.Variable) -> tf.Tensor:
            return tf.cast(tf.convert_to_tensor(variable), outputs.dtype)

        shift, scale = value(self.target_shift), value(self.target_scale)
        if both:
            location, raw_noise = tf.split(outputs, 2, axis=-1)
            noise = scale * (tf.nn.softplus(raw_noise) + _SMALLEST_NOISE)
        elif self.scale is not None:
            location = outputs
            noise = tf.ones_like(scale) * tf.constant(self.scale, outputs.dtype)
        else:
            location = outputs
            noise = scale * (tf.nn.softplus(value(self.raw_noise)) + _SMALLEST_NOISE)
        if self.standardize:
            location = shift + scale * location
        return location, tf.broadcast_to(noise, tf.shape(location))


def _standard_normal_cdf(x: tf.Tensor) -> tf.Tensor:
    # erfc keeps the digits of the lower tail, where 1 + erf would lose them.
    return 0.5 * tf.math.erfc(-x * math.sqrt(0.5))
