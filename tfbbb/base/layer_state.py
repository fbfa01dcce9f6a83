"""Copies the state that Keras saves from one layer to another."""

import tempfile

import keras

from tfbbb.base.private_apis import sublayers
from tfbbb.base.types import ArrayLike


def copy_state(source: keras.Layer, target: keras.Layer) -> None:
    """Copies the state of a layer, with all layers in it, to one of the same kind."""
    for layer, new in zip(sublayers(source), sublayers(target), strict=True):
        copy_own_state(layer, new)


def copy_own_state(source: keras.Layer, target: keras.Layer) -> None:
    """Copies the variables and assets of a layer, without those of layers in it.

    Some layers compute other state from their variables. Keras does so when it loads
    variables, but not in `set_weights`.
    """
    store: dict[str, ArrayLike] = {}
    source.save_own_variables(store)
    if store:
        target.load_own_variables(store)
    if hasattr(source, "save_assets"):
        with tempfile.TemporaryDirectory() as directory:
            source.save_assets(directory)
            target.load_assets(directory)
