"""Variables of TensorFlow as variables of Keras layers."""

import warnings
import weakref
from collections.abc import Iterable
from typing import Any

import keras
import tensorflow as tf

from tfbbb.base.private_apis import initialize_variable, track_variable
from tfbbb.base.types import Initializer


class AdoptedVariable(keras.Variable):
    """A Keras variable that shares value and constraint with a `tf.Variable`."""

    def __init__(self, variable: tf.Variable):
        self._adopted = variable
        super().__init__(
            # Called where Keras traces before variables have values.
            initializer=lambda shape, dtype: tf.convert_to_tensor(variable),
            shape=variable.shape,
            dtype=variable.dtype,
            trainable=variable.trainable,
            # Posteriors and divergences stay in full precision.
            autocast=False,
            # The scopes of Keras are in the path already.
            name=variable.name.split(":")[0].rsplit("/", 1)[-1],
        )
        self.constraint = getattr(variable, "constraint", None)

    def _initialize_with_initializer(self, initializer: Initializer) -> None:
        initialize_variable(self, self._adopted)


# An optimizer updates each Keras variable of a model, so all layers that share a
# `tf.Variable` must share the Keras variable, too.
_ADOPTED: weakref.WeakValueDictionary[Any, AdoptedVariable] = (
    weakref.WeakValueDictionary()
)


def adopt(layer: keras.Layer, variables: Iterable[tf.Variable]) -> list[tf.Variable]:
    """Makes variables of TensorFlow variables of a layer; returns those that are new.

    Keras trains and saves them with the layer; so does `tf.train.Checkpoint`. The
    layer may be built already.
    """
    new = []
    for variable in variables:
        adopted = _ADOPTED.get(variable.ref())
        if adopted is None:
            adopted = _ADOPTED[variable.ref()] = AdoptedVariable(variable)
        if not track_variable(layer, adopted):
            continue
        if not layer.trainable:
            adopted.trainable = False
        new.append(variable)
        # TensorFlow saves objects that it reaches through attributes, not the variables
        # that Keras tracks.
        number = sum(name.startswith(_ATTRIBUTE) for name in vars(layer))
        setattr(layer, f"{_ATTRIBUTE}{number}", variable)
    return new


_ATTRIBUTE = "_checkpointed_variable_"


def adopted_variable(variable: tf.Variable) -> keras.Variable:
    """Returns the Keras variable of a variable that a layer has adopted."""
    return _ADOPTED[variable.ref()]


def warn_of_others(layer: keras.Layer, read: Iterable[tf.Variable]) -> None:
    """Warns once of variables that a function of a layer reads and no layer trains.

    A distribution whose parameter is computed from a variable does not refer to the
    variable.
    """
    known = {variable.value.ref() for variable in layer.variables}
    others = [variable.name for variable in read if variable.ref() not in known]
    if others and not getattr(layer, "_warned_of_others", False):
        layer._warned_of_others = True
        warnings.warn(
            f"The layer '{layer.name}' does not train variables that its function "
            "reads: the distribution has only tensors computed from them. Pass the "
            "distribution the variable itself, a `tfp.util.TransformedVariable` or a "
            f"`tfp.util.DeferredTensor`. Received: {others}",
            stacklevel=2,
        )


def variables_of(*values: Any) -> list[tf.Variable]:
    """Returns the variables that distributions or bijectors read, each once."""
    found: dict[Any, tf.Variable] = {}
    for value in values:
        for variable in value.variables if isinstance(value, tf.Module) else ():
            found[variable.ref()] = variable
    return list(found.values())
