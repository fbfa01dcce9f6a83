"""The features of a model's inputs, and the tensors that carry them."""

import keyword
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import keras
import numpy as np
import tensorflow as tf
from keras import tree

from tfbbb.base.private_apis import input_structure
from tfbbb.base.types import Structure, Tensor
from tfbbb.export.manifest import Feature
from tfbbb.tables.values import MISSING_DATE

if TYPE_CHECKING:
    from tfbbb.tables import Column, Schema

# Arguments of the signatures, and of the method that TensorFlow binds them with.
_RESERVED = ("num_samples", "seed", "self")


def features_of(
    model: keras.Model, schema: "Schema | None", names: Sequence[str] | None
) -> tuple[Feature, ...]:
    """Returns the features of a model in the order of its inputs."""
    columns = {column.name: column for column in schema.features} if schema else {}
    if has_columns(model):
        inputs = model.input
        _check_names(columns or names or inputs, list(inputs))
        tensors = _tensor_names(list(inputs))
        found = tuple(
            _feature(name, tensor, tensors[name], columns)
            for name, tensor in inputs.items()
        )
    else:
        (tensor,) = model.inputs
        width = math.prod(tensor.shape[1:])
        given = list(columns) if schema else names
        default = [f"x{i}" for i in range(width)]
        given = list(default if given is None else given)
        if len(set(given)) != width or len(given) != width:
            raise ValueError(
                f"The model takes {width} features, each with a name of its own. "
                f"Received: feature names {given}"
            )
        found = tuple(_feature(name, tensor, "inputs", columns) for name in given)
    rare = any(feature.dtype not in (None, "float64") for feature in found)
    if schema is None or rare or not _imputes(model, found):
        return found
    return tuple(replace(feature, imputed=not feature.role) for feature in found)


def _kind(
    name: str, tensor: keras.KerasTensor, columns: Mapping[str, "Column"]
) -> Literal["numeric", "categorical", "date"]:
    if tensor.dtype == "string":
        return "categorical"
    return "date" if name in columns and columns[name].kind == "date" else "numeric"


def _feature(
    name: str, given: keras.KerasTensor, tensor: str, columns: Mapping[str, "Column"]
) -> Feature:
    """Describes a feature that lies in the input `given`, carried by a tensor."""
    kind = _kind(name, given, columns)
    # NumPy has no bfloat16: Keras converts such inputs.
    usual = kind != "numeric" or given.dtype in ("float32", "bfloat16")
    dtype = None if usual else given.dtype
    if name not in columns:
        return Feature(name, kind, missing=False, tensor=tensor, dtype=dtype)
    column = columns[name]
    notation = None if column.notation is None else column.notation.to_dict()
    listed = kind == "categorical" and not column.buckets
    return Feature(
        name,
        kind,
        missing=column.missing,
        tensor=tensor,
        notation=notation,
        low=column.low,
        high=column.high,
        categories=column.categories if listed else None,
        dtype=dtype,
        role=column.role,
    )


def event_feature(schema: "Schema | None") -> Feature | None:
    """Returns the column of the events of a table, which no tensor carries."""
    if schema is None or schema.event is None:
        return None
    given = schema.event.notation
    notation = None if given is None else given.to_dict()
    return Feature(
        schema.event.name, "numeric", False, "", notation=notation, role="event"
    )


def _imputes(model: keras.Model, features: Sequence[Feature]) -> bool:
    """Whether a model has finite outputs where all of its inputs are missing."""
    missing = {"numeric": np.nan, "date": MISSING_DATE, "categorical": ""}
    tensors = [
        tf.constant(
            [1.0 if f.role else missing[f.kind]],
            tf.int64 if f.kind == "date" else f.dtype,
        )
        for f in features
    ]
    if not has_columns(model):
        shape = [1, *model.inputs[0].shape[1:]]
        tensors = [tf.reshape(tf.stack(tensors, axis=-1), shape)]
    # The seeds of the layers stay as they are.
    with keras.StatelessScope():
        outputs = model(packing(model, features)(tensors), training=False)
    return bool(np.isfinite(np.asarray(outputs)).all())


def _check_names(given: Iterable[str], inputs: list[str]) -> None:
    if set(given) != set(inputs):
        raise ValueError(
            "The feature names must be those of the model's inputs, "
            f"{sorted(inputs)}. Received: {sorted(given)}"
        )


def has_columns(model: keras.Model) -> bool:
    """Whether the model takes a dictionary of columns; else it takes one tensor."""
    structure = input_structure(model)
    sizes = [tensor.shape[1:] for tensor in model.inputs]
    if isinstance(structure, dict) and all(size in ((), (1,)) for size in sizes):
        return True
    is_single = isinstance(structure, keras.KerasTensor | list | tuple)
    if is_single and len(sizes) == 1 and sizes[0] and None not in sizes[0]:
        return False
    shapes = tree.map_structure(lambda tensor: tuple(tensor.shape), structure)
    raise ValueError(
        "An exported model has one input tensor, whose dimensions after the rows are "
        "known, or a dictionary of columns [rows]. Give sequences one length, such as "
        "`keras.Input((50,))`, and pad shorter ones; join several tensors to one, and "
        f"split it inside the model. Received: inputs of shape {shapes}"
    )


def row_shape(model: keras.Model) -> tuple[int, ...] | None:
    """Returns the shape of a row of the only input; None for a vector or columns."""
    shape = tuple(model.inputs[0].shape[1:])
    return None if has_columns(model) or len(shape) == 1 else shape


def tensor_specs(
    model: keras.Model, features: Sequence[Feature]
) -> list[tf.TensorSpec]:
    """Returns the spec of each tensor that carries features, in order."""
    # The features of a matrix have one tensor.
    of_tensors = {feature.tensor: feature for feature in features}
    return [_tensor_spec(model, feature) for feature in of_tensors.values()]


def _tensor_spec(model: keras.Model, feature: Feature) -> tf.TensorSpec:
    dtypes = {"categorical": "string", "date": "int64", "numeric": "float32"}
    dtype = feature.dtype or dtypes[feature.kind]
    row = [] if has_columns(model) else model.inputs[0].shape[1:]
    return tf.TensorSpec([None, *row], dtype, name=feature.tensor)


def packing(
    model: keras.Model, features: Sequence[Feature]
) -> Callable[[Sequence[Tensor]], Structure]:
    """Returns a function that arranges feature tensors as the model's inputs."""
    if has_columns(model):
        inputs = input_structure(model)
        ranks = {feature.name: len(inputs[feature.name].shape) for feature in features}

        def pack(tensors: Sequence[Tensor]) -> dict[str, Tensor]:
            columns = zip(ranks, tensors, strict=True)
            return {
                name: column if ranks[name] == 1 else column[:, tf.newaxis]
                for name, column in columns
            }

        return pack
    return lambda tensors: tree.pack_sequence_as(input_structure(model), list(tensors))


def _tensor_names(columns: list[str]) -> dict[str, str]:
    """Returns a name for each column that TensorFlow takes as an argument's name."""
    names: dict[str, str] = {}
    taken = set(_RESERVED)
    for column in columns:
        plain = re.sub(r"\W", "_", column, flags=re.ASCII)
        if not re.match(r"[A-Za-z]", plain) or keyword.iskeyword(plain):
            plain = f"column_{plain}"
        name, number = plain, 1
        while name.lower() in taken:
            number += 1
            name = f"{plain}_{number}"
        taken.add(name.lower())
        names[column] = name
    return names
