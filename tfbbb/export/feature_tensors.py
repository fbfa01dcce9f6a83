"""The features of a model's inputs, and the tensors that carry them."""

import keyword
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf
from keras import tree

from tfbbb.export.manifest import Feature
from tfbbb.private_apis import input_structure

if TYPE_CHECKING:
    from tfbbb.data import Schema

# Arguments of the signatures, and of the method that TensorFlow binds them with.
_RESERVED = ("num_samples", "seed", "levels", "targets", "self")


def features_of(
    model: keras.Model,
    schema: "Schema | None",
    names: Sequence[str] | None,
) -> tuple[Feature, ...]:
    """Returns the features of a model in the order of its inputs.

    Args:
        model: The model.
        schema: Schema of the training table, if there is one.
        names: Names of the features without a schema, if they are known.

    Raises:
        ValueError: For inputs that are neither one matrix nor a dictionary of columns,
            or names that do not fit them.
    """
    if has_columns(model):
        columns = {c.name: c.missing for c in schema.features} if schema else {}
        inputs = model.input
        _check_names(columns or names or inputs, list(inputs))
        tensors = _tensor_names(list(inputs))
        return tuple(
            Feature(
                name,
                "categorical" if tensor.dtype == "string" else "numeric",
                missing=columns.get(name, False),
                tensor=tensors[name],
            )
            for name, tensor in inputs.items()
        )
    width = model.inputs[0].shape[-1]
    given = [c.name for c in schema.features] if schema else names
    default = [f"x{i}" for i in range(width)]
    given = list(default if given is None else given)
    if len(set(given)) != width or len(given) != width:
        raise ValueError(
            f"The model takes {width} features, each with a name of its own. "
            f"Received: feature names {given}"
        )
    return tuple(Feature(n, "numeric", missing=False, tensor="inputs") for n in given)


def _check_names(given: Any, inputs: list[str]) -> None:
    if set(given) != set(inputs):
        raise ValueError(
            "The feature names must be those of the model's inputs, "
            f"{sorted(inputs)}. Received: {sorted(given)}"
        )


def has_columns(model: keras.Model) -> bool:
    """Whether the model takes a dictionary of columns; else it takes one matrix."""
    structure = input_structure(model)
    if isinstance(structure, dict) and all(len(t.shape) == 1 for t in model.inputs):
        return True
    if len(model.inputs) == 1 and len(model.inputs[0].shape) == 2:
        return False
    shapes = tree.map_structure(lambda tensor: tuple(tensor.shape), structure)
    raise ValueError(
        "A model is exported with one input matrix [rows, features], or a dictionary "
        "of columns [rows]; reshape inside the model where it needs another shape. "
        f"Received: inputs of shape {shapes}"
    )


def input_specs(model: keras.Model) -> Any:
    """Returns the specs of a model's inputs, for any number of rows."""
    return tree.map_structure(
        lambda tensor: tf.TensorSpec([None, *tensor.shape[1:]], tensor.dtype),
        input_structure(model),
    )


def tensor_specs(
    model: keras.Model, features: Sequence[Feature]
) -> list[tf.TensorSpec]:
    """Returns the spec of each tensor that carries features, in order."""
    # The features of a matrix have one tensor.
    of_tensors = {feature.tensor: feature for feature in features}
    return [_tensor_spec(model, feature) for feature in of_tensors.values()]


def _tensor_spec(model: keras.Model, feature: Feature) -> tf.TensorSpec:
    if not has_columns(model):
        spec = tree.flatten(input_specs(model))[0]
        return tf.TensorSpec(spec.shape, spec.dtype, name=feature.tensor)
    dtype = tf.string if feature.kind == "categorical" else tf.float32
    return tf.TensorSpec([None], dtype, name=feature.tensor)


def packing(
    model: keras.Model, features: Sequence[Feature]
) -> Callable[[Sequence[Any]], Any]:
    """Returns a function that arranges feature tensors as the model's inputs."""
    if has_columns(model):
        names = [feature.name for feature in features]
        return lambda tensors: dict(zip(names, tensors, strict=True))
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
