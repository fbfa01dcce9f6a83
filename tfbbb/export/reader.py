"""Loads exported models, with TensorFlow alone."""

import os
from pathlib import Path
from typing import Any

from google.protobuf.json_format import MessageToDict  # type: ignore[import-untyped]
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

from tfbbb.export.exported_model import ExportedModel
from tfbbb.export.manifest import Manifest, ManifestError
from tfbbb.export.saved_functions import load_functions
from tfbbb.export.versions import newest_version


def load(path: str | os.PathLike[str], *, verify: bool = True) -> ExportedModel:
    """Loads a model that `BayesianModel.export_predictive` wrote.

    Neither Keras nor TensorFlow Probability is imported, and no code of the model's
    author runs: the SavedModel holds the whole computation.

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

    Returns:
        The model, ready to answer.

    Raises:
        ManifestError: If there is no manifest, it is malformed or of an unknown schema
            version, or (with `verify`) a file is not the one that was exported.
    """
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
    return ExportedModel(load_functions(directory), manifest)


def read_signatures(path: str | Path) -> dict[str, Any]:
    """Reads the names, types and shapes of a SavedModel's inputs and outputs.

    Args:
        path: Directory of the SavedModel.

    Returns:
        TensorFlow's `SignatureDef` of each signature, as JSON values.
    """
    saved_model = SavedModel.FromString((Path(path) / "saved_model.pb").read_bytes())
    return {
        name: MessageToDict(
            signature,
            preserving_proto_field_name=True,
            always_print_fields_with_no_presence=True,
        )
        for name, signature in saved_model.meta_graphs[0].signature_def.items()
        if not name.startswith("__")
    }
