"""Losses that are a row's negative log likelihood."""

from collections.abc import Mapping
from typing import Any

import keras
import tensorflow as tf

from tfbbb import likelihoods
from tfbbb.likelihoods import Likelihood
from tfbbb.types import ArrayLike, Tensor


@keras.saving.register_keras_serializable(package="tfbbb.losses")
class NegativeLogLikelihood(keras.losses.Loss):
    """`-log p(y | outputs)` of each row, summed over its targets, averaged over rows.

    With this loss and `kl_weight=1/N`, plain `compile` and `fit` minimise the negative
    evidence lower bound over N, also with several targets (Keras' own losses average
    over those).

    Example:

    >>> import keras, tfbbb
    >>> likelihood = tfbbb.likelihoods.Normal(heteroscedastic=True)
    >>> model = keras.Sequential([
    ...     keras.Input((3,)),
    ...     tfbbb.layers.DenseVariational(2, kl_weight=1 / 80),
    ... ])
    >>> model.compile("adam", loss=tfbbb.losses.NegativeLogLikelihood(likelihood))

    Args:
        likelihood: `"categorical"` or a `tfbbb.likelihoods.Likelihood` that learns
            nothing itself.

    Raises:
        ValueError: For `Normal()`, whose noise is learned: a loss has no trainable
            variables, so only `tfbbb.BayesianModel` can train it.
    """

    def __init__(
        self,
        likelihood: str | Mapping[str, Any] | Likelihood | None,
        name: str = "negative_log_likelihood",
        **kwargs: Any,
    ):
        super().__init__(name=name, **kwargs)
        self.likelihood = likelihoods.get(likelihood)
        if self.likelihood.learns:
            raise ValueError(
                "A loss cannot train the noise of this likelihood. Give the noise "
                "(`Normal(scale=...)`), make it an output of the network "
                "(`Normal(heteroscedastic=True)`), or train with "
                f"`tfbbb.BayesianModel`. Received: likelihood={likelihood!r}"
            )

    def call(self, y_true: ArrayLike, y_pred: Tensor) -> tf.Tensor:
        if not self.likelihood.built:
            self.likelihood.build(y_pred.shape)
        return self.likelihood.negative_log_likelihood(y_true, y_pred)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "likelihood": likelihoods.serialize(self.likelihood),
        }
