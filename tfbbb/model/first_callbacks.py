"""Runs callbacks of a model before the callbacks of the user."""

import contextlib
from collections.abc import Iterator, Sequence

import keras
from keras import tree

from tfbbb.base.types import Options


@contextlib.contextmanager
def first_callbacks(
    model: keras.Model,
    arguments: Options,
    callbacks: Sequence[keras.callbacks.Callback],
) -> Iterator[None]:
    """Runs callbacks before the others in one `fit`."""
    given = arguments.get("callbacks")
    if not isinstance(given, keras.callbacks.CallbackList):
        others = tree.flatten(given) if given is not None else []
        arguments["callbacks"] = [*callbacks, *others]
        yield
        return
    # Keras sets model and parameters only of the callbacks that it adds itself.
    for callback in callbacks:
        callback.set_model(model)
        callback.set_params(given.params)
    given.callbacks[:0] = callbacks
    try:
        yield
    finally:
        for callback in callbacks:
            given.callbacks.remove(callback)
