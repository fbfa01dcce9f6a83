"""Loads exported models, which NumPy or TensorFlow computes."""

import os
from pathlib import Path
from typing import Any, Literal

import orjson

from tfbbb.base.numbers import choice
from tfbbb.base.tensorflow_startup import require_tensorflow
from tfbbb.export.engine import NUMPY, tensorflow_engine
from tfbbb.export.exported_model import ExportedModel
from tfbbb.export.manifest import NUMPY_PATH, Manifest, ManifestError
from tfbbb.export.numpy_engine.functions import read_functions
from tfbbb.export.versions import newest_version

ENGINES = ("auto", "numpy", "tensorflow")


def load(
    path: str | os.PathLike[str],
    *,
    verify: bool = True,
    engine: Literal["auto", "numpy", "tensorflow"] = "auto",
) -> ExportedModel:
    """Loads a model that `BayesianModel.export_predictive` wrote.

    Neither Keras nor TensorFlow Probability is imported, and no code of the model's
    author runs: the SavedModel holds the whole computation. NumPy computes it, without
    the seconds that an import of TensorFlow takes; it answers a table as fast as
    TensorFlow does, and many sequences at once about three times slower; convolutions
    need TensorFlow. Its answers are TensorFlow's but for rounding: the largest
    difference stands in `manifest.numpy`.

    Example:

    >>> import tempfile, keras, tfbbb
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> model = tfbbb.BayesianModel(inputs, outputs)
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     model.export_predictive(tfbbb.export.next_version(directory))
    ...     loaded = tfbbb.load(directory)
    >>> loaded.predictive([[1.0, 2.0]], num_samples=50)
    Predictive(rows=1, targets=1, num_samples=50)

    Args:
        path: Directory of a SavedModel, or of numbered versions, of which the highest
            is taken.
        verify: Whether to compare every file with its sha256 in the manifest first.
        engine: What computes: `"numpy"`, `"tensorflow"`, or `"auto"`, which is NumPy
            unless the model needs TensorFlow.

    Returns:
        The model, ready to answer.

    Raises:
        ManifestError: If there is no manifest, it is malformed or of an unknown schema
            version, or (with `verify`) a file is not the one that was exported.
        MissingTensorFlowError: TensorFlow is to compute, and is not installed.
        ValueError: For another engine, or `"numpy"` for a model that needs TensorFlow.
    """
    choice("engine", engine, ENGINES)
    directory = Path(path)
    if directory.is_file():
        raise ManifestError(
            "An exported model is a directory; a `.keras` file is loaded by "
            f"`keras.models.load_model`. Received: path={str(path)!r}"
        )
    if not (directory / "saved_model.pb").exists():
        directory = newest_version(directory) or directory
    manifest = Manifest.read(directory)
    if verify:
        manifest.verify(directory)
    missing = manifest.needs_tensorflow
    if engine == "numpy" and missing:
        raise ValueError(
            f'{missing} Load the model with `engine="tensorflow"`. '
            f"Received: path={str(path)!r}, engine='numpy'"
        )
    if engine == "tensorflow" or missing:
        require_tensorflow(f"{missing} The model" if missing else 'engine="tensorflow"')
        import tensorflow as tf

        root = tf.saved_model.load(str(directory))
        return ExportedModel(root, manifest, tensorflow_engine())
    functions = read_functions((directory / NUMPY_PATH).read_bytes())
    return ExportedModel(functions, manifest, NUMPY)


def read_signatures(path: str | Path) -> dict[str, Any]:
    """Reads the names, types and shapes of a SavedModel's inputs and outputs."""
    file = Path(path) / NUMPY_PATH
    if file.exists():
        found: dict[str, Any] = orjson.loads(file.read_bytes())["signatures"]
        return found
    return signature_definitions(path)


def signature_definitions(directory: Path | str) -> dict[str, Any]:
    """Returns the `SignatureDef` of each signature, as JSON values."""
    import tensorflow as tf
    from google.protobuf import json_format  # type: ignore[import-untyped]
    from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

    with tf.io.gfile.GFile(f"{directory}/saved_model.pb", "rb") as file:
        (graph,) = SavedModel.FromString(file.read()).meta_graphs
    return {
        name: json_format.MessageToDict(
            signature,
            preserving_proto_field_name=True,
            always_print_fields_with_no_presence=True,
        )
        for name, signature in graph.signature_def.items()
        if not name.startswith("__")
    }
