"""What Keras saves of a layer, from one layer to another."""

import tempfile
from typing import Any

import keras

from tfbbb.layers.sharing import sublayers


def copy_state(source: keras.Layer, target: keras.Layer) -> None:
    """Gives a built layer the variables, and the assets if any, of one of its kind."""
    pairs = zip(sublayers(source), sublayers(target), strict=True)
    for layer, new in pairs:
        store: dict[str, Any] = {}
        layer.save_own_variables(store)
        if store:
            new.load_own_variables(store)
        if hasattr(layer, "save_assets"):
            with tempfile.TemporaryDirectory() as directory:
                layer.save_assets(directory)
                new.load_assets(directory)
