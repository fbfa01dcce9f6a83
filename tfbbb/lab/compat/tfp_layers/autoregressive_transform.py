"""The masked autoregressive flow as a layer."""

from typing import Any

import keras
import tensorflow as tf
import tensorflow_probability as tfp

from tfbbb.base.types import Config, Distribution, Shape
from tfbbb.lab.compat.tfp_layers.adopted_variable import adopt
from tfbbb.lab.compat.tfp_layers.distribution_lambda import DistributionLambda
from tfbbb.lab.compat.tfp_layers.distribution_tensor import as_distribution
from tfbbb.lab.compat.tfp_layers.function_config import to_config

tfd = tfp.distributions
tfb = tfp.bijectors


@keras.saving.register_keras_serializable(package="tfbbb.compat.tfp_layers")
class AutoregressiveTransform(DistributionLambda):
    """Transforms a distribution by an autoregressive flow (Papamakarios et al. 2017).

    `x_i = u_i exp(log_scale_i) + shift_i`, `u` of the distribution that is the input
    and `shift_i, log_scale_i = made(x)[i]` functions of `x_1 ... x_{i-1}`.

    Args:
        made: Layer that computes the two parameters of each element, [..., d, 2], with
            an attribute `params` of 2, such as `tfp.bijectors.AutoregressiveNetwork`;
            its variables are trained with the model.
        **kwargs: Options of `DistributionLambda`.

    Raises:
        ValueError: `made.params` is not 2, or a model with a `made` of legacy Keras is
            saved.
    """

    def __init__(self, made: Any, **kwargs: Any):
        kwargs.pop("make_distribution_fn", None)
        super().__init__(self._transform, **kwargs)
        if made.params != 2:
            raise ValueError(
                "`made` must have two parameters for each element: its shift and its "
                f"log scale. Received: made.params={made.params}"
            )
        self._made = made

    def build(self, input_shape: Shape) -> None:
        if not self._made.built:
            self._made.build(tf.TensorShape(input_shape))
        if not isinstance(self._made, keras.Layer):
            adopt(self, self._made.variables)
        self.built = True

    def compute_output_spec(self, distribution: Distribution) -> keras.KerasTensor:
        # Keras may pass a shape to build the layer; then there is no distribution.
        return keras.KerasTensor(distribution.shape, distribution.dtype)

    def get_config(self) -> Config:
        if not isinstance(self._made, keras.Layer):
            raise ValueError(
                "A network of legacy Keras has no place in a file of Keras 3: save the "
                "weights of the model, `model.save_weights`, and make its layers anew. "
                f"Received: made={self._made!r}"
            )
        config = super(DistributionLambda, self).get_config()
        return {
            **config,
            **self._serialized_conversion(),
            "made": to_config(self._made),
        }

    def _transform(self, distribution: Distribution) -> tfp.distributions.Distribution:
        return tfd.TransformedDistribution(
            distribution=as_distribution(distribution),
            bijector=tfb.MaskedAutoregressiveFlow(
                lambda x: tf.unstack(self._made(x), axis=-1)
            ),
        )
