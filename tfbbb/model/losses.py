"""Losses that are a row's negative log likelihood."""

from typing import Any

import keras
import tensorflow as tf
from keras import tree

from tfbbb.base.private_apis import mask_of
from tfbbb.base.types import ArrayLike, Config, Identifier, Structure, Tensor
from tfbbb.bayes import likelihoods
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.model.place_weights import split_weights


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
        name: Name of the loss.
        **kwargs: Options of `keras.losses.Loss`, such as `reduction`.

    Raises:
        ValueError: For `Normal()`, whose noise is learned: a loss has no trainable
            variables, so only `tfbbb.BayesianModel` can train it.
    """

    def __init__(
        self,
        likelihood: Identifier | Likelihood | None,
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

    def __call__(
        self, y_true: ArrayLike, y_pred: Tensor, sample_weight: ArrayLike = None
    ) -> tf.Tensor:
        """Returns the loss of a minibatch.

        Args:
            y_true: Targets in raw units.
            y_pred: Outputs of the network, [rows, places..., P]. Places that their
                Keras mask leaves out do not count.
            sample_weight: Weights of rows, [rows], or of places, [rows, places...].
        """
        mask = mask_of(y_pred)
        y_pred = tf.convert_to_tensor(y_pred)
        sample_weight, of_places = split_weights(
            sample_weight, mask, y_pred.shape.rank - 2
        )
        by_row = self.call(y_true, y_pred, of_places)
        return _Reduction(reduction=self.reduction)(by_row, by_row, sample_weight)

    def call(
        self, y_true: ArrayLike, y_pred: Tensor, weights: Tensor | None = None
    ) -> tf.Tensor:
        if not self.likelihood.built:
            self.likelihood.build(y_pred.shape)
        return self.likelihood.negative_log_likelihood(y_true, y_pred, weights)

    def get_config(self) -> Config:
        return {
            **super().get_config(),
            "likelihood": likelihoods.serialize(self.likelihood),
        }


@keras.saving.register_keras_serializable(package="tfbbb")
class ModelWithHeads(keras.Model):
    """A model of several outputs, whose losses may be likelihoods: see `convert`."""

    def compile(
        self, optimizer: Any = "rmsprop", loss: Structure = None, **kwargs: Any
    ) -> None:
        """Configures training, as `keras.Model.compile`."""
        super().compile(optimizer, tree.map_structure(_as_loss, loss), **kwargs)


def _as_loss(given: Any) -> Any:
    is_name = isinstance(given, str) and given in likelihoods.names()
    is_likelihood = is_name or isinstance(given, Likelihood)
    return NegativeLogLikelihood(given) if is_likelihood else given


class _Reduction(keras.losses.Loss):
    """The mean, or another reduction, of losses of rows."""

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        return y_pred
