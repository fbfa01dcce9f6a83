"""The layers of a model that hold weights, and their weights."""

import dataclasses
from typing import Protocol

import keras
import numpy as np


class LegacyModel(Protocol):
    """A model of legacy Keras."""

    layers: list[keras.Layer]
    weights: list[keras.Variable]


@dataclasses.dataclass(frozen=True)
class LayerWeights:
    """The weights of one layer.

    Attributes:
        name: Name of the layer; None if the source has none.
        weights: Values by name, e.g. `"kernel_posterior_loc"`, in their order; names
            are None if the source has none.
    """

    name: str | None
    weights: list[tuple[str | None, np.ndarray]]


def leaf_layers(model: keras.Model | LegacyModel) -> list[keras.Layer]:
    """Returns the layers of a model, and of the models in it, that hold weights."""
    leaves = []
    for layer in model.layers:
        if hasattr(layer, "layers"):
            leaves += leaf_layers(layer)
        elif layer.weights:
            leaves.append(layer)
    return leaves


def ordered_weights(layer: keras.Layer) -> list[keras.Variable]:
    """Returns the weights of a layer in the order of legacy files."""
    return [*layer.trainable_weights, *layer.non_trainable_weights]


def is_variational(layer: keras.Layer) -> bool:
    """Whether a layer is a variational layer of `tfbbb.layers`."""
    return hasattr(layer, "variational_weights")
