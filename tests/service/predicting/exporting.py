"""Small networks, exported for tests of what the service answers."""

from pathlib import Path
from typing import Any

import keras

import tfbbb
from tfbbb.export.exported_model import ExportedModel

CLASSES = ("red", "green", "blue")


def network(
    likelihood: str = "normal", units: int = 1, hidden: int = 8
) -> tfbbb.BayesianModel:
    """Returns a network of two features, not trained."""
    keras.utils.set_random_seed(0)
    flow = inputs = keras.Input((2,))
    if hidden:
        flow = tfbbb.layers.DenseVariational(hidden, activation="relu")(flow)
    outputs = tfbbb.layers.DenseVariational(units)(flow)
    return tfbbb.BayesianModel(inputs, outputs, likelihood=likelihood)


def exported(model: tfbbb.BayesianModel, path: Path, **options: Any) -> ExportedModel:
    """Exports a network with 20 draws by default, and loads the file."""
    model.export_predictive(path, **({"num_samples": 20} | options))
    return tfbbb.load(path)
