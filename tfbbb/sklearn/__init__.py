"""Estimators of scikit-learn, trained by the default recipe of jobs.

Importing them imports scikit-learn, but not TensorFlow, which `fit` and `predict` need.
"""

from tfbbb.sklearn.classifier import BayesianClassifier
from tfbbb.sklearn.regressor import BayesianRegressor

__all__ = ["BayesianClassifier", "BayesianRegressor"]
