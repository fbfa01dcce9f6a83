"""Small exported models whose posterior is known.

f(x, w) = 2 * sum(x) + 0.1 * w with w ~ N(0, 1), and y ~ N(f, 0.2^2). They need no
training, and are exported once.
"""

import functools
import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pyarrow as pa

import tfbbb
from tests import exported_manifests
from tests.exported_manifests import (
    CLASSES,
    COLUMN_FEATURES,
    HALF_PLUS_THREE_FEATURES,
    MATRIX_FEATURES,
    write_manifest,
)
from tests.trained import copy_of_export
from tfbbb.export.manifest import Feature, Manifest
from tfbbb.layers import DenseVariational
from tfbbb.tables import Schema, preprocessing

_LEAST = 1e-20
_SOURCES = (__file__, exported_manifests.__file__)


def _exported_once(write: Callable[..., Path]) -> Callable[..., Path]:
    """Returns a function that writes once for each set of arguments, then copies."""

    @functools.wraps(write)
    def copied(directory: Path, **arguments: Any) -> Path:
        sources = "".join(Path(path).read_text() for path in _SOURCES)
        return copy_of_export(
            f"{write.__name__} {arguments} {sources}",
            lambda path: write(path, **arguments),
            directory,
        )

    return copied


@_exported_once
def write_regression(directory: Path, bias: float = 0.0) -> Path:
    """Reads a matrix `[n, 3]`."""
    return _write_regression(directory, MATRIX_FEATURES, 2.0, bias)


@_exported_once
def write_half_plus_three(directory: Path) -> Path:
    """Reads a matrix `[n, 1]`; the mean is x / 2 + 3."""
    return _write_regression(directory, HALF_PLUS_THREE_FEATURES, 0.5, 3.0)


@_exported_once
def write_columns(directory: Path) -> Path:
    """Reads four columns; a missing number counts 100, a text its length."""
    values = itertools.product(
        [20.0, 60.0], [50.0, 150.0, None], ["f", "male", "nörd"], ["", "x", "süd"]
    )
    rows = np.array(list(values), dtype=object)
    names = [feature.name for feature in COLUMN_FEATURES]
    table = pa.table({name: rows[:, i].tolist() for i, name in enumerate(names)})
    table = table.append_column("progression", pa.array(np.arange(len(rows)) % 7.0))
    schema = Schema.infer(table, "progression")
    inputs, features = preprocessing(schema)
    found = keras.Model(inputs, features)(schema.inputs(table))
    totals = [
        age + (pressure or 100.0) + len(sex.encode()) + 10 * len(region.encode())
        for age, pressure, sex, region in rows
    ]
    # The features are those of a linear model with the totals.
    ones = np.ones((len(rows), 1))
    weights = np.linalg.lstsq(np.hstack([found, ones]), np.array(totals), rcond=None)
    factors = 2.0 * weights[0][:, np.newaxis]
    model = _regression(inputs, features, factors[:-1], factors[-1, 0])
    return _write(directory, model, COLUMN_FEATURES, None)


@_exported_once
def write_classification(directory: Path) -> Path:
    """Reads a matrix `[n, 3]`, the logits of three classes."""
    inputs = keras.Input((3,))
    outputs = _known_layer(inputs, np.eye(3), 0.0)
    model = tfbbb.BayesianModel(inputs, outputs, likelihood="categorical")
    return _write(directory, model, MATRIX_FEATURES, CLASSES)


def _write_regression(
    directory: Path, features: tuple[Feature, ...], factor: float, bias: float
) -> Path:
    inputs = keras.Input((len(features),))
    kernel = np.full((len(features), 1), factor)
    model = _regression(inputs, inputs, kernel, bias)
    return _write(directory, model, features, None)


def _regression(inputs: Any, features: Any, kernel: Any, bias: float) -> Any:
    likelihood = tfbbb.likelihoods.Normal(scale=0.2, standardize=False)
    outputs = _known_layer(features, kernel, bias)
    return tfbbb.BayesianModel(inputs, outputs, likelihood=likelihood)


def _known_layer(features: Any, kernel: Any, bias: float) -> Any:
    """Applies a layer with a kernel that is known, and a bias of deviation 0.1."""
    layer = DenseVariational(
        np.shape(kernel)[1], bias_posterior="mean_field_normal", kl_weight=1 / 442
    )
    outputs = layer(features)
    for weight, mean, deviation in (
        (layer.kernel, kernel, _LEAST),
        (layer.bias, bias, 0.1),
    ):
        variables = weight.variables
        variables["mean"].assign(np.broadcast_to(mean, variables["mean"].shape))
        variables["log_scale"].assign(
            np.full(variables["log_scale"].shape, np.log(deviation))
        )
    return outputs


def _write(
    directory: Path,
    model: tfbbb.BayesianModel,
    features: tuple[Feature, ...],
    classes: tuple[str, ...] | None,
) -> Path:
    model.export_predictive(directory, method="weight")
    written = Manifest.read(directory)
    write_manifest(
        directory,
        features,
        classes,
        targets=written.targets,
        passes=written.passes,
        numpy=written.numpy,
    )
    return directory


if __name__ == "__main__":
    root = Path(sys.argv[1])
    write_regression(root / "saved_models" / "diabetes" / "1", bias=-1000.0)
    write_regression(root / "saved_models" / "diabetes" / "2")
    write_columns(root / "saved_models" / "patients" / "1")
    write_classification(root / "saved_models" / "iris" / "7")
    write_half_plus_three(root / "half_plus_three" / "123")
