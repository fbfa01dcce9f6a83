"""Writes a posterior predictive as a SavedModel that needs TensorFlow only."""

import keyword
import math
import os
import platform
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from typing import TYPE_CHECKING, Any, Literal

import keras
import tensorflow as tf
from keras import tree

import tfbbb
from tfbbb import likelihoods
from tfbbb.export.atomic import atomic_directory
from tfbbb.export.manifest import (
    MANIFEST_PATH,
    Feature,
    LayerSummary,
    Manifest,
    file_digests,
)
from tfbbb.export.signatures import Signatures
from tfbbb.layers import VariationalLayer
from tfbbb.prediction.blocks import MAX_FLOATS
from tfbbb.prediction.plan import plan_for
from tfbbb.prediction.program import Program
from tfbbb.prediction.sampler import Sampler
from tfbbb.prediction.structure import Structure
from tfbbb.strategy import snake_case

if TYPE_CHECKING:
    from tfbbb.data import Schema
    from tfbbb.model import BayesianModel

# Arguments of the signatures, and of the method that TensorFlow binds them with.
_RESERVED = ("num_samples", "seed", "levels", "self")


def write_saved_model(
    model: "BayesianModel",
    path: str | os.PathLike[str],
    *,
    schema: "Schema | None" = None,
    feature_names: Sequence[str] | None = None,
    target: str | None = None,
    units: str = "as in the training table",
    classes: Sequence[str] | None = None,
    metrics: Mapping[str, float] | None = None,
    method: Literal["local", "weight"] = "local",
    num_samples: int = 100,
    seed: int = 0,
) -> None:
    """Writes the posterior predictive of a model as one SavedModel at `path`.

    It is a pure function of inputs and seed, takes and gives raw units, and loads with
    nothing but TensorFlow. Its signatures, for n rows, k targets, c classes:

    - `serving_default` takes the features and gives `mean`, `variance`, `epistemic`
      and `aleatoric` [n, k]; for classes `probabilities` [n, c], `entropy` and
      `mutual_information` [n];
    - `predict` also takes `num_samples` and `seed`, int32 [], and also gives
      `mean_standard_error` [n, k];
    - `quantiles` also takes `levels`, float32 [q], and gives `quantiles` [n, q, k];
      classes have none;
    - `sample` takes the same as `predict` and gives `samples` [s, n, k]; for classes
      their indices [s, n].

    The features are one tensor `inputs` [n, d], or, for a model whose inputs are a
    dictionary of columns, one tensor [n] per column. `assets.extra/tfbbb.json` says
    what the model is (`tfbbb.export.Manifest`).

    Args:
        model: The model.
        path: Where to write; nothing may be there yet. The directory appears whole or
            not at all.
        schema: Schema of the training table, which gives the names of features, target
            and classes.
        feature_names: Names of the features without a schema; `x0`, `x1`, ... by
            default.
        target: Name of the target without a schema.
        units: Units of inputs and outputs, in words.
        classes: Names of the classes without a schema; their indices by default.
        metrics: Held-out figures to keep with the model.
        method: Prediction method of all signatures, `"local"` or `"weight"`.
        num_samples: Number of posterior samples behind `serving_default`.
        seed: Seed of `serving_default`.

    Raises:
        FileExistsError: Where there is something at `path` already.
        ValueError: For a model whose inputs are neither one matrix nor a dictionary of
            columns, names that do not fit it, a metric that is not finite, fewer than
            two samples, or a seed that is no int32.
    """
    from tfbbb.model import BayesianModel

    if not isinstance(model, BayesianModel):
        raise ValueError(
            "Only a `tfbbb.BayesianModel` can be exported: it knows its likelihood. "
            f"Make one of the model's inputs and outputs. Received: {type(model)}"
        )
    if method not in ("local", "weight"):
        raise ValueError(
            "An exported model has one method, 'local' or 'weight'. "
            f"Received: method={method!r}"
        )
    if not 2 <= num_samples < 2**31:
        raise ValueError(
            "It takes two samples at the least to tell epistemic from aleatoric "
            f"variance. Received: num_samples={num_samples}"
        )
    if not -(2**31) <= seed < 2**31:
        raise ValueError(f"`seed` must fit into int32. Received: seed={seed}")
    figures = {name: float(value) for name, value in (metrics or {}).items()}
    for name, value in figures.items():
        if not math.isfinite(value):
            raise ValueError(
                f"The metric '{name}' must be finite. Received: metrics={figures}"
            )
    features = _features(model, schema, feature_names)
    likelihood = model.likelihood
    plan = plan_for(
        Structure.of(model), method, 1, num_samples, MAX_FLOATS, [likelihood]
    )
    program = Program(model, [likelihood], plan, _input_specs(model))
    moments = tree.map_structure(
        lambda value: tf.Variable(value, trainable=False), program.moments()
    )
    sampler = Sampler(program, moments)
    tensors = {feature.tensor: feature for feature in features}
    signatures = Signatures(
        sampler,
        likelihood,
        [_tensor_spec(model, feature) for feature in tensors.values()],
        _packing(model, features),
        num_samples,
        seed,
    )
    archive = keras.export.ExportArchive()
    archive.track(model)
    archive.moments = moments
    for name, (function, specs) in signatures.all().items():
        archive.add_endpoint(name, function, input_signature=specs)

    weights = {float(layer.kl_weight.numpy()) for layer in model.variational_layers}
    kl_weight = weights.pop() if len(weights) == 1 else None
    with atomic_directory(path) as staging:
        archive.write_out(str(staging), verbose=False)
        manifest = Manifest(
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            task=likelihood.task,
            inputs="columns" if _has_columns(model) else "matrix",
            features=features,
            target=schema.target.name if schema else target,
            units=units,
            classes=_classes(likelihood, schema.classes if schema else classes),
            likelihood=_described(likelihood),
            layers=tuple(map(_summary, model.variational_layers)),
            num_rows=model.num_rows,
            kl_weight=kl_weight if kl_weight == kl_weight else None,
            method=method,
            default_num_samples=num_samples,
            default_seed=seed,
            metrics=figures,
            libraries=_libraries(),
            files=file_digests(staging),
        )
        destination = staging / MANIFEST_PATH
        destination.parent.mkdir(exist_ok=True)
        destination.write_text(manifest.to_json(), encoding="utf-8")


def _features(
    model: "BayesianModel",
    schema: "Schema | None",
    names: Sequence[str] | None,
) -> tuple[Feature, ...]:
    if _has_columns(model):
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


def _has_columns(model: "BayesianModel") -> bool:
    """Whether the model takes a dictionary of columns; else it takes one matrix."""
    structure = model._inputs_struct
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


def _input_specs(model: "BayesianModel") -> Any:
    return tree.map_structure(
        lambda tensor: tf.TensorSpec([None, *tensor.shape[1:]], tensor.dtype),
        model._inputs_struct,
    )


def _tensor_spec(model: "BayesianModel", feature: Feature) -> tf.TensorSpec:
    if not _has_columns(model):
        spec = tree.flatten(_input_specs(model))[0]
        return tf.TensorSpec(spec.shape, spec.dtype, name=feature.tensor)
    dtype = tf.string if feature.kind == "categorical" else tf.float32
    return tf.TensorSpec([None], dtype, name=feature.tensor)


def _packing(model: "BayesianModel", features: Sequence[Feature]) -> Any:
    if _has_columns(model):
        names = [feature.name for feature in features]
        return lambda tensors: dict(zip(names, tensors, strict=True))
    return lambda tensors: tree.pack_sequence_as(model._inputs_struct, list(tensors))


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


def _classes(
    likelihood: likelihoods.Likelihood, given: Sequence[str] | None
) -> tuple[str, ...] | None:
    if not isinstance(likelihood, likelihoods.Categorical):
        return None
    default = [str(index) for index in range(likelihood.num_classes)]
    classes = tuple(given or default)
    if len(classes) != likelihood.num_classes:
        raise ValueError(
            f"The likelihood has {likelihood.num_classes} classes. "
            f"Received: {len(classes)} class names"
        )
    return classes


def _described(likelihood: likelihoods.Likelihood) -> dict[str, Any]:
    serialized = likelihoods.serialize(likelihood)
    inherited = ("name", "trainable", "dtype")
    config = {k: v for k, v in serialized["config"].items() if k not in inherited}
    return {"class_name": serialized["class_name"], "config": config}


def _summary(layer: VariationalLayer) -> LayerSummary:
    return LayerSummary(
        name=layer.name,
        class_name=type(layer).__name__,
        posterior=repr(layer.posterior),
        prior=repr(layer.prior),
        estimator=snake_case(type(layer.estimator).__name__),
        num_parameters=sum(
            math.prod(variable.shape)
            for weight in layer.variational_weights
            for variable in weight.variables.values()
        ),
    )


def _libraries() -> dict[str, str]:
    packages = ("tensorflow", "keras", "tensorflow_probability")
    versions = {name: metadata.version(name) for name in packages}
    return {"tfbbb": tfbbb.__version__, **versions, "python": platform.python_version()}
