"""The derivatives of the outputs of each row with respect to weights."""

from collections.abc import Sequence
from typing import NamedTuple

import keras
import numpy as np
import tensorflow as tf
from keras import tree

from tfbbb.base import types
from tfbbb.base.call_context import call_with
from tfbbb.base.types import ArrayLike, Tensor
from tfbbb.bayes.variational_weight import VariationalWeight
from tfbbb.inference.network_function import NetworkFunction
from tfbbb.layers import (
    Conv1DVariational,
    Conv2DVariational,
    DenseVariational,
    VariationalLayer,
)
from tfbbb.layers.linear_variational import LinearVariationalLayer
from tfbbb.layers.row_axes import row_axes
from tfbbb.prediction.folding import IN_ROWS
from tfbbb.prediction.network_pass import NetworkPass
from tfbbb.prediction.plan import Plan
from tfbbb.prediction.structure import Structure


class Products(NamedTuple):
    """One call of a layer whose outputs are `inputs @ kernel + bias` at T places.

    Inputs are [rows, T, I]; signals, [rows, Q, T, U], are the derivatives of each of Q
    numbers by the outputs before the activation.
    """

    inputs: ArrayLike
    signals: ArrayLike


class RowDerivatives(NamedTuple):
    """The derivatives of Q numbers per row, in the dtype of the network.

    `products` are the calls of each layer that is a product with its kernel, by `id` of
    the layer, and `jacobians`, [rows, Q, size], are of all other weights, by their
    `id`. A compiled function can return them.
    """

    products: dict[int, list[Products]]
    jacobians: dict[int, ArrayLike]

    def jacobian(self, layer: keras.Layer, weight: VariationalWeight) -> np.ndarray:
        """Returns the derivatives by a weight of a layer, float64 [rows, Q, size]."""
        if id(weight) in self.jacobians:
            return np.asarray(self.jacobians[id(weight)], np.float64)
        total = np.zeros(())
        for product in self.products[id(layer)]:
            inputs = np.asarray(product.inputs, np.float64)[:, np.newaxis]
            signals = np.asarray(product.signals, np.float64)
            if weight.name == "bias":
                total = total + signals.sum(axis=2)
            elif inputs.shape[2] == 1:
                total = total + inputs.swapaxes(2, 3) * signals
            else:
                total = total + inputs.swapaxes(2, 3) @ signals
        return total.reshape(*total.shape[:2], weight.size)


class RowPass:
    """One pass at fixed weights, of which per-row derivatives can be taken.

    Layers that multiply their inputs by a kernel need one pass backwards for each
    output of all rows together: the derivative of a row by the kernel is the outer
    product of its inputs and its signal. For all other layers each row gets weights of
    its own, equal in value.
    """

    def __init__(
        self,
        network: NetworkFunction,
        values: Sequence[Tensor],
        layers: Sequence[keras.Layer],
        x: types.Structure,
    ):
        self._layers = layers
        self._tape = tf.GradientTape(persistent=True)
        with self._tape:
            self._engine = _RowPass(network, values, layers, x, self._tape)
            self.outputs: tf.Tensor = self._engine.row_outputs(x)

    def derivatives(self, directions: Tensor) -> RowDerivatives:
        """Returns the derivatives of sums of outputs by weights [rows, Q, *outputs]."""
        directions = tf.cast(directions, self.outputs.dtype)
        products = self._engine.products
        calls = [(key, *call) for key, each in products.items() for call in each]
        own = self._engine.own
        sources = [call[2] for call in calls], list(own.values())
        found: list[list[Tensor]] = []
        for q in range(directions.shape[1]):
            signals, gradients = self._tape.gradient(
                self.outputs,
                sources,
                output_gradients=directions[:, q],
                unconnected_gradients="zero",
            )
            found.append([*signals, *gradients])
        together = [tf.stack(each, axis=1) for each in zip(*found, strict=True)]
        by_layer: dict[int, list[Products]] = {}
        for (key, inputs, _), signals in zip(
            calls, together[: len(calls)], strict=True
        ):
            if len(signals.shape) == 3:
                signals = signals[:, :, tf.newaxis]
            elif len(signals.shape) > 4:
                places = inputs.shape[1] or tf.shape(inputs)[1]
                shape = [-1, signals.shape[1], places, signals.shape[-1]]
                signals = tf.reshape(signals, shape)
            by_layer.setdefault(key, []).append(Products(inputs, signals))
        jacobians = {
            key: tf.reshape(
                each, [tf.shape(each)[0], each.shape[1], each.shape[2:].num_elements()]
            )
            for key, each in zip(own, together[len(calls) :], strict=True)
        }
        return RowDerivatives(by_layer, jacobians)


class _RowPass(NetworkPass):
    """Runs a network for rows that are samples of their own, one row each."""

    def __init__(
        self,
        network: NetworkFunction,
        values: Sequence[Tensor],
        layers: Sequence[keras.Layer],
        x: types.Structure,
        tape: tf.GradientTape,
    ):
        structure = Structure.of(network.model)
        axes = row_axes(network.model)
        if axes.unfoldable or not all(map(axes.has_rows_first, layers)):
            raise ValueError(
                "Derivatives row by row need layers whose first axis is the rows of "
                "the model, and no operation that mixes rows. Use "
                '`subset="last_layer"`, or infer with draws, e.g. by `fit`. Received: '
                f"model={network.model.name!r}, "
                f"layers={[layer.name for layer in layers]}"
            )
        rows = tf.shape(tree.flatten(x)[0])[0]
        # The derivatives by a kernel need the inputs and pre-activations of each call.
        super().__init__(
            network.model, structure, Plan(), {}, {}, rows, uses_channels=False
        )
        self._values = dict(zip(map(id, network.weights), values, strict=True))
        self._wanted = {id(layer) for layer in layers}
        self._tape = tape
        # Inputs [rows, places, I] and pre-activations of each call, by layer.
        self.products: dict[int, list[tuple[tf.Tensor, tf.Tensor]]] = {}
        # Weights [rows, *shape] of each row, by weight.
        self.own: dict[int, tf.Tensor] = {}

    def row_outputs(self, x: types.Structure) -> tf.Tensor:
        """Returns the outputs, [rows, ..., P]."""
        with call_with(layer_draws=self):
            tree.map_structure(lambda tensor: self._mark(tensor, IN_ROWS), x)
            (outputs,) = tree.flatten(self._walk(self._model, (x,), {}))
            return self._folded(outputs)

    def outputs(self, layer: LinearVariationalLayer, inputs: Tensor) -> tf.Tensor:
        wanted = id(layer) in self._wanted
        inputs = layer.cast_inputs(inputs)
        factors = product_inputs(layer, inputs) if wanted else None
        if wanted and factors is None:
            return self._by_weights(layer, inputs, folded=True)
        weights = {
            weight.name: tf.cast(self._values[id(weight)], layer.compute_dtype)
            for weight in layer.variational_weights
        }
        outputs = layer.linear(inputs, weights["kernel"])
        if layer.bias is not None:
            outputs += layer.broadcast_bias(weights["bias"], len(outputs.shape))
        if wanted:
            self._tape.watch(outputs)
            self.products.setdefault(id(layer), []).append((factors, outputs))
        return outputs

    def drawn_weights(
        self, layer: VariationalLayer, inputs: Tensor = None
    ) -> dict[str, tf.Tensor]:
        drawn = {}
        for weight in layer.variational_weights:
            if id(weight) not in self.own:
                value = tf.cast(self._values[id(weight)], layer.compute_dtype)
                each = tf.repeat(value[tf.newaxis], self.count, axis=0)
                if id(layer) not in self._wanted:
                    drawn[weight.name] = each
                    continue
                self._tape.watch(each)
                self.own[id(weight)] = each
            drawn[weight.name] = self.own[id(weight)]
        return drawn


def product_inputs(layer: keras.Layer, inputs: Tensor) -> tf.Tensor | None:
    """Returns the inputs [rows, T, I] of a product at T places, or None."""
    if not is_product(layer):
        return None
    if type(layer) is DenseVariational:
        if len(inputs.shape) == 2:
            return inputs[:, tf.newaxis]
        places = inputs.shape[1:-1].num_elements() or -1
        return tf.reshape(inputs, [tf.shape(inputs)[0], places, inputs.shape[-1]])
    size, strides = layer.kernel_size, layer.strides
    rates, padding = layer.dilation_rate, layer.padding
    if len(size) == 1:
        if padding == "causal":
            before = rates[0] * (size[0] - 1)
            inputs, padding = tf.pad(inputs, [[0, 0], [before, 0], [0, 0]]), "valid"
        inputs = inputs[:, :, tf.newaxis]
        size, strides, rates = (*size, 1), (*strides, 1), (*rates, 1)
    patches = tf.image.extract_patches(
        inputs, [1, *size, 1], [1, *strides, 1], [1, *rates, 1], padding.upper()
    )
    places = patches.shape[1:-1].num_elements() or -1
    return tf.reshape(patches, [tf.shape(patches)[0], places, patches.shape[-1]])


def is_product(layer: keras.Layer) -> bool:
    """Whether a layer multiplies vectors by its kernel: dense, or a convolution."""
    if type(layer) is DenseVariational:
        return True
    return (
        type(layer) in (Conv1DVariational, Conv2DVariational)
        and layer.groups == 1
        and layer.data_format == "channels_last"
    )
