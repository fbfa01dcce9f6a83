"""Variables of TensorFlow as variables of Keras layers, and the other way round."""

import warnings
import weakref
from collections.abc import Iterable
from typing import Any

import keras
import tensorflow as tf
import tensorflow_probability as tfp

from tfbbb.base.private_apis import (
    initialize_variable,
    searched_attributes,
    track_variable,
)
from tfbbb.base.types import Array, DType, Initializer, Tensor


class AdoptedVariable(keras.Variable):
    """A Keras variable that shares its value with an existing `tf.Variable`.

    With it a model trains and saves the variables of distributions and of layers of
    legacy Keras, such as a trainable prior. Layers create it by `adopt`.

    Args:
        variable: The `tf.Variable`; its constraint stays in force.
    """

    def __init__(self, variable: tf.Variable):
        self._adopted = variable
        super().__init__(
            # Called where Keras traces before variables have values.
            initializer=lambda shape, dtype: tf.convert_to_tensor(variable),
            shape=variable.shape,
            dtype=variable.dtype,
            trainable=variable.trainable,
            autocast=False,
            # The scopes of Keras are in the path already.
            name=variable.name.split(":")[0].rsplit("/", 1)[-1],
        )
        self.constraint = getattr(variable, "constraint", None)

    def _initialize_with_initializer(self, initializer: Initializer) -> None:
        initialize_variable(self, self._adopted)


class VariableReference(tf.Module, metaclass=type(tfp.util.DeferredTensor)):  # type: ignore[metaclass]
    """A variable of a layer that a distribution reads whenever it is evaluated.

    A distribution turns a Keras variable into a constant when it is constructed; of an
    object with reference semantics, which this is, it keeps the object.
    """

    is_tensor_like = True

    def __init__(self, variable: keras.Variable):
        super().__init__(name=variable.name)
        self.variable = variable

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "variable" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self.__dict__["variable"], name)

    def __array__(self, dtype: DType = None, copy: bool | None = None) -> Array:
        return self.variable.numpy().astype(dtype or self.variable.dtype)

    @property
    def dtype(self) -> tf.DType:
        return tf.as_dtype(self.variable.dtype)

    @property
    def shape(self) -> tf.TensorShape:
        return tf.TensorShape(self.variable.shape)

    def _value(
        self, dtype: DType = None, name: str | None = None, as_ref: bool = False
    ) -> Tensor:
        """Returns the value; by this name TensorFlow Probability asks for it."""
        return tf.convert_to_tensor(self.variable, dtype=dtype, name=name)


# An optimizer updates each Keras variable of a model, so all layers that share a
# `tf.Variable` must share the Keras variable, too.
_ADOPTED: weakref.WeakValueDictionary[Any, AdoptedVariable] = (
    weakref.WeakValueDictionary()
)


def adopt(layer: keras.Layer, variables: Iterable[tf.Variable]) -> None:
    """Makes variables of TensorFlow variables of a layer.

    Keras trains and saves them with the layer; so does `tf.train.Checkpoint`. The
    layer may be built already. A variable that already belongs to the layer is kept.
    """
    for variable in variables:
        adopted = _ADOPTED.get(variable.ref())
        if adopted is None:
            adopted = _ADOPTED[variable.ref()] = AdoptedVariable(variable)
        if not track_variable(layer, adopted):
            continue
        if not layer.trainable:
            adopted.trainable = False
        track_in_checkpoints(layer, variable)


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


def track_in_checkpoints(layer: keras.Layer, variable: keras.Variable) -> None:
    """Makes a variable of a layer part of its checkpoints and SavedModels.

    TensorFlow saves objects that it reaches through attributes, not the variables that
    Keras tracks.
    """
    number = sum(name.startswith(_ATTRIBUTE) for name in vars(layer))
    setattr(layer, f"{_ATTRIBUTE}{number}", variable)


_ATTRIBUTE = "_checkpointed_variable_"


def variables_of(value: Any) -> list[tf.Variable]:
    """Returns the variables that a distribution, bijector or tensor reads, each once.

    The variables of Keras layers are left out: their layers train and save them.
    """
    found: dict[int, tf.Variable] = {}
    searched: dict[int, object] = {}

    def search(value: Any) -> None:
        if isinstance(value, tf.Variable):
            found[id(value)] = value
        elif isinstance(value, dict):
            search(list(value.values()))
        elif isinstance(value, list | tuple):
            for element in value:
                search(element)
        elif not isinstance(value, tf.Module) or isinstance(value, VariableReference):
            return
        elif isinstance(value, _SEARCHED_BY_ATTRIBUTE):
            if id(value) in searched:
                return
            # Hold a reference so that the id is not reused.
            searched[id(value)] = value
            if isinstance(value, tfp.util.DeferredTensor):
                search([value.pretransformed_input, value.also_track])
            else:
                search(value.parameters)
            search(list(searched_attributes(value).values()))
        else:
            search(value.variables)

    search(value)
    return list(found.values())


# `tf.Module.variables` is slow, and fails for distributions with a
# `VariableReference`.
_SEARCHED_BY_ATTRIBUTE = (
    tfp.distributions.Distribution,
    tfp.bijectors.Bijector,
    tfp.math.psd_kernels.PositiveSemidefiniteKernel,
    tfp.util.DeferredTensor,
)
