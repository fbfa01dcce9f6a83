"""What the layers of a model are called in a report."""

import keras

from tfbbb.layers import VariationalLayer
from tfbbb.layers.sharing import sublayers


def named_layers(model: keras.Model) -> dict[str, VariationalLayer]:
    """Returns the built variational layers of a model by name.

    Where a name is not unique, layers are told apart by their whole paths.
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
