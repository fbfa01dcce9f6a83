"""Entries for ScoringBench, which scores predictive distributions of numbers.

Copy this file into a clone of ScoringBench: see `README.md` beside it.
"""

import numpy as np
from scoringbench.multivariate.prediction import MultivariateSamplePrediction
from scoringbench.multivariate.wrappers.base import MultivariateWrapper
from scoringbench.univariate.wrappers.base import (
    DistributionPrediction,
    ProbabilisticWrapper,
)

from tfbbb.sklearn import BayesianRegressor

# As many as the entries of quantile regression have.
_LEVELS = np.arange(1, 100) / 100


class TfbbbWrapper(ProbabilisticWrapper):
    """`BayesianRegressor` with its defaults, or with some of its arguments."""

    def __init__(self, **arguments):
        self._model = BayesianRegressor(**arguments)

    def fit(self, X, y):
        """Trains on rows; those without a finite target are left out."""
        y = np.asarray(y, float).reshape(-1)
        finite = np.isfinite(y)
        self._set_train_range(y[finite])
        self._model.fit(X[finite], y[finite])
        return self

    def predict(self, X):
        """Returns the means [rows]."""
        return self._model.predict(X)

    def predict_distribution(self, X):
        """Returns the quantiles of the predictive distribution, with its mean."""
        prediction = self._model.predict_dist(X)
        return DistributionPrediction.from_multi_quantile(
            prediction.quantile(_LEVELS)[..., 0],
            _LEVELS,
            mean=prediction.mean[:, 0],
            train_range=self._y_train_range,
        )


class TfbbbMultivariateWrapper(MultivariateWrapper):
    """One `BayesianRegressor` of all targets, whose draws have them together."""

    def __init__(self, n_draws=1000, seed=0, **arguments):
        self._model = BayesianRegressor(**arguments)
        self._n_draws, self._seed = n_draws, seed

    def fit(self, X, Y):
        """Trains on rows and their targets [rows, d]."""
        self._model.fit(X, np.asarray(Y, float))
        return self

    def predict_ensemble(self, X):
        """Returns draws [rows, draws, d] of the predictive distribution."""
        draws = self._model.sample(X, self._n_draws, seed=self._seed)
        return MultivariateSamplePrediction(np.moveaxis(draws, 0, 1))
