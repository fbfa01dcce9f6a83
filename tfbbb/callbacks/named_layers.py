"""What the layers of a model are called in a report."""

import keras

from tfbbb.layers import VariationalLayer
from tfbbb.layers.sharing import sublayers


def named_layers(model: keras.Model) -> dict[str, VariationalLayer]:
    """Returns the built variational layers of a model by name.

    One that is part of another layer has the name of both, as in `attention/query`;
    where that is not unique, layers are told apart by their whole paths.
    """
    everything = sublayers(model)
    models = {layer.name for layer in everything if isinstance(layer, keras.Model)}
    layers = [
        layer
        for layer in everything
        if isinstance(layer, VariationalLayer) and layer.built
    ]
    names = [_without(models, layer.path) for layer in layers]
    return {
        name if names.count(name) == 1 else layer.path: layer
        for name, layer in zip(names, layers, strict=True)
    }


def _without(models: set[str], path: str) -> str:
    *owners, name = path.split("/")
    return "/".join([*(owner for owner in owners if owner not in models), name])
