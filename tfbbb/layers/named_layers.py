"""Names of a model's variational layers for reports."""

from __future__ import annotations

import keras

from tfbbb.base.private_apis import sublayers
from tfbbb.layers import VariationalLayer


def named_layers(model: keras.Model) -> dict[str, VariationalLayer]:
    """Returns the built variational layers of a model by name.

    A layer whose name is not unique gets its whole path.
    """
    layers = [
        layer
        for layer in sublayers(model)
        if isinstance(layer, VariationalLayer) and layer.built
    ]
    names = [layer.name for layer in layers]
    return {
        layer.name if names.count(layer.name) == 1 else layer.path: layer
        for layer in layers
    }
