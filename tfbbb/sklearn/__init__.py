"""Estimators of scikit-learn, trained by the default recipe of jobs.

Importing them imports scikit-learn, but not TensorFlow, which `fit` and `predict` need.
"""

import importlib.util

if importlib.util.find_spec("sklearn") is None:
    raise ImportError(
        "`tfbbb.sklearn` needs scikit-learn: `pip install tfbbb`, or `pip install "
        "scikit-learn` beside `tfbbb-predict`.",
        name="sklearn",
    )

from tfbbb.sklearn.classifier import BayesianClassifier
from tfbbb.sklearn.regressor import BayesianRegressor

__all__ = ["BayesianClassifier", "BayesianRegressor"]
