"""Clones that Keras makes of a model from `inputs, outputs, name` alone.

`keras.models.clone_model`, and with it Keras' wrappers for scikit-learn, runs the graph
of a model on new inputs, and calls the class with the new inputs and outputs. It knows
no other argument, such as the likelihood. So a model marks the outputs of such a run as
its own, and the class takes the missing arguments from the model that they are from.
"""

import inspect
import weakref
from collections.abc import Collection
from typing import Any

import keras
from keras import tree

from tfbbb.base.private_apis import has_constructor_of_functional, is_recorded
from tfbbb.base.types import Config, Options, Structure

# The config of a functional model; that of a subclass has further arguments.
_OF_FUNCTIONAL = ("name", "trainable", "layers", "input_layers", "output_layers")
_OF_GRAPH = ("self", "inputs", "outputs", "name")
_SIMPLE = (str, int, float, bool, type(None))
# By model: Keras would save what is in an attribute as a part of the model.
_given_arguments: weakref.WeakKeyDictionary[Any, Options] = weakref.WeakKeyDictionary()


class Clonable(type):
    """The class of model classes whose clones get all arguments of the constructor.

    A class defines `arguments_of_clone`, the keyword arguments beside `inputs`,
    `outputs` and `name`, and `share_state_with`, which is called with a clone.
    """

    @property
    def __signature__(cls) -> inspect.Signature:
        """The signature that `help` shows: that of the constructor."""
        signature = inspect.signature(cls.__init__)  # type: ignore[misc]
        _, *parameters = signature.parameters.values()
        return signature.replace(parameters=parameters)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        outputs = args[1] if len(args) > 1 else kwargs.get("outputs")
        source = _take_source(outputs)
        is_clone = type(source) is cls
        if is_clone:
            kwargs = {**source.arguments_of_clone(), **kwargs}
        model = super().__call__(*args, **kwargs)
        _given_arguments[model] = _by_name(cls, args, kwargs)
        if is_clone:
            source.share_state_with(model)
        return model


def mark_outputs(model: keras.Model, inputs: Structure, outputs: Structure) -> None:
    """Marks the outputs of a graph, if it was run to clone the model."""
    tensors = tree.flatten((inputs, outputs))
    # Shapes alone are computed with tensors that no layer has recorded.
    if not all(isinstance(x, keras.KerasTensor) and is_recorded(x) for x in tensors):
        return
    cls = type(model)
    if not has_constructor_of_functional(cls) or _reads_config(cls):
        raise TypeError(
            "Keras clones a model by `cls(inputs, outputs, name=name)`, which is not "
            f"how a `{cls.__name__}` is made from its config. Copy it by "
            f"`{cls.__name__}.from_config(model.get_config())`, and its weights by "
            f"`set_weights`. Received: model={model.name!r}"
        )
    for tensor in tree.flatten(outputs):
        tensor.cloned_from = weakref.ref(model)


def arguments_in_config(config: Config) -> Options:
    """Returns the part of a functional model's config that is its subclass's own."""
    return {k: v for k, v in config.items() if k not in _OF_FUNCTIONAL}


def given_arguments(model: keras.Model) -> Options:
    """Returns what a model was made with, by name, but for its layers and its name."""
    return dict(_given_arguments[model])


def arguments_for_config(model: keras.Model, known: Collection[str]) -> Options:
    """Returns what a model was made with that its config lacks."""
    given = {k: v for k, v in _given_arguments[model].items() if k not in known}
    for name, value in given.items():
        if not all(isinstance(part, _SIMPLE) for part in tree.flatten(value)):
            raise NotImplementedError(
                f"A copy of a `{type(model).__name__}` would lack the argument "
                f"`{name}`. Define `get_config`, which returns "
                f"`{{**super().get_config(), {name!r}: ...}}`. "
                f"Received: {name}={value!r}"
            )
    return given


def _by_name(cls: type, args: tuple[Any, ...], kwargs: Options) -> Options:
    """Returns the arguments of a constructor by name, without inputs and outputs."""
    signature = inspect.signature(cls.__init__)  # type: ignore[misc]
    given: Options = {}
    for name, value in signature.bind(None, *args, **kwargs).arguments.items():
        kind = signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_KEYWORD:
            given.update(value)
        elif kind is not inspect.Parameter.VAR_POSITIONAL:
            given[name] = value
    return {k: v for k, v in given.items() if k not in _OF_GRAPH}


def _reads_config(cls: type) -> bool:
    """Whether a class of a user has a `from_config` of its own."""
    own = getattr(cls.from_config, "__func__", None)  # type: ignore[attr-defined]
    return own is not keras.Model.from_config.__func__


def _take_source(outputs: Structure) -> Any:
    """Returns the model whose clone has these outputs, once, or None."""
    source = None
    for tensor in tree.flatten(outputs):
        found = vars(tensor).pop("cloned_from", None) if _is_tensor(tensor) else None
        source = source if found is None else found()
    return source


def _is_tensor(value: object) -> bool:
    return isinstance(value, keras.KerasTensor)
