"""log p(y, w) - log q(w) of weights drawn from a model's posterior."""

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from tfbbb.base import noise
from tfbbb.base.types import Structure, Tensor
from tfbbb.inference.network_function import NetworkFunction
from tfbbb.model.bayesian_model import BayesianModel


def check_density(model: BayesianModel) -> None:
    """Checks that a model has one posterior, with a density, and no recalibration."""
    if not isinstance(model, BayesianModel):
        raise ValueError(
            "The evidence is that of a `tfbbb.BayesianModel`. "
            f"Received: a model of type {type(model).__name__}"
        )
    if len(model.members) > 1:
        raise ValueError(
            "The evidence is estimated for one posterior: take one member, "
            f"`model.members[0]`. Received: {len(model.members)} members"
        )
    if model.recalibration is not None:
        raise ValueError(
            "The evidence is that of the likelihood before recalibration: set "
            "`model.recalibration = None` first. "
            f"Received: recalibration={model.recalibration!r}"
        )
    for layer in model.variational_layers:
        for weight in layer.variational_weights:
            if not weight.posterior.has_density or weight.prior is None:
                raise ValueError(
                    "Every weight needs a prior, and a posterior with a density, such "
                    "as 'mean_field_normal'; methods of `tfbbb.inference` such as "
                    "Laplace give point estimates one. Received: "
                    f"{layer.name}/{weight.name} with posterior={weight.posterior!r}, "
                    f"prior={weight.prior!r}"
                )


class LogRatio:
    """`log p(y | w) + log p(w) - log q(w)` as a function of the noise behind w ~ q.

    Args:
        model: The model: see `check_density`.

    Attributes:
        size: Number of standard normals behind one draw of all weights.
    """

    def __init__(self, model: BayesianModel):
        check_density(model)
        self.network = NetworkFunction(model)
        self._shapes = [
            weight.posterior.noise_shape(weight.shape)
            for weight in self.network.weights
        ]
        self._sizes = [int(np.prod(shape)) for shape in self._shapes]
        self.size = sum(self._sizes)

    def noise(self, seed: Tensor, count: int | Tensor) -> tf.Tensor:
        """Returns the standard normal noise of draws, [count, size]."""
        return noise.normal(seed, (count, self.size))

    def values(self, vectors: Tensor) -> list[tf.Tensor]:
        """Returns weights as functions of noise [K, size], [K, *shape] each."""
        parts = tf.split(vectors, self._sizes, axis=-1)
        return [
            weight.draw_from(tf.reshape(part, [-1, *shape]))
            for weight, part, shape in zip(
                self.network.weights, parts, self._shapes, strict=True
            )
        ]

    def log_weights(self, values: Sequence[Tensor]) -> tf.Tensor:
        """Returns log p(w) - log q(w), [K], float64."""
        total = self.network.log_prior(values)
        for weight, value in zip(self.network.weights, values, strict=True):
            total -= tf.reshape(weight.log_prob(value), [-1])
        return tf.cast(total, tf.float64)

    def log_likelihood(
        self, values: Sequence[Tensor], x: Structure, y: Tensor, weights: Tensor
    ) -> tf.Tensor:
        """Returns the weighted log likelihood of some rows, [K], float64."""
        per_row = tf.cast(self.network.log_likelihood(values, x, y), tf.float64)
        return tf.reduce_sum(per_row * tf.cast(weights, tf.float64), axis=1)
