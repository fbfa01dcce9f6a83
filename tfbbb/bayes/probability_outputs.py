"""Whether a network ends in probabilities, where it must not."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from tfbbb.base.lazy import keras, tf
from tfbbb.base.private_apis import (
    graph_of,
    has_activation_logits,
    index_of_output,
    producer,
    sources,
)
from tfbbb.base.types import Tensor

_RULE = (
    "A likelihood of classes takes logits and computes probabilities itself; a second "
    "time would flatten them. End the network with linear outputs. Received: "
)
# Activations whose results are probabilities.
PROBABILITIES = ("softmax", "sigmoid")
# What changes neither numbers nor their order: in TensorFlow, and in Keras.
_SAME_NUMBERS = {"Cast", "EnsureShape", "ExpandDims", "Identity", "Reshape", "Squeeze"}
_SAME_LAYERS = {*_SAME_NUMBERS, "Dropout", "Flatten", "Permute", "Transpose"}


def check_logits(output: keras.KerasTensor) -> None:
    """Checks that the symbolic output of a network is no softmax or sigmoid."""
    operation = producer(output)
    kind = activation_name(operation)
    if kind in PROBABILITIES:
        raise ValueError(f"{_RULE}a {kind} in '{operation.name}'")
    graph = graph_of(operation)
    if graph is not None:
        check_logits(graph.outputs[index_of_output(output)])
    elif type(operation).__name__ in _SAME_LAYERS:
        for source in sources(output):
            check_logits(source)


def check_logits_of_step(outputs: Tensor) -> None:
    """Checks outputs while a step is traced, which shows the code of every layer."""
    kind = None
    if has_activation_logits(outputs):
        kind = "softmax or sigmoid"
    elif not tf.executing_eagerly() and tf.is_tensor(outputs):
        operation = outputs.op
        while operation.type in _SAME_NUMBERS:
            operation = operation.inputs[0].op
        if operation.type in ("Sigmoid", "Softmax"):
            kind = operation.type.lower()
    if kind is not None:
        raise ValueError(f"{_RULE}a {kind} at the end of the network")


def without_activation(
    output: keras.KerasTensor, names: Collection[str]
) -> tuple[keras.KerasTensor, str | None]:
    """Returns an output before a last activation of these names, and its name or None.

    The activation of a last layer is replaced by a linear one.
    """
    last = producer(output)
    name = activation_name(last)
    if name not in names:
        return output, None
    if _holder(last) is None:
        return sources(output)[0], name
    _holder(last).activation = keras.activations.linear
    return output, name


def activation_name(operation: Any) -> str:
    """Returns the name of the activation that an operation is, or ends in."""
    holder = _holder(operation)
    named = type(operation) if holder is None else holder.activation
    name: str = getattr(named, "__name__", "").lower()
    if name == "exp":
        return "exponential"
    return next((known for known in PROBABILITIES if name.startswith(known)), name)


def _holder(operation: Any) -> Any:
    """Returns the layer that holds the last activation, also within a wrapper."""
    for layer in (operation, getattr(operation, "layer", None)):
        if isinstance(layer, keras.layers.RNN):
            # Later steps use the results of its activation.
            return None
        if callable(getattr(layer, "activation", None)):
            return layer
    return None
