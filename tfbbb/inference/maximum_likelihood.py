"""Maximum likelihood."""

import os
from collections.abc import Mapping
from typing import Any

import keras

from tfbbb.base.types import ArrayLike
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.inference.batches import Batches
from tfbbb.inference.gradient_training import GradientTraining
from tfbbb.inference.method import as_bayesian_model
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.model.conversion import with_posterior
from tfbbb.model.optimizers import Adam


class MaximumLikelihood(GradientTraining):
    """The weights that make the data most likely: `argmax_w log p(D | w)`.

    Returns `point` posteriors without priors. On a linear network with normal noise
    they are those of least squares.

    Example:

    >>> import keras, numpy as np, tfbbb
    >>> x = np.linspace(-1, 1, 20, dtype="float32")[:, np.newaxis]
    >>> network = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    >>> method = tfbbb.inference.MaximumLikelihood(epochs=100, learning_rate=0.1)
    >>> model = method.fit(network, x, 3.0 * x, likelihood="normal", verbose=0)
    >>> round(float(model.variational_layers[0].kernel.mean[0, 0]), 2)
    3.0

    Args:
        epochs: Number of passes over the rows.
        batch_size: Rows of a step; a dataset has its own batches.
        learning_rate: The learning rate of Adam at the start; it decays to 0.
    """

    _priors: Mapping[str, Any] = {"prior": None, "bias_prior": None}

    def fit(
        self,
        model: keras.Model,
        x: Any,
        y: ArrayLike = None,
        *,
        likelihood: str | Mapping[str, Any] | Likelihood | None = None,
        sample_weight: ArrayLike = None,
        verbose: int | str = "auto",
        backup_dir: str | os.PathLike[str] | None = None,
    ) -> BayesianModel:
        model = as_bayesian_model(model, likelihood)
        points = with_posterior(model, "point", **self._priors)
        optimizer = Adam(self.decay(Batches(x, y, sample_weight, self.batch_size)))
        figures = self.train(
            points, optimizer, x, y, sample_weight, verbose, backup_dir
        )
        points.inference = self.result(**figures)
        return points
