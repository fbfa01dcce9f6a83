"""Variational inference by the improved variational online Newton method."""

from typing import Any

import tensorflow as tf

from tfbbb.base.numbers import int32, positive_number
from tfbbb.inference.batches import Batches
from tfbbb.inference.gradient_training import GradientTraining
from tfbbb.inference.method import refuse_batch_normalization
from tfbbb.model import optimizers
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.model.conversion import with_posterior


class IVON(GradientTraining):
    """A factorised normal q(w) at the price of Adam (Shen et al. 2024).

    Trains the network with `tfbbb.optimizers.IVON`, which has the equations, on the
    loss of `MAP`, and returns `mean_field_normal` posteriors with its means and
    standard deviations. They approximate the optimum of the evidence lower bound over
    factorised normals: on a quadratic, with the Hessian H of the negative log
    posterior, `sigma_i = H_ii^-1/2`.

    The likelihood's learned noise is trained with the weights; its mean is kept.

    Example:

    >>> import keras, numpy as np, tfbbb
    >>> x = np.linspace(-1, 1, 20, dtype="float32")[:, np.newaxis]
    >>> network = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    >>> method = tfbbb.inference.IVON(epochs=2)
    >>> model = method.fit(network, x, 3.0 * x, likelihood="normal", verbose=0)
    >>> type(model.variational_layers[0].posterior).__name__
    'MeanFieldNormal'

    Args:
        learning_rate: Share of Newton's step at the start; it decays to 0.
        initial_hessian: The curvature at the start, in units of the loss of a row.
        beta_1: Decay of the mean gradient.
        beta_2: Decay of the curvature; None for 10 spans of memory in the training,
            `1 - 10 / steps`, and at least 0.9.
        clip_radius: Largest step of a weight before the learning rate, or None.
        seed: The same seed gives the same noise.
    """

    def __init__(
        self,
        epochs: int = 200,
        batch_size: int = 32,
        learning_rate: float = 0.1,
        initial_hessian: float = 1.0,
        beta_1: float = 0.9,
        beta_2: float | None = None,
        clip_radius: float | None = 1.0,
        seed: int = 0,
    ):
        super().__init__(epochs, batch_size, learning_rate)
        self.initial_hessian = positive_number("initial_hessian", initial_hessian)
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.clip_radius = clip_radius
        self.seed = int32("seed", seed)

    def _start(self, model: BayesianModel) -> BayesianModel:
        refuse_batch_normalization(self, model)
        return super()._start(model)

    def _optimizer(self, batches: Batches) -> optimizers.IVON:
        beta_2 = self.beta_2
        if beta_2 is None:
            beta_2 = max(0.9, 1.0 - 10.0 / (self.epochs * len(batches)))
        return optimizers.IVON(
            self.decay(batches),
            num_rows=batches.size,
            initial_hessian=self.initial_hessian,
            beta_1=self.beta_1,
            beta_2=beta_2,
            clip_radius=self.clip_radius,
            seed=self.seed,
        )

    def _posterior(
        self, points: BayesianModel, optimizer: Any, *callbacks: Any
    ) -> BayesianModel:
        result = with_posterior(points, "mean_field_normal")
        for trained, weight in zip(
            points.variational_weights, result.variational_weights, strict=True
        ):
            scale = optimizer.posterior_scale(trained.variables["mean"])
            weight.variables["log_scale"].assign(tf.math.log(scale))
        return result
