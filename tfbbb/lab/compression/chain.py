"""A model without branches as a chain of steps that can be made smaller."""

from collections.abc import Callable
from dataclasses import dataclass

import keras
import numpy as np
from keras import layers

from tfbbb.base.private_apis import graph_of, nodes_by_depth
from tfbbb.base.types import Options
from tfbbb.layers import VariationalLayer
from tfbbb.prediction.elementwise_activations import ELEMENTWISE_ACTIVATIONS

_AFFINE = {
    "Dense": layers.Dense,
    "Conv1D": layers.Conv1D,
    "Conv2D": layers.Conv2D,
    "Conv3D": layers.Conv3D,
}
_IDENTITIES_IN_INFERENCE = (
    layers.ActivityRegularization,
    layers.AlphaDropout,
    layers.Dropout,
    layers.GaussianDropout,
    layers.GaussianNoise,
    layers.SpatialDropout1D,
    layers.SpatialDropout2D,
    layers.SpatialDropout3D,
)
_UNIT_BY_UNIT = (
    layers.AveragePooling1D,
    layers.AveragePooling2D,
    layers.AveragePooling3D,
    layers.Flatten,
    layers.GlobalAveragePooling1D,
    layers.GlobalAveragePooling2D,
    layers.GlobalAveragePooling3D,
    layers.GlobalMaxPooling1D,
    layers.GlobalMaxPooling2D,
    layers.GlobalMaxPooling3D,
    layers.MaxPooling1D,
    layers.MaxPooling2D,
    layers.MaxPooling3D,
)
_PREPROCESSING = (layers.Normalization, layers.Rescaling, layers.Reshape)
_ACTIVATIONS = (layers.Activation, layers.ELU, layers.LeakyReLU, layers.ReLU)


@dataclass
class AffineMap:
    """A dense or convolutional layer at its posterior mean.

    Attributes:
        layer: The original layer.
        make: The class of the deterministic layer.
        kernel: [..., inputs, units].
        bias: [units].
    """

    layer: keras.Layer
    make: type[keras.Layer]
    kernel: np.ndarray
    bias: np.ndarray

    @property
    def units_are_independent(self) -> bool:
        """Whether the activation acts on each unit separately."""
        return self.layer.activation in ELEMENTWISE_ACTIVATIONS

    @property
    def sees_padding(self) -> bool:
        """Whether padding replaces some inputs of some outputs."""
        return getattr(self.layer, "padding", "valid") != "valid"

    def activate(self, values: np.ndarray) -> np.ndarray:
        """Returns the activation of each of `values`."""
        return np.asarray(self.layer.activation(values.astype("float32")), np.float64)

    def smaller_layer(self) -> tuple[keras.Layer, list[np.ndarray]]:
        """Returns an unbuilt deterministic layer, and its weights."""
        source = self.layer
        use_bias = bool(source.use_bias or np.any(self.bias))
        arguments: Options = {
            "activation": source.activation,
            "use_bias": use_bias,
            "name": source.name,
            "dtype": source.dtype_policy,
        }
        if self.make is not layers.Dense:
            for name in ("kernel_size", "strides", "padding", "dilation_rate"):
                arguments[name] = getattr(source, name)
        weights = [self.kernel, self.bias] if use_bias else [self.kernel]
        return self.make(self.kernel.shape[-1], **arguments), weights


@dataclass
class Between:
    """A layer without weights.

    Attributes:
        layer: The layer.
        activate: Maps the constant outputs of units to those after the layer; None if
            the layer mixes units.
    """

    layer: keras.Layer
    activate: Callable[[np.ndarray], np.ndarray] | None


Step = AffineMap | Between


def build_chain(model: keras.Model) -> list[Step]:
    """Returns the steps of a model in their order."""
    steps: list[Step] = []
    for layer in _layers_in_order(model):
        if isinstance(layer, _IDENTITIES_IN_INFERENCE):
            continue
        kind = type(layer).__name__.removesuffix("Variational")
        if isinstance(layer, (VariationalLayer, *_AFFINE.values())) and kind in _AFFINE:
            steps.append(_build_affine_map(layer, _AFFINE[kind]))
        elif isinstance(layer, _ACTIVATIONS):
            steps.append(Between(layer, _activation_map(layer)))
        elif isinstance(layer, layers.Softmax) or (
            # No input is removed, so preprocessing may mix the inputs.
            isinstance(layer, _PREPROCESSING)
            and not any(isinstance(step, AffineMap) for step in steps)
        ):
            steps.append(Between(layer, None))
        elif isinstance(layer, _UNIT_BY_UNIT):
            _check_channels_last(layer)
            steps.append(Between(layer, lambda values: values))
        else:
            raise ValueError(
                "This layer cannot be made smaller; `compact` supports chains of dense "
                "and convolutional layers, Flatten, pooling, activations and dropout. "
                f"Received: the layer '{layer.name}', a {type(layer).__name__}"
            )
    return steps


def _layers_in_order(model: keras.Model) -> list[keras.Layer]:
    graph = graph_of(model)
    if graph is None:
        raise ValueError(
            "`compact` needs a Sequential or functional model, which defines the order "
            "of its layers. "
            f"Received: model={model.name!r}, a {type(model).__name__}"
        )
    found: list[keras.Layer] = []
    for nodes in nodes_by_depth(graph):
        operation = nodes[0].operation
        if len(nodes) > 1 or operation in found:
            raise ValueError(
                "The layers must follow one another, each once, without branches. "
                f"Received: model={model.name!r}, which branches, joins or shares at "
                f"'{operation.name}'"
            )
        if isinstance(operation, keras.Model):
            found += _layers_in_order(operation)
        elif not isinstance(operation, layers.InputLayer):
            found.append(operation)
    return found


def _build_affine_map(layer: keras.Layer, make: type[keras.Layer]) -> AffineMap:
    if getattr(layer, "members", 1) > 1:
        raise ValueError(
            "A mixture of posteriors is not a single network: compact its members one "
            f"by one. Received: members={layer.members} in '{layer.name}'"
        )
    _check_channels_last(layer)
    if getattr(layer, "groups", 1) != 1:
        raise ValueError(
            "A convolution in groups cannot be made smaller. "
            f"Received: groups={layer.groups} in '{layer.name}'"
        )
    if isinstance(layer, VariationalLayer):
        kernel = layer.kernel.mean
        bias = None if layer.bias is None else layer.bias.mean
    else:
        kernel, bias = layer.kernel, layer.bias
    kernel = np.asarray(kernel, np.float64)
    if bias is None:
        bias = np.zeros(kernel.shape[-1])
    return AffineMap(layer, make, kernel, np.asarray(bias, np.float64))


def _activation_map(layer: keras.Layer) -> Callable[[np.ndarray], np.ndarray] | None:
    if (
        isinstance(layer, layers.Activation)
        and layer.activation not in ELEMENTWISE_ACTIVATIONS
    ):
        return None
    return lambda values: np.asarray(layer(values.astype("float32")), np.float64)


def _check_channels_last(layer: keras.Layer) -> None:
    if getattr(layer, "data_format", None) == "channels_first":
        raise ValueError(
            "Channels must come last for a network to be made smaller. "
            f"Received: data_format='channels_first' in '{layer.name}'"
        )
