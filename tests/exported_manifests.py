"""The manifests of the small models of tests; without TensorFlow."""

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tfbbb.bayes.likelihoods import Normal
from tfbbb.export.manifest import (
    MANIFEST_PATH,
    Feature,
    LayerSummary,
    Manifest,
    NumpyInfo,
    Targets,
    file_digests,
)

MATRIX_FEATURES = tuple(
    Feature(name, "numeric", missing=False, tensor="inputs")
    for name in ("age", "bmi", "bp")
)
HALF_PLUS_THREE_FEATURES = (Feature("x", "numeric", missing=False, tensor="inputs"),)
COLUMN_FEATURES = (
    Feature("age", "numeric", missing=False, tensor="age"),
    Feature("blood pressure", "numeric", missing=True, tensor="blood_pressure"),
    Feature("sex", "categorical", missing=False, tensor="sex"),
    Feature("region", "categorical", missing=True, tensor="region"),
)
CLASSES = ("setosa", "versicolor", "virginica")
_CATEGORICAL = {
    "class_name": "Categorical",
    "config": {},
    "output_shape": [None, 3],
    "values": {},
}
_NORMAL = {
    "class_name": "Normal",
    "config": {"scale": 0.2, "standardize": False},
    "output_shape": [None, 1],
    "values": {"target_shift": [0.0], "target_scale": [1.0], "adapted": 0.0},
}


def manifest(
    features: Sequence[Feature], classes: tuple[str, ...] | None = None, **others: Any
) -> Manifest:
    """Returns the manifest of a small model."""
    matrix = all(feature.tensor == "inputs" for feature in features)
    fields: dict[str, Any] = {
        "created": "2030-01-01T00:00:00+00:00",
        "task": "regression" if classes is None else "classification",
        "inputs": "matrix" if matrix else "columns",
        "features": tuple(features),
        "target": "species" if classes else "progression",
        "units": "as in the training table",
        "classes": classes,
        "likelihood": _CATEGORICAL if classes else _NORMAL,
        "layers": (
            LayerSummary(
                "dense", "DenseVariational", "mean_field_normal", "normal", "local", 8
            ),
        ),
        "num_rows": 442,
        "kl_weight": 1 / 442,
        "method": "weight",
        "default_num_samples": 100,
        "default_seed": 0,
        "metrics": {"rmse": 54.0},
        "libraries": {"tensorflow": version("tensorflow")},
        "targets": Targets(
            shape=() if classes else (1,),
            support=None if classes else Normal.support_of(),
            ordered=classes is None,
            discrete=False,
        ),
        "passes": {},
        "numpy": NumpyInfo(difference=0.0),
    }
    return Manifest(**(fields | {"files": {}} | others))


def write_manifest(
    directory: Path,
    features: Sequence[Feature],
    classes: tuple[str, ...] | None = None,
    **others: Any,
) -> None:
    """Writes the manifest of a model whose other files are in `directory`."""
    found = manifest(features, classes, files=file_digests(directory), **others)
    path = directory / MANIFEST_PATH
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(found.to_json())
