"""The base class of methods that train by stochastic gradients."""

import os
from typing import Any

import keras
import numpy as np

from tfbbb.base.numbers import positive_integer, positive_number
from tfbbb.base.types import ArrayLike, Identifier, LearningRate, Structure
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.inference.batches import Batches
from tfbbb.inference.method import InferenceMethod, as_bayesian_model
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.model.conversion import with_posterior
from tfbbb.model.optimizers import Adam


class GradientTraining(InferenceMethod):
    """Trains by minibatches with Keras' `fit`, at a learning rate that decays to 0.

    The rate follows half a cosine over all steps, so that the result does not depend on
    the last batch. A subclass says what is trained, how, and what becomes of it.

    Args:
        epochs: Number of passes over the rows.
        batch_size: Rows of a step; a dataset has its own batches.
        learning_rate: The learning rate at the start.
    """

    def __init__(
        self,
        epochs: int = 200,
        batch_size: int = 32,
        learning_rate: float = 0.01,
    ):
        self.epochs = positive_integer("epochs", epochs)
        self.batch_size = positive_integer("batch_size", batch_size)
        self.learning_rate = positive_number("learning_rate", learning_rate)

    def fit(
        self,
        model: keras.Model,
        x: Structure,
        y: ArrayLike = None,
        *,
        likelihood: Identifier | Likelihood | None = None,
        sample_weight: ArrayLike = None,
        verbose: int | str = "auto",
        backup_dir: str | os.PathLike[str] | None = None,
    ) -> BayesianModel:
        """Returns the trained model."""
        model = as_bayesian_model(model, likelihood)
        points = self._start(model)
        batches = Batches(x, y, sample_weight, self.batch_size)
        optimizer = self._optimizer(batches)
        figures = self.train(
            points, optimizer, x, y, sample_weight, verbose, backup_dir
        )
        result = self._posterior(points, optimizer)
        result.inference = self.result(**figures)
        return result

    def _start(self, model: BayesianModel) -> BayesianModel:
        """Returns a new model with the posteriors that are trained."""
        return with_posterior(model, "point")

    def _optimizer(self, batches: Batches) -> keras.optimizers.Optimizer:
        return Adam(self.decay(batches))

    def _posterior(
        self, points: BayesianModel, optimizer: keras.optimizers.Optimizer
    ) -> BayesianModel:
        """Returns the model with the posterior, from the trained model."""
        return points

    def decay(self, batches: Batches) -> LearningRate:
        """Returns the schedule of the learning rate."""
        steps = max(1, self.epochs * len(batches))
        return keras.optimizers.schedules.CosineDecay(self.learning_rate, steps)

    def train(
        self,
        model: BayesianModel,
        optimizer: keras.optimizers.Optimizer,
        x: Structure,
        y: ArrayLike,
        sample_weight: ArrayLike,
        verbose: int | str,
        backup_dir: str | os.PathLike[str] | None = None,
        **options: Any,
    ) -> dict[str, float]:
        """Trains the model in place; returns the loss of the last epoch, by name."""
        model.compile(optimizer)
        if y is not None:
            options |= {"batch_size": self.batch_size, "sample_weight": sample_weight}
            y = np.asarray(y)
        if backup_dir is not None:
            backup = keras.callbacks.BackupAndRestore(backup_dir)
            options = {"callbacks": [backup], **options}
        history = model.fit(x, y, epochs=self.epochs, verbose=verbose, **options)
        return {name: history.history[name][-1] for name in ("loss", "nll", "kl")}
