"""Stochastic variational inference for linear regression."""

from typing import Literal

import keras
import numpy as np

from tfbbb.base.numbers import int32, positive_integer, positive_number
from tfbbb.bayes.likelihoods import Normal
from tfbbb.lab.inference.cavi import conjugate_model, conjugate_regression
from tfbbb.lab.inference.conjugate_regression import ConjugateRegression
from tfbbb.lab.inference.linear_model import LinearMethod, LinearModel
from tfbbb.model.bayesian_model import BayesianModel


class SVI(LinearMethod):
    """Stochastic variational inference of a linear regression (Hoffman et al. 2013).

    The same q, priors and optimum as `CAVI`. In step t a minibatch stands for all rows,
    and the natural parameters of each factor move

        eta <- (1 - rho_t) eta + rho_t eta_hat,   rho_t = (t + delay)^-forgetting

    towards the optimum `eta_hat` that they have for these rows: a noisy natural
    gradient of the bound. The sum of the steps diverges and that of their squares
    converges, for `0.5 < forgetting <= 1`.

    Example:

    >>> import keras, numpy as np, tfbbb
    >>> x = np.random.default_rng(0).normal(size=(400, 2))
    >>> inputs = keras.Input((2,))
    >>> layer = tfbbb.layers.DenseVariational(1, use_bias=False)
    >>> network = tfbbb.BayesianModel(inputs, layer(inputs))
    >>> method = tfbbb.lab.inference.SVI(batch_size=50, epochs=5)
    >>> model = method.fit(network, x, x @ [1.0, -2.0], verbose=0)
    >>> len(model.diagnostics["bound"])
    5

    Args:
        covariance: `"full"` or `"factorised"`, as for `CAVI`.
        batch_size: Rows in a minibatch, a positive integer.
        epochs: Passes over the rows.
        delay: Makes the first steps smaller; not negative.
        forgetting: Exponent of the steps, above 0.5 and at most 1.
        noise_shape: As for `CAVI`.
        noise_rate: As for `CAVI`.
        seed: Integer that fixes the minibatches.

    Raises:
        ValueError: An argument is out of range.
    """

    _name = "SVI"
    _likelihoods = (Normal,)
    _takes_precisions = True

    def __init__(
        self,
        covariance: Literal["full", "factorised"] = "full",
        batch_size: int = 64,
        epochs: int = 50,
        delay: float = 1.0,
        forgetting: float = 0.8,
        noise_shape: float = 1.0,
        noise_rate: float = 1.0,
        seed: int = 0,
    ):
        self.covariance = covariance
        self.batch_size = positive_integer("batch_size", batch_size)
        self.epochs = positive_integer("epochs", epochs)
        if not positive_number("forgetting", forgetting) <= 1.0 or forgetting <= 0.5:
            raise ValueError(
                "`forgetting` must be above 0.5 and at most 1, for the steps to "
                f"converge. Received: forgetting={forgetting!r}"
            )
        self.forgetting = forgetting
        self.delay = delay if delay == 0 else positive_number("delay", delay)
        self.noise_shape = positive_number("noise_shape", noise_shape)
        self.noise_rate = positive_number("noise_rate", noise_rate)
        self.seed = int32("seed", seed, least=0)

    def _posterior(self, problem: LinearModel, verbose: int) -> BayesianModel:
        q = conjugate_regression(problem, self.noise_shape, self.noise_rate)
        bounds = self._ascend(q, len(problem.targets), verbose)
        return conjugate_model(problem, q, self, bounds)

    def _ascend(self, q: ConjugateRegression, size: int, verbose: int) -> list[float]:
        """Moves q along natural gradients; returns the bound after each epoch."""
        generator = np.random.default_rng(self.seed)
        bar = keras.utils.Progbar(self.epochs, verbose=verbose, unit_name="epoch")
        bounds: list[float] = []
        steps = 0
        for epoch in range(self.epochs):
            order = generator.permutation(size)
            # Minibatches of the same size; the remaining rows wait for another epoch.
            batch = min(self.batch_size, size)
            for first in range(0, size - batch + 1, batch):
                steps += 1
                rate = (steps + self.delay) ** -self.forgetting
                q.update(order[first : first + batch], rate)
            bounds.append(q.bound())
            bar.update(epoch + 1, [("bound", bounds[-1] / size)])
        return bounds
