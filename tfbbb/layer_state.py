"""What Keras saves of a layer, from one layer to another."""

import tempfile
from typing import Any

import keras

from tfbbb.private_apis import sublayers


def copy_state(source: keras.Layer, target: keras.Layer) -> None:
    """Gives a built layer, and all layers in it, the state of one of its kind."""
    for layer, new in zip(sublayers(source), sublayers(target), strict=True):
        copy_own_state(layer, new)


def copy_own_state(source: keras.Layer, target: keras.Layer) -> None:
    """Gives a built layer the variables, and the assets if any, that are its own.

    Some layers compute from their variables what they work with: unlike `set_weights`,
    this sees to that.
    """
    store: dict[str, Any] = {}
    source.save_own_variables(store)
    if store:
        target.load_own_variables(store)
    if hasattr(source, "save_assets"):
        with tempfile.TemporaryDirectory() as directory:
            source.save_assets(directory)
            target.load_assets(directory)
