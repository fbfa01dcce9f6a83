"""Whether a network ends in probabilities or positive numbers, where it must not."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tfbbb.base.lazy import keras, np, tf
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
# Larger than any bound of logits that makes sense, and finite in half precision; then
# small enough for the exponentials of code that overflows.
_SCALES = (1e4, 10.0)
_ROWS, _UNKNOWN_SIZE = 64, 4
# Operations of TensorFlow that change neither numbers nor their order.
_SAME_NUMBERS = {"Cast", "EnsureShape", "ExpandDims", "Identity", "Reshape", "Squeeze"}


def check_logits(output: keras.KerasTensor) -> None:
    """Checks that the symbolic output of a network is not made of probabilities.

    The operations after the last layer with weights run on large random numbers, for
    which logits are large too, so the code of a `Lambda` need not be known.
    """
    if gives_probabilities(output):
        raise ValueError(f"{_RULE}{_origin(output)}")


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


def gives_probabilities(output: keras.KerasTensor) -> bool:
    """Whether the numbers of a symbolic output are all between 0 and 1."""
    values = _of_large_numbers(output)
    return values is not None and _are_probabilities(values)


def gives_positive_numbers(output: keras.KerasTensor) -> bool:
    """Whether the numbers of a symbolic output are all positive or 0."""
    values = _of_large_numbers(output)
    return values is not None and bool((values >= 0.0).all())


def _of_large_numbers(output: keras.KerasTensor) -> np.ndarray | None:
    """Returns a symbolic output of large random numbers, None if there is none."""
    for scale in _SCALES:
        try:
            values = _of_random_numbers(output, _Numbers(scale))
        except Exception:
            # Any code may be in the network. What does not run on random numbers of
            # these shapes is checked when the training step is traced.
            return None
        if np.isfinite(values).all():
            return values
    return None


def without_probabilities(output: keras.KerasTensor) -> keras.KerasTensor:
    """Returns the logits that a last softmax or sigmoid takes, else the output.

    The activation of a last layer is replaced by a linear one.
    """
    last = producer(output)
    holder = _with_activation(last)
    numbers = _Numbers(_SCALES[0])
    if holder is not None and _are_probabilities(
        holder.activation(numbers((None, 3), "float32"))
    ):
        holder.activation = keras.activations.linear
        return output
    return sources(output)[0] if _kind(last) else output


class _Numbers:
    """Makes normal random numbers of one scale for the shapes of symbolic tensors."""

    def __init__(self, scale: float):
        self._scale = scale
        self._random = np.random.default_rng(0)

    def __call__(self, shape: tuple[int | None, ...], dtype: str) -> tf.Tensor:
        sizes = [_UNKNOWN_SIZE if size is None else size for size in shape[1:]]
        # A network may end in millions of pixels.
        rows = max(2, min(_ROWS, 10_000 // max(math.prod(sizes), 1)))
        return tf.cast(self._scale * self._random.normal(size=[rows, *sizes]), dtype)


def _of_random_numbers(output: keras.KerasTensor, numbers: _Numbers) -> np.ndarray:
    """Returns the values of a symbolic tensor for random ones of the last layers."""
    starts: dict[int, keras.KerasTensor] = {}
    _collect_starts(output, starts)
    tensors = list(starts.values())
    values = [_start(tensor, numbers) for tensor in tensors]
    if id(output) in starts:
        return np.asarray(values[0], np.float64)
    return np.asarray(keras.Function(tensors, output)(values), np.float64)


def _collect_starts(
    tensor: keras.KerasTensor, starts: dict[int, keras.KerasTensor]
) -> None:
    operation = producer(tensor)
    if getattr(operation, "weights", None) or graph_of(operation) is not None:
        starts[id(tensor)] = tensor
        return
    before = sources(tensor)
    for source in before:
        _collect_starts(source, starts)
    if not before:
        starts[id(tensor)] = tensor


def _start(tensor: keras.KerasTensor, numbers: _Numbers) -> Any:
    operation = producer(tensor)
    graph = graph_of(operation)
    if graph is not None:
        return _of_random_numbers(graph.outputs[index_of_output(tensor)], numbers)
    values = numbers(tensor.shape, tensor.dtype)
    holder = _with_activation(operation)
    return values if holder is None else holder.activation(values)


def _are_probabilities(values: Any) -> bool:
    values = np.asarray(values, dtype=np.float64)
    return bool(((values >= -1e-3) & (values <= 1.0 + 1e-3)).all())


def _with_activation(operation: Any) -> Any:
    """Returns the layer that holds the last activation, also within a wrapper.

    The activation of a recurrent layer is not the last: later steps use its results.
    """
    for layer in (operation, getattr(operation, "layer", None)):
        if isinstance(layer, keras.layers.RNN):
            return None
        if callable(getattr(layer, "activation", None)):
            return layer
    return None


def _kind(operation: Any) -> str | None:
    """Returns "softmax" or "sigmoid" if an operation is one, or ends in one."""
    known: dict[Any, str] = {
        keras.activations.softmax: "softmax",
        keras.activations.sigmoid: "sigmoid",
    }
    activation: Callable[..., Any] | None = getattr(operation, "activation", None)
    if activation in known and not isinstance(operation, keras.layers.RNN):
        return known[activation]
    name = type(operation).__name__.lower()
    return name if name in known.values() else None


def _origin(output: keras.KerasTensor) -> str:
    """Describes where the probabilities of an output come from."""
    tensor, last = output, producer(output)
    while True:
        operation = producer(tensor)
        kind = _kind(operation)
        if kind is not None:
            return f"a {kind} in '{operation.name}'"
        graph = graph_of(operation)
        before = [] if graph is not None else sources(tensor)
        if graph is not None:
            tensor = graph.outputs[index_of_output(tensor)]
        elif len(before) == 1 and not getattr(operation, "weights", None):
            tensor = before[0]
        else:
            return f"probabilities from '{last.name}'"
