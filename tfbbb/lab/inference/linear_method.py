"""The base class of methods for linear models: one dense layer with one output."""

from typing import ClassVar

import keras

from tfbbb.base.types import ArrayLike, Identifier, Structure
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.inference.batches import Batches
from tfbbb.inference.method import InferenceMethod, as_bayesian_model
from tfbbb.lab.inference.linear_model import LinearModel
from tfbbb.model.bayesian_model import BayesianModel


class LinearMethod(InferenceMethod):
    """Finds the posterior of a linear model. A subclass implements `_posterior`."""

    covariance: str
    # The name for error messages, and what the method takes.
    _name: ClassVar[str]
    _likelihoods: ClassVar[tuple[type[Likelihood], ...]]
    _takes_precisions: ClassVar[bool] = False

    def fit(
        self,
        model: keras.Model,
        x: Structure,
        y: ArrayLike = None,
        *,
        likelihood: Identifier | Likelihood | None = None,
        sample_weight: ArrayLike = None,
        batch_size: int = 256,
        verbose: int = 0,
    ) -> BayesianModel:
        """Returns a model with the posterior of its dense layer."""
        problem = LinearModel(
            as_bayesian_model(model, likelihood),
            Batches(x, y, sample_weight, batch_size),
            self._name,
            self.covariance,
            self._likelihoods,
            self._takes_precisions,
        )
        return self._posterior(problem, verbose)

    def _posterior(self, problem: LinearModel, verbose: int) -> BayesianModel:
        raise NotImplementedError
