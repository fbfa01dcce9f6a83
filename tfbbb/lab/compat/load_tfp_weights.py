"""Weights of a legacy model with `tfp.layers` in a model of Keras 3."""

from typing import Protocol

import keras
import numpy as np

Assignment = tuple[keras.Variable, np.ndarray]


class LegacyModel(Protocol):
    """A model of legacy Keras."""

    layers: list[keras.Layer]
    weights: list[keras.Variable]


def load_tfp_weights(legacy_model: LegacyModel, model: keras.Model) -> None:
    """Copies the weights of a legacy model with `tfp.layers` into a Keras 3 model.

    Layers correspond by name if the model has all of the legacy names, else by their
    order. Each layer takes the weights of the legacy layer as they are, those of
    `tfbbb.lab.compat.tfp_layers` too.

    Nothing is written unless everything fits.

    Example:

    >>> import keras, numpy as np, tf_keras, tensorflow_probability as tfp
    >>> from tfbbb.lab.compat import load_tfp_weights, tfp_layers
    >>> legacy = tf_keras.Sequential([tfp.layers.DenseFlipout(2)])
    >>> legacy.build((None, 3))
    >>> model = keras.Sequential([keras.Input((3,)), tfp_layers.DenseFlipout(2)])
    >>> load_tfp_weights(legacy, model)
    >>> theirs = legacy.layers[0].kernel_posterior.mean()
    >>> np.allclose(model.layers[0].kernel_posterior.mean(), theirs)
    True

    Args:
        legacy_model: A model of legacy Keras (`tf_keras`), built.
        model: The model to write to, built.

    Raises:
        ValueError: One of the models is no built model of its library, or the number
            of layers or weights, or a name or a shape of a weight, differs.
    """
    if not isinstance(model, keras.Model) or not model.built:
        raise ValueError(
            "`model` must be a Keras 3 model that has been built: give it an input "
            f"shape, or call it once. Received: model={model!r}"
        )
    if not hasattr(legacy_model, "layers") or not hasattr(legacy_model, "weights"):
        raise ValueError(
            "`legacy_model` must be a model of legacy Keras. Build it and give it the "
            f"weights of its file by `load_weights`. Received: {legacy_model!r}"
        )
    found: list[Assignment] = []
    for legacy, layer in _pairs(_leaf_layers(legacy_model), _leaf_layers(model)):
        found += _assignments(legacy, layer)
    for variable, value in found:
        if tuple(variable.shape) != value.shape:
            raise ValueError(
                f"The shape of '{variable.path}' is {tuple(variable.shape)}; the "
                f"legacy weight has another shape. Received: shape={value.shape}"
            )
    for variable, value in found:
        variable.assign(value)


def _pairs(
    legacy: list[keras.Layer], layers: list[keras.Layer]
) -> list[tuple[keras.Layer, keras.Layer]]:
    names = [layer.name for layer in legacy]
    if len(legacy) != len(layers):
        raise ValueError(
            f"The model has {len(layers)} layers with weights, "
            f"{[layer.name for layer in layers]}, and the legacy model has another "
            f"number. Received: {len(legacy)} layers, {names}"
        )
    by_name = {layer.name: layer for layer in layers}
    if set(by_name) == set(names):
        layers = [by_name[name] for name in names]
    return list(zip(legacy, layers, strict=True))


def _named_weights(layer: keras.Layer) -> list[tuple[str, keras.Variable]]:
    """Returns the weights with names such as `"kernel_posterior_loc"`, in order."""
    weights = [*layer.trainable_weights, *layer.non_trainable_weights]
    return [(w.name.rsplit("/", 1)[-1].split(":")[0], w) for w in weights]


def _assignments(legacy: keras.Layer, layer: keras.Layer) -> list[Assignment]:
    theirs, own = _named_weights(legacy), _named_weights(layer)
    names, own_names = ([name for name, _ in named] for named in (theirs, own))
    if names != own_names:
        raise ValueError(
            f"The weights of the layer '{layer.name}' are {own_names}; the legacy "
            f"layer '{legacy.name}' has other weights. Received: weights={names}"
        )
    return [(w, v.numpy()) for (_, w), (_, v) in zip(own, theirs, strict=True)]


def _leaf_layers(model: keras.Model | LegacyModel) -> list[keras.Layer]:
    """Returns the layers of a model, and of the models in it, that hold weights."""
    leaves = []
    for layer in model.layers:
        if hasattr(layer, "layers"):
            leaves += _leaf_layers(layer)
        elif layer.weights:
            leaves.append(layer)
    return leaves
