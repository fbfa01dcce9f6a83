"""A SavedModel as a model of MLflow, which registers, serves and batches it."""

import os
import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tfbbb.base.extras import import_extra
from tfbbb.base.files import atomic_directory
from tfbbb.export.exported_model import ExportedModel
from tfbbb.export.manifest import Manifest
from tfbbb.export.reader import load
from tfbbb.export.writer import write_saved_model
from tfbbb.prediction.answer_table import answer_table
from tfbbb.prediction.likelihood_model import LikelihoodModel
from tfbbb.version import __version__

if TYPE_CHECKING:
    import pandas


def write_mlflow(
    model: LikelihoodModel, path: str | os.PathLike[str], **options: Any
) -> None:
    """Writes the posterior predictive as a model of `mlflow.pyfunc` at `path`.

    The directory holds a SavedModel in `data`, the signature of the model with the
    names of features and answers, and what to install. Features have any type: MLflow's
    numbers would refuse a column of integers, and its texts one of numbers, which the
    model reads. So its server takes rows as JSON, not as CSV. Columns that the model
    lacks are ignored, and one that may be missing may be left out.

    `mlflow.pyfunc.load_model` loads it where tfbbb is installed. Its `predict(frame,
    params)` takes `num_samples` and `seed` as parameters, and returns a frame with the
    index of the given one:

    - of numbers `mean`, `std`, `epistemic` and `aleatoric`, of several targets
      `mean_1`, `mean_2` and so on;
    - of classes `class`, one `probability_CLASS` per class, `entropy` and
      `mutual_information`.

    Args:
        model: The model.
        path: Directory to write; nothing may be there yet. It appears whole or not at
            all.
        **options: As for `tfbbb.export.write_saved_model`.

    Raises:
        FileExistsError: Where there is something at `path` already.
        ImportError: A library of `pip install 'tfbbb[mlflow]'` is missing.
        OSError: The disk is full, or refuses the files; nothing is left of them.
        ValueError: As for `tfbbb.export.write_saved_model`.

    Example:

    >>> import os, tempfile, keras, mlflow, pandas as pd, tfbbb
    >>> inputs = keras.Input((2,))
    >>> model = tfbbb.BayesianModel(inputs, tfbbb.layers.DenseVariational(1)(inputs))
    >>> path = os.path.join(tempfile.mkdtemp(), "model")
    >>> names = ["size", "age"]
    >>> model.export_predictive(path, format="mlflow", feature_names=names)
    >>> loaded = mlflow.pyfunc.load_model(path)
    >>> answer = loaded.predict(pd.DataFrame({"size": [1.0, 2.0], "age": [3.0, 4.0]}))
    >>> answer.columns.tolist()
    ['mean', 'std', 'epistemic', 'aleatoric']
    """
    _, pyfunc = import_extra("mlflow", "pandas", "mlflow.pyfunc")
    with atomic_directory(path) as staging, tempfile.TemporaryDirectory() as scratch:
        # MLflow copies it and keeps its name.
        saved_model = Path(scratch) / "saved_model"
        write_saved_model(model, saved_model, **options)
        with warnings.catch_warnings():
            # An example would show the columns that the signature has already.
            warnings.simplefilter("ignore", UserWarning)
            pyfunc.save_model(
                staging,
                loader_module=__name__,
                data_path=saved_model,
                pip_requirements=[f"tfbbb[mlflow]=={__version__}"],
                signature=_signature(Manifest.read(saved_model)),
            )


def _signature(manifest: Manifest) -> Any:
    """Returns the names of features, parameters and answers, as MLflow has them."""
    types, models, schema = import_extra(
        "mlflow", "mlflow.types", "mlflow.models", "mlflow.types.schema"
    )
    columns = [
        types.ColSpec(
            schema.AnyType(),
            feature.name,
            required=not feature.may_miss,
        )
        for feature in manifest.features
    ]
    whole = types.DataType.long
    params = [
        types.ParamSpec("num_samples", whole, manifest.default_num_samples),
        types.ParamSpec("seed", whole, manifest.default_seed),
    ]
    outputs = None
    if (example := _example_of_answers(manifest)) is not None:
        outputs = models.infer_signature(model_output=example).outputs
    return models.ModelSignature(
        inputs=types.Schema(columns), outputs=outputs, params=types.ParamSchema(params)
    )


def _example_of_answers(manifest: Manifest) -> "pandas.DataFrame | None":
    """Returns a frame with the columns of an answer; None if rows have places."""
    found: dict[str, np.ndarray]
    if manifest.classes is not None:
        found = {name: np.zeros(1) for name in ("entropy", "mutual_information")}
        found["probabilities"] = np.zeros((1, len(manifest.classes)))
    elif manifest.task == "regression" and len(manifest.targets.shape) == 1:
        row = np.zeros((1, manifest.targets.shape[0] or 1))
        names = ["mean", "variance", "epistemic", "aleatoric"]
        found = dict.fromkeys(names, row)
    else:
        return None
    return answer_table(found, {}, manifest.classes).to_pandas()


def _load_pyfunc(path: str) -> "_FrameModel":
    """Loads what `write_mlflow` wrote; MLflow calls it by this name."""
    return _FrameModel(load(path))


class _FrameModel:
    """Answers frames with frames."""

    def __init__(self, model: ExportedModel):
        self._model = model

    def predict(
        self, frame: "pandas.DataFrame", params: dict[str, Any] | None = None
    ) -> "pandas.DataFrame":
        """Returns the moments of the predictive distribution of each row."""
        manifest = self._model.manifest
        for feature in manifest.features:
            if feature.may_miss and feature.name not in frame.columns:
                frame = frame.assign(**{feature.name: None})
        found = self._model.predict(frame, **(params or {}))
        answers = answer_table(found, {}, manifest.classes).to_pandas()
        return answers.set_index(frame.index)
