"""Dropout as a stochastic layer: Monte Carlo dropout (Gal and Ghahramani 2016)."""

import math

import keras
import tensorflow as tf
from scipy import special

from tfbbb.base.private_apis import graph_of
from tfbbb.base.types import Tensor

_ELEMENTWISE = (
    keras.layers.Dropout,
    keras.layers.SpatialDropout1D,
    keras.layers.SpatialDropout2D,
    keras.layers.SpatialDropout3D,
    keras.layers.GaussianDropout,
    keras.layers.AlphaDropout,
)


def is_dropout(operation: keras.Operation) -> bool:
    """Whether a layer drops out in training, and nothing else."""
    return isinstance(operation, _ELEMENTWISE)


def check_dropout(model: keras.Model, layers: list[keras.Layer]) -> None:
    """Raises ValueError for dropout within another layer, which no pass draws."""
    for layer in layers:
        rates = {
            name: getattr(layer, name, 0)
            for name in ("dropout", "recurrent_dropout", "_dropout")
        }
        given = {
            k.lstrip("_"): v for k, v in rates.items() if isinstance(v, float) and v
        }
        if given:
            raise ValueError(
                "Monte Carlo dropout draws layers such as `keras.layers.Dropout`; "
                f"'{layer.name}' drops within itself. Put dropout layers around it, or "
                f"leave `include_dropout` out. Received: {given}"
            )
    drawn = {id(layer) for layer in _graph_layers(model)}
    for layer in layers:
        if is_dropout(layer) and float(layer.rate) and id(layer) not in drawn:
            raise ValueError(
                "Monte Carlo dropout draws the dropout layers of functional and "
                f"sequential models; '{layer.name}' is called from the code of another "
                "layer or of a subclassed model. Put it between the layers of such a "
                f"model, or leave `include_dropout` out. Received: {layer!r}"
            )


def _graph_layers(model: keras.Layer) -> list[keras.Layer]:
    """Returns the operations of a model's graph, and of the models in it."""
    graph = graph_of(model)
    if graph is None:
        return [model]
    return [layer for part in graph.operations for layer in _graph_layers(part)]


def dropped(layer: keras.Layer, inputs: Tensor, noise: Tensor) -> tf.Tensor:
    """Returns a dropout layer's outputs of inputs [S, rows, ...] and normal noise.

    The noise is [S, 1, ...] of the shape of `mask_shape`.
    """
    rate, dtype = float(layer.rate), inputs.dtype
    noise = tf.cast(noise, dtype)
    if isinstance(layer, keras.layers.GaussianDropout):
        return inputs * (1.0 + noise * math.sqrt(rate / (1.0 - rate)))
    # A unit is kept if its noise is below the quantile of the share of kept units.
    kept = noise < tf.constant(special.ndtri(1.0 - rate), dtype)
    if not isinstance(layer, keras.layers.AlphaDropout):
        return tf.where(kept, inputs / (1.0 - rate), tf.zeros([], dtype))
    # Klambauer et al. 2017: what is dropped goes to the least value of SELU, and an
    # affine map restores mean and variance.
    least = -1.7580993408473766
    scale = ((1.0 - rate) * (1.0 + rate * least**2)) ** -0.5
    return scale * tf.where(kept, inputs, tf.constant(least, dtype)) - (
        scale * least * rate
    )


def mask_shape(layer: keras.Layer, inputs: Tensor) -> list[int | tf.Tensor]:
    """Returns the shape of one draw's noise: a row's, with 1 where units share it."""
    shape = [*inputs.shape[1:]]
    dynamic = tf.shape(inputs)
    shape = [dynamic[axis] if n is None else n for axis, n in enumerate(shape, 1)]
    given = getattr(layer, "noise_shape", None)
    if isinstance(layer, keras.layers.SpatialDropout1D):
        given = (None, 1, None)
    elif isinstance(
        layer, keras.layers.SpatialDropout2D | keras.layers.SpatialDropout3D
    ):
        ones = [1] * (len(shape) - 1)
        last = layer.data_format == "channels_last"
        given = (None, *ones, None) if last else (None, None, *ones)
    if given is not None:
        pairs = zip(given[1:], shape, strict=True)
        shape = [size if one is None else one for one, size in pairs]
    return shape
