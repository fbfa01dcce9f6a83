"""The inputs of a prediction: in the structure of a model's own inputs, or compared."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import tree

from tfbbb.base import array_ops as ops
from tfbbb.base.numbers import in_dtype
from tfbbb.base.private_apis import graph_of
from tfbbb.base.types import ArrayLike, Structure, Tensor
from tfbbb.prediction.gathered import SparseRows, gathered
from tfbbb.tables.values import MISSING_DATE

# Codes of texts: float32 represents them exactly.
_CODES = 1 << 24
NO_TEXT = np.float64(0x9AE16A3B2F90404F % _CODES)


def input_tensors(model: keras.Model, x: ArrayLike) -> Structure:
    """Returns `x` as tensors, in the data types of the model's inputs.

    Without a graph, floats have Keras' float type.
    """
    x, *_ = gathered(x)
    graph = graph_of(model)
    if graph is None:
        tensors = _converted(x)
    else:
        values = zip(flat_inputs(graph, x), graph.inputs, strict=True)
        flat = [_input_tensor(value, reference) for value, reference in values]
        tensors = tree.pack_sequence_as(graph.input, flat)
    _check_rows(tree.flatten(tensors))
    return tensors


def flat_inputs(graph: keras.Model, x: ArrayLike) -> list[ArrayLike]:
    """Returns the arrays of `x`, as they are, in the order of a graph's inputs.

    The model finds the values of a dictionary by name, in any order: by the keys of its
    own dictionary of inputs, or by the names of its inputs in a list. It leaves out
    values of other names.
    """
    if len(graph.inputs) == 1 and not isinstance(x, dict):
        return [_single(graph.inputs[0], x)]
    leaves = in_order(graph.input, x, lambda tensor: tensor.name)
    if leaves is None or any(leaf is None for leaf in leaves):
        wanted = tree.map_structure(lambda tensor: tensor.name, graph.input)
        received = tree.map_structure(lambda value: type(value).__name__, x)
        raise ValueError(
            "Pass the inputs in the structure of the model's inputs, or by name. "
            f"The model takes {wanted!s:.1000}. Received: {received!s:.1000}"
        )
    return leaves


def in_order(form: Any, given: Any, name: Callable[[Any], str]) -> list[Any] | None:
    """Returns what is given for each leaf of a form, None if it does not fit.

    The leaves are in the order in which Keras flattens the form. In place of a list
    there may be a dictionary by the names of the leaves, and in place of a dictionary a
    list if Keras flattens it in its own order.
    """
    if isinstance(form, dict):
        is_list = isinstance(given, list | tuple) and len(given) == len(form)
        if is_list and list(form) == sorted(form):
            given = dict(zip(form, given, strict=True))
        if not (isinstance(given, dict) and set(form) <= set(given)):
            return None
        names = tree.flatten({name: name for name in form})
        parts = [(form[name], given[name]) for name in names]
    elif isinstance(form, list | tuple):
        if isinstance(given, dict) and not any(map(tree.is_nested, form)):
            names = list(map(name, form))
            given = [given[x] for x in names] if set(names) <= set(given) else None
        if not isinstance(given, list | tuple) or len(given) != len(form):
            return None
        parts = list(zip(form, given, strict=True))
    else:
        if isinstance(given, dict):
            if name(form) in given:
                given = given[name(form)]
            elif "class_name" not in given:  # That of the config of a likelihood.
                return None
        return [given]
    leaves: list[Any] = []
    for part in parts:
        found = in_order(*part, name)
        if found is None:
            return None
        leaves += found
    return leaves


def _single(reference: keras.KerasTensor, x: ArrayLike) -> Structure:
    """Returns the array of a model's only input, which may come in a list."""
    alone = isinstance(x, list | tuple) and len(x) == 1
    if alone and not _fits(reference, np.shape(x)) and _fits(reference, np.shape(x[0])):
        return x[0]
    return x


def _converted(x: ArrayLike) -> Structure:
    """Returns the inputs of a model without a graph, as tensors in their structure."""
    if isinstance(x, dict):
        return {name: _nested(value) for name, value in x.items()}
    if isinstance(x, list | tuple):
        return type(x)(map(_nested, x))
    return _tensor(x)


def _nested(x: ArrayLike) -> Structure:
    # A list of plain numbers is an array.
    is_structure = isinstance(x, dict) or (
        isinstance(x, list | tuple)
        and any(isinstance(part, dict) or len(getattr(part, "shape", ())) for part in x)
    )
    return _converted(x) if is_structure else _tensor(x)


def _tensor(value: ArrayLike) -> tf.Tensor:
    if tf.is_tensor(value):
        floating = value.dtype.is_floating
        return tf.cast(value, keras.config.floatx()) if floating else value
    value = np.asarray(value)
    if value.dtype == object:
        value = value.astype(str)
    if np.issubdtype(value.dtype, np.floating):
        value = value.astype(keras.config.floatx(), copy=False)
    return tf.constant(value)


def _input_tensor(value: ArrayLike, reference: keras.KerasTensor) -> tf.Tensor:
    """Returns an input of a graph in its data type; raises ValueError if impossible.

    Sparse inputs stay so, and become dense block by block.
    """
    tensor: Any = SparseRows.of(value)
    if isinstance(tensor, SparseRows):
        tensor = tensor.astype(keras.config.floatx())
    elif reference.dtype == "string":
        tensor = _tensor(value)
        if tensor.dtype != tf.string:
            raise _other_type(reference, tensor.dtype.name)
    else:
        tensor = tf.constant(_numbers(value, reference))
    if not _fits(reference, tensor.shape):
        raise ValueError(
            f"The input '{reference.name}' of the model has the shape "
            f"{['rows', *reference.shape[1:]]}. Received: shape={list(tensor.shape)}"
        )
    return tensor


def _numbers(value: ArrayLike, reference: keras.KerasTensor) -> np.ndarray:
    """Returns numbers in the data type of an input, if that can hold them."""
    numbers = np.asarray(value)
    if numbers.dtype == object:
        # Columns of a frame that are of several types.
        try:
            numbers = numbers.astype(np.float64)
        except (TypeError, ValueError):
            raise _other_type(reference, "values that are not numbers") from None
    elif numbers.dtype.kind not in "biuf":
        is_text = numbers.dtype.kind in "SU"
        raise _other_type(reference, "string" if is_text else numbers.dtype.name)
    if reference.dtype == "bfloat16":
        return numbers.astype(keras.config.floatx(), copy=False)
    converted, wrong = in_dtype(numbers, reference.dtype)
    if wrong is not None and wrong.any():
        place = tuple(np.argwhere(wrong)[0].tolist())
        raise _other_type(reference, f"{numbers[place]} in row {place[0]}")
    return converted


def _other_type(reference: keras.KerasTensor, received: str) -> ValueError:
    return ValueError(
        f"The input '{reference.name}' of the model takes {reference.dtype}. "
        f"Received: {received}"
    )


def _fits(reference: keras.KerasTensor, shape: Sequence[int]) -> bool:
    wanted, received = list(reference.shape[1:]), list(shape[1:])
    # Keras adds or drops a last dimension of size 1.
    allowed = [received, [*received, 1]]
    if received[-1:] == [1]:
        allowed.append(received[:-1])
    return len(shape) > 0 and any(
        len(wanted) == len(sizes)
        and all(
            size in (None, other) for size, other in zip(wanted, sizes, strict=True)
        )
        for sizes in allowed
    )


def _check_rows(tensors: Sequence[tf.Tensor]) -> None:
    if not tensors or any(len(tensor.shape) == 0 for tensor in tensors):
        raise ValueError(
            "Every input needs a first dimension, the rows. Received: inputs of shapes "
            f"{[list(tensor.shape) for tensor in tensors]}"
        )
    lengths = [len(tensor) for tensor in tensors]
    if len(set(lengths)) > 1:
        raise ValueError(
            "Every input of the model needs the same number of rows. "
            f"Received: inputs of {lengths} rows"
        )
    if lengths[0] == 0:
        raise ValueError("There are no rows to predict. Received: x with 0 rows")


def columns_of(
    x: Any, names: Sequence[str] | None = None
) -> dict[str | int, ArrayLike]:
    """Returns rows as columns by name, or by number if they have no names.

    Texts without a value become empty, dates seconds since 1970.
    """
    columns: dict[str | int, Any]
    if hasattr(x, "columns") and hasattr(x, "__getitem__"):
        x = {str(name): x[name] for name in x.columns}
    if names is not None:
        if not isinstance(x, Mapping) or any(name not in x for name in names):
            given = sorted(x) if isinstance(x, Mapping) else type(x).__name__
            raise ValueError(
                f"Rows must be a dictionary with the columns {list(names)}. "
                f"Received: {given}"
            )
        columns = {name: x[name] for name in names}
    elif isinstance(x, Mapping):
        columns = dict(x)
    else:
        flat = tree.flatten(x)
        # Rows may be lists of numbers.
        plain = isinstance(x, list | tuple) and flat and np.ndim(flat[0]) == 0
        columns = dict(enumerate([x] if plain else flat))
    if not columns:
        raise ValueError(f"Rows need at least one column. Received: {x!r}")
    if not tf.executing_eagerly():
        return columns
    columns = {name: _as_array(column) for name, column in columns.items()}
    lengths = {column.shape[:1] for column in columns.values()}
    if len(lengths) > 1 or () in lengths:
        shapes = {name: column.shape for name, column in columns.items()}
        raise ValueError(
            "All columns need an axis of rows, and the same number of them. "
            f"Received: columns of shapes {shapes!s:.500}"
        )
    return columns


def _as_array(column: Any) -> np.ndarray:
    array = np.asarray(column)
    if array.dtype.kind == "M":
        return array.astype("datetime64[s]").astype(np.int64)
    if array.dtype.kind != "O":
        return array
    missing = np.array([value is None or value != value for value in array.flat])
    texts = np.array([isinstance(value, str | bytes) for value in array.flat])
    if texts.any() and (texts | missing).all():
        return np.where(missing.reshape(array.shape), "", array).astype(object)
    return np.where(missing.reshape(array.shape), np.nan, array).astype(np.float64)


def matrix_of(columns: Mapping[Any, ArrayLike]) -> tuple[Tensor, np.ndarray]:
    """Returns columns as a matrix, float64 [n, p], and which of it are texts, [p].

    Missing numbers are NaN, and texts are codes.
    """
    parts, texts = [], []
    for column in columns.values():
        is_text = tf.as_dtype(column.dtype) == tf.string
        given = tf.strings.to_hash_bucket_fast(column, _CODES) if is_text else column
        # Codes of an array are an array.
        given = given if tf.is_tensor(column) else np.asarray(given)
        part = ops.cast(given, "float64")
        if column.dtype == np.int64:
            part = ops.where(column == MISSING_DATE, np.float64(np.nan), part)
        width = math.prod(part.shape[1:])
        parts.append(ops.reshape(part, [-1, width]))
        texts += [is_text] * width
    return ops.concat(parts, axis=1), np.array(texts, bool)
