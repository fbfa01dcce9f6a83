"""The types of what is judged; importing them imports no TensorFlow."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias, Union

import numpy as np

if TYPE_CHECKING:
    from tfbbb.export.exported_model import ExportedModel
    from tfbbb.model.predictive_model import PredictiveModel
    from tfbbb.prediction import Predictive

Inputs: TypeAlias = np.ndarray | Mapping[str, np.ndarray]
"""What a model of a table reads: a matrix [n, d], or arrays [n] by name."""

Model: TypeAlias = Union["PredictiveModel", "ExportedModel"]
"""A model that predicts: of this process, or loaded from a SavedModel."""

Prediction: TypeAlias = "Predictive"
"""A prediction of rows, by one model or by the members that left each row out."""
