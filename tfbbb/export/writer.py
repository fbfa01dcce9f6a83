"""Writes a posterior predictive as a SavedModel that needs TensorFlow only."""

import math
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import tensorflow as tf

from tfbbb.base.files import atomic_directory, check_free, disk_faults_named
from tfbbb.base.garbage_collection import rare_garbage_collection
from tfbbb.base.numbers import choice, int32
from tfbbb.base.texts import snake_case
from tfbbb.base.types import Config, Json
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.export.exported_functions import trace_functions
from tfbbb.export.feature_tensors import (
    event_feature,
    features_of,
    has_columns,
    row_shape,
)
from tfbbb.export.manifest import (
    DRAWING_METHODS,
    MANIFEST_PATH,
    DrawingMethod,
    FamiliarityInfo,
    LayerSummary,
    Manifest,
    NumpyInfo,
    file_digests,
)
from tfbbb.export.numpy_engine.writer import write_numpy_functions
from tfbbb.layers import VariationalLayer
from tfbbb.prediction import recalibration
from tfbbb.prediction.likelihood_model import LikelihoodModel
from tfbbb.prediction.plan import own_method
from tfbbb.prediction.structure import Structure
from tfbbb.version import __version__

if TYPE_CHECKING:
    from tfbbb.tables import Schema


@rare_garbage_collection()
def write_saved_model(
    model: LikelihoodModel,
    path: str | os.PathLike[str],
    *,
    schema: "Schema | None" = None,
    feature_names: Sequence[str] | None = None,
    target: str | Sequence[str] | None = None,
    units: str = "as in the training table",
    classes: Sequence[str] | None = None,
    metrics: Mapping[str, float] | None = None,
    lineage: Mapping[str, Json] | None = None,
    recalibration_choice: Mapping[str, Json] | None = None,
    extra_files: Mapping[str, bytes] | None = None,
    method: DrawingMethod | Literal["auto"] = "auto",
    num_samples: int = 100,
    seed: int = 0,
) -> None:
    """Writes the posterior predictive of a model as one SavedModel at `path`.

    It is a pure function of inputs and seed, takes and gives raw units, and loads with
    TensorFlow alone. Its signatures, for n rows, k targets, c classes, S draws and P
    outputs of the network:

    - `serving_default` takes the features and gives `mean`, `variance`, `epistemic`
      and `aleatoric` [n, k]; for classes `probabilities` [n, c], `entropy` and
      `mutual_information` [n]; of several members also `between_members`; of a model
      with `familiarity` also `familiarity` [n];
    - `predict` also takes `num_samples` and `seed`, int32 [], and also gives
      `mean_standard_error` [n, k];
    - `draws` takes the same as `predict` and gives `outputs` [n, S, P]: those of the
      network under each draw, as the likelihood takes them.

    The features are one tensor `inputs`, [n, d] or of another shape, as for images
    [n, height, width, channels], or, for a model whose inputs are a dictionary of
    columns, one tensor [n] per column. They have the data types of the model's inputs,
    such as int32 for tokens, or float64 for numbers of a table that single precision
    cannot tell apart. Of such targets, answers are float64, too. A row of several
    places has them between n and k. The moments are recalibrated as the model is. A
    signature computes all rows at once, so send many rows in parts.

    `tfbbb.load` calls functions beneath the signatures, in bounded memory, and answers
    with quantiles, intervals, sets, samples and densities, too. For every method the
    SavedModel has functions that draw and that run a pass.
    `assets.extra/numpy_functions.json` has these functions for NumPy, if it gives the
    same answers. `assets.extra/tfbbb.json` describes the model
    (`tfbbb.export.Manifest`).

    Args:
        model: The model.
        path: Where to write; nothing may be there yet. The directory appears whole or
            not at all.
        schema: Schema of the training table, which gives the names of features, target
            and classes.
        feature_names: Names of the features without a schema; `x0`, `x1`, ... by
            default.
        target: Name of the target without a schema, or names of several.
        units: Units of inputs and outputs, in words.
        classes: Names of the classes without a schema; their indices by default.
        metrics: Held-out figures to keep with the model.
        lineage: The origin of the model, to keep with it: plain JSON values.
        recalibration_choice: Why the model is recalibrated as it is, or is not, to keep
            with it: plain JSON values.
        extra_files: Further files to write into `assets.extra`, by name.
        method: Prediction method of all signatures: `"local"`, `"weight"` or
            `"linearised"`; `"auto"` is `"linearised"` for a Laplace approximation, else
            `"local"`. A loaded model has this method and `"weight"`.
        num_samples: Number of posterior samples behind `serving_default`.
        seed: Seed of `serving_default`.

    Raises:
        FileExistsError: Where there is something at `path` already.
        OSError: The disk is full, or refuses the files; nothing is left of them.
        ValueError: For a model whose inputs are neither one tensor of known size nor a
            dictionary of columns, names that do not fit it, a metric that is not
            finite, fewer than two samples, or a seed that is no int32.
    """
    if not isinstance(model, LikelihoodModel):
        raise ValueError(
            "Only a `tfbbb.BayesianModel` can be exported: it knows its likelihood. "
            f"Make one of the model's inputs and outputs. Received: {type(model)}"
        )
    if method == "auto":
        own = own_method(model, Structure.of(model))
        method = "linearised" if own == "linearised" else "local"
    choice("method", method, DRAWING_METHODS)
    # Two samples at least: one cannot separate epistemic from aleatoric variance.
    num_samples = int32("num_samples", num_samples, least=2)
    seed = int32("seed", seed)
    figures = {name: float(value) for name, value in (metrics or {}).items()}
    for name, value in figures.items():
        if not math.isfinite(value):
            raise ValueError(
                f"The metric '{name}' must be finite. Received: metrics={figures}"
            )
    check_free(path)
    features = features_of(model, schema, feature_names)
    double: Literal["float64"] = "float64"
    columns = schema.target_columns if schema else ()
    given = [target] if target is None or isinstance(target, str) else target
    given = schema.target_names if schema else given
    target_dtype = double if any(column.precise for column in columns) else None
    root, signatures, described = trace_functions(
        model, features, method, num_samples, seed, target_dtype or "float32"
    )
    likelihood = model.likelihood
    notations = [
        column.notation.to_dict() if column.notation else None for column in columns
    ]
    familiarity = model.familiarity
    names = class_names(likelihood, schema.classes if schema else classes)
    weights = {float(layer.kl_weight.numpy()) for layer in model.variational_layers}
    kl_weight = weights.pop() if len(weights) == 1 else None
    with disk_faults_named(Path(path).parent), atomic_directory(path) as staging:
        tf.saved_model.save(root, str(staging), signatures)
        (staging / MANIFEST_PATH).parent.mkdir()
        for name, content in (extra_files or {}).items():
            (staging / MANIFEST_PATH).with_name(name).write_bytes(content)
        manifest = Manifest(
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            task=likelihood.task,
            inputs="columns" if has_columns(model) else "matrix",
            features=features,
            target=one_or_all(given),
            units=units,
            classes=names,
            likelihood=_describe_likelihood(likelihood),
            layers=tuple(map(_layer_summary, model.variational_layers)),
            num_rows=model.num_rows,
            kl_weight=kl_weight if kl_weight == kl_weight else None,
            method=method,
            default_num_samples=num_samples,
            default_seed=seed,
            metrics=figures,
            libraries=_libraries(),
            files={},
            numpy=NumpyInfo(),
            **described,
            recalibration=None
            if model.recalibration is None
            else recalibration.serialize(model.recalibration),
            lineage=lineage,
            recalibration_choice=recalibration_choice,
            target_notation=one_or_all(notations) if any(notations) else None,
            member_weights=likelihood.member_weights,
            familiarity=None
            if familiarity is None
            else FamiliarityInfo(familiarity.num_rows, familiarity.columns),
            event=event_feature(schema),
            row_shape=row_shape(model),
            target_dtype=target_dtype,
        )
        numpy_info = write_numpy_functions(staging, manifest, root)
        manifest = replace(manifest, numpy=numpy_info, files=file_digests(staging))
        destination = staging / MANIFEST_PATH
        destination.write_text(manifest.to_json(), encoding="utf-8")


def one_or_all(values: Sequence[Any]) -> Any:
    """Returns the only one of some values, or all of them."""
    return values[0] if len(values) == 1 else tuple(values)


def class_names(
    likelihood: Likelihood, given: Sequence[str] | None
) -> tuple[str, ...] | None:
    """Returns the names of the classes, their indices by default; None of numbers."""
    if likelihood.task != "classification":
        return None
    classes = tuple(given or map(str, range(likelihood.num_classes)))
    if len(classes) != likelihood.num_classes:
        raise ValueError(
            f"The likelihood has {likelihood.num_classes} classes. "
            f"Received: {len(classes)} class names"
        )
    return classes


def _describe_likelihood(likelihood: Likelihood) -> Config:
    """Returns the name of the class, and the arguments of `Likelihood.of_values`."""
    described = likelihood.to_values()
    values = {name: value.tolist() for name, value in described["values"].items()}
    return {"class_name": type(likelihood).__name__, **described, "values": values}


def _layer_summary(layer: VariationalLayer) -> LayerSummary:
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
    return {"tfbbb": __version__, **versions, "python": platform.python_version()}
