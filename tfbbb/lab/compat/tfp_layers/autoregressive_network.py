"""The masked autoencoder for distribution estimation."""

import itertools
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from tfbbb.base.numbers import choice
from tfbbb.base.types import (
    Activation,
    ArrayLike,
    Config,
    Constraint,
    Initializer,
    Options,
    Regularizer,
    Shape,
    Tensor,
)
from tfbbb.lab.compat.tfp_layers.adopted_variable import track_in_checkpoints
from tfbbb.lab.compat.tfp_layers.function_config import (
    activation_config,
    activity_regularizer_config,
    read_values,
    to_config,
    variable_options,
)

_register = keras.saving.register_keras_serializable(package="tfbbb.compat.tfp_layers")
_ORDERS = ("left-to-right", "right-to-left", "random")
_DEGREES = ("equal", "random")
_CONDITIONED = ("all_layers", "first_layer")


@_register
class AutoregressiveNetwork(keras.Layer):
    """A dense network whose i-th output sees the inputs before i (Germain et al. 2015).

    `output[..., i, :]` depends on `input[..., j]` only where j comes before i in
    `input_order`, and on all of the conditional input: kernels are multiplied by masks.
    It has the arguments of `tfp.bijectors.AutoregressiveNetwork`, which legacy Keras
    implements.

    Example:

    >>> import keras
    >>> made = AutoregressiveNetwork(params=2, hidden_units=[8], activation="relu")
    >>> made(keras.ops.ones((5, 3))).shape
    TensorShape([5, 3, 2])

    Args:
        params: Number of outputs for each input.
        event_shape: Number d of inputs; by default as in the first call.
        conditional: Whether calls take a `conditional_input` [..., c].
        conditional_event_shape: Its size c.
        conditional_input_layers: Where it enters: `"all_layers"` or `"first_layer"`.
        hidden_units: Sizes of the hidden layers.
        input_order: `"left-to-right"`, `"right-to-left"`, `"random"`, or the place of
            each input, a permutation of 1 ... d.
        hidden_degrees: How many inputs hidden units see: `"equal"`, `"random"`, or a
            list of numbers per hidden layer.
        activation: Keras activation of the hidden layers.
        use_bias: Whether the layers have a bias.
        kernel_initializer: Initial kernels.
        bias_initializer: Initial biases.
        kernel_regularizer: Penalty on kernels.
        bias_regularizer: Penalty on biases.
        kernel_constraint: Projection of kernels after each update.
        bias_constraint: Projection of biases after each update.
        validate_args: Unused, as shapes are always checked.
        **kwargs: Options of `keras.Layer`.

    Raises:
        ValueError: A name is unknown, the order is not a permutation, or a conditional
            network has no shapes.
    """

    def __init__(
        self,
        params: Tensor,
        event_shape: Shape = None,
        conditional: bool = False,
        conditional_event_shape: Shape = None,
        conditional_input_layers: str = "all_layers",
        hidden_units: Sequence[int] | None = None,
        input_order: str | Sequence[int] = "left-to-right",
        hidden_degrees: str | Sequence[Sequence[int]] = "equal",
        activation: Activation = None,
        use_bias: bool = True,
        kernel_initializer: Initializer = "glorot_uniform",
        bias_initializer: Initializer = "zeros",
        kernel_regularizer: Regularizer = None,
        bias_regularizer: Regularizer = None,
        kernel_constraint: Constraint = None,
        bias_constraint: Constraint = None,
        validate_args: bool = False,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        choice("conditional_input_layers", conditional_input_layers, _CONDITIONED)
        if isinstance(hidden_degrees, str):
            choice("hidden_degrees", hidden_degrees, _DEGREES)
        if isinstance(input_order, str):
            choice("input_order", input_order, _ORDERS)
        if conditional and None in (event_shape, conditional_event_shape):
            raise ValueError(
                "A conditional network needs `event_shape` and "
                "`conditional_event_shape`. "
                f"Received: event_shape={event_shape}, "
                f"conditional_event_shape={conditional_event_shape}"
            )
        if conditional_event_shape is not None and not conditional:
            raise ValueError(
                "`conditional_event_shape` is for `conditional=True`. Received: "
                f"conditional_event_shape={conditional_event_shape}, conditional=False"
            )
        self._params = params
        self._event_size: Any = _size("event_shape", event_shape)
        self._conditional = conditional
        self._condition_size = _size("conditional_event_shape", conditional_event_shape)
        self._conditioned = conditional_input_layers
        self._hidden_units = list(hidden_units or [])
        self._input_order = input_order
        self._hidden_degrees = hidden_degrees
        self._activation = keras.activations.get(activation)
        self._use_bias = use_bias
        self._validate_args = validate_args
        self._kernel = variable_options(
            kernel_initializer, kernel_regularizer, kernel_constraint
        )
        self._bias = variable_options(
            bias_initializer, bias_regularizer, bias_constraint
        )

    @property
    def params(self) -> int:
        """Number of outputs for each input."""
        return self._params

    @property
    def event_shape(self) -> list[int] | None:
        """Number of inputs, [d]; None before it is known."""
        return None if self._event_size is None else [self._event_size]

    def build(self, input_shape: Shape) -> None:
        size = input_shape[-1]
        if size is None or self._event_size not in (None, size):
            raise ValueError(
                "The last axis of the input must have the length of `event_shape`. "
                f"Received: input_shape={input_shape}, event_shape={self.event_shape}"
            )
        self._event_size = size
        order = self._order()
        degrees = [order, *self._hidden_degrees_after(order)]
        # A unit of degree m sees inputs up to m; an output, those before its own.
        self._masks = [a[:, None] <= b for a, b in itertools.pairwise(degrees)]
        last = degrees[-1][:, None] < order
        self._masks.append(np.repeat(last, self._params, axis=1))
        self._kernels, self._biases, self._condition_kernels = [], [], []
        for k, mask in enumerate(self._masks):
            self._kernels.append(self._add(f"kernel_{k}", mask.shape, self._kernel))
            if self._use_bias:
                self._biases.append(self._add(f"bias_{k}", mask.shape[1:], self._bias))
            if self._takes_condition(k):
                self._condition_kernels.append(
                    self._add(
                        f"conditional_kernel_{k}",
                        (self._condition_size, mask.shape[1]),
                        self._kernel,
                    )
                )
        self.built = True

    def call(self, x: ArrayLike, conditional_input: ArrayLike = None) -> Tensor:
        if self._conditional and conditional_input is None:
            raise ValueError(
                "A conditional network is called with an argument "
                "`conditional_input`. Received: conditional_input=None"
            )
        x = tf.convert_to_tensor(x, dtype=self.compute_dtype)
        for k, (kernel, mask) in enumerate(
            zip(self._kernels, self._masks, strict=True)
        ):
            x = _apply(x, kernel * ops.cast(mask, kernel.dtype))
            if self._use_bias:
                x += self._biases[k]
            if self._takes_condition(k):
                condition = tf.convert_to_tensor(conditional_input, x.dtype)
                x += _apply(condition, self._condition_kernels[k])
            if k + 1 < len(self._masks):
                x = self._activation(x)
        shape = tf.concat([tf.shape(x)[:-1], [self._event_size, self._params]], axis=0)
        outputs = tf.reshape(x, shape)
        outputs.set_shape([*x.shape[:-1], self._event_size, self._params])
        return outputs

    def compute_output_shape(self, input_shape: Shape, **_: Any) -> Shape:
        return (*input_shape, self._params)

    def get_config(self) -> Config:
        order = self._input_order
        return {
            **super().get_config(),
            "params": self._params,
            "event_shape": self.event_shape,
            "conditional": self._conditional,
            "conditional_event_shape": self._condition_size,
            "conditional_input_layers": self._conditioned,
            "hidden_units": self._hidden_units,
            "input_order": order
            if isinstance(order, str)
            else np.array(order).tolist(),
            "hidden_degrees": self._hidden_degrees,
            **activity_regularizer_config(self),
            "activation": activation_config(self._activation),
            "use_bias": self._use_bias,
            **{f"kernel_{key}": to_config(v) for key, v in self._kernel.items()},
            **{f"bias_{key}": to_config(v) for key, v in self._bias.items()},
            "validate_args": self._validate_args,
        }

    @classmethod
    def from_config(cls, config: Config) -> "AutoregressiveNetwork":
        return cls(**read_values(config))

    def _add(self, name: str, shape: Shape, options: Options) -> keras.Variable:
        variable = self.add_weight(name=name, shape=shape, **options)
        track_in_checkpoints(self, variable)
        return variable

    def _takes_condition(self, k: int) -> bool:
        return self._conditional and (k == 0 or self._conditioned == "all_layers")

    def _order(self) -> np.ndarray:
        places = np.arange(1, self._event_size + 1)
        match self._input_order:
            case "left-to-right":
                return places
            case "right-to-left":
                return places[::-1]
            case "random":
                # As for the degrees below.
                self._input_order = np.random.permutation(places).tolist()
        order = np.array(self._input_order)
        if not np.array_equal(np.sort(order), places):
            raise ValueError(
                f"`input_order` must be a permutation of 1 ... {self._event_size}. "
                f"Received: input_order={self._input_order}"
            )
        return order

    def _hidden_degrees_after(self, order: np.ndarray) -> Sequence[np.ndarray]:
        if not isinstance(self._hidden_degrees, str):
            return [np.array(degrees) for degrees in self._hidden_degrees]
        degrees = [order]
        highest = self._event_size - 1
        for units in self._hidden_units:
            lowest = min(degrees[-1].min(), highest)
            if self._hidden_degrees == "random":
                new = np.random.randint(lowest, max(highest, lowest) + 1, size=units)
            else:
                even = np.ceil(np.arange(1, units + 1) * highest / (units + 1))
                new = np.maximum(lowest, even.astype(int))
            degrees.append(new)
        if self._hidden_degrees == "random":
            # Where a network is saved, so must be its masks.
            self._hidden_degrees = [d.tolist() for d in degrees[1:]]
        return degrees[1:]


def _apply(x: ArrayLike, kernel: Tensor) -> Tensor:
    return tf.tensordot(x, tf.convert_to_tensor(kernel), axes=1)


def _size(name: str, shape: ArrayLike) -> int | None:
    if shape is None:
        return None
    sizes = np.reshape(shape, -1).tolist()
    if len(sizes) != 1:
        raise ValueError(
            f"`{name}` must be one integer or a list of one. Received: {name}={shape}"
        )
    return int(sizes[0])
