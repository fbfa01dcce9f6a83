"""The types of what is judged; importing them imports no TensorFlow."""

from typing import TYPE_CHECKING, TypeAlias, Union

if TYPE_CHECKING:
    from tfbbb.export.exported_model import ExportedModel
    from tfbbb.model.predictive_model import PredictiveModel
    from tfbbb.prediction import Predictive
    from tfbbb.prediction.recalibration.cross_fitted import CrossFitted

Model: TypeAlias = Union["PredictiveModel", "ExportedModel"]
"""A model that predicts: of this process, or loaded from a SavedModel."""

Prediction: TypeAlias = Union["Predictive", "CrossFitted"]
"""A prediction of rows, by one model or by the members that left each row out."""
