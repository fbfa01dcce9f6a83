"""The embedding layer."""

from typing import ClassVar

import keras
import tensorflow as tf
from keras import ops

from tfbbb.base.types import Tensor
from tfbbb.bayes.variational_weight import VariationalWeight
from tfbbb.layers.linear_variational import LinearVariationalLayer


@keras.saving.register_keras_serializable(package="tfbbb.layers")
class EmbeddingVariational(LinearVariationalLayer, keras.layers.Embedding):
    """A table of vectors with a posterior, from which indices pick.

    `output[..., :] = embeddings[input[...], :]`, `embeddings ~ q`

    The fan-in is 1, because each index picks one row of the table. The divergence
    counts the whole table in each step: rows that are never picked go to their prior.

    `"local"` draws only the picked entries, not the table. It is exact if a row of the
    batch has one index. With several indices, equal ones must share a vector, so
    `"auto"` chooses `"flipout"`: a sign for each row of the batch and each entry of a
    vector.

    Example:

    >>> import numpy as np, tfbbb
    >>> layer = tfbbb.layers.EmbeddingVariational(1000, 8, kl_weight=0.1)
    >>> layer(np.array([[4, 20], [4, 4]])).shape
    TensorShape([2, 2, 8])

    Args:
        input_dim: Number of categories: the largest index plus one.
        embeddings_initializer: Keras initializer of the table's posterior mean, such as
            `keras.initializers.Constant(table)` for a table that is known.
        bias_posterior: Without effect, as there is no bias.
        bias_prior: Without effect.

    Input shape:
        [batch, ...], integers from 0 to `input_dim - 1`.

    Output shape:
        [batch, ..., output_dim].
    """

    posterior_weights: ClassVar = {"embeddings": "kernel"}
    activation = staticmethod(keras.activations.linear)
    use_bias = False
    bias = None

    @property
    def kernel(self) -> VariationalWeight:
        """The table, [input_dim, output_dim]; `embeddings` is the same."""
        return self.embeddings

    def fan_in(self, kernel_shape: tuple[int, ...]) -> int:
        return 1

    def cast_inputs(self, inputs: Tensor) -> Tensor:
        if keras.backend.standardize_dtype(inputs.dtype) in ("int32", "int64"):
            return inputs
        return ops.cast(inputs, "int32")

    def linear(self, inputs: Tensor, kernel: Tensor) -> Tensor:
        if len(kernel.shape) == 2:
            # As a group of one: the gradient of a plain `tf.gather` would be sparse
            # slices, but the divergence needs a gradient of the whole table anyway.
            return self.linear(inputs[tf.newaxis], kernel[tf.newaxis])[0]
        if inputs.shape[0] == 1 and kernel.shape[0] != 1:
            return tf.gather(kernel, inputs[0], axis=1)
        return tf.gather(kernel, inputs, batch_dims=1)

    def linear_in_squares(self, inputs: Tensor, kernel: Tensor) -> Tensor:
        # An index stands for a one-hot vector, whose entries 0 and 1 are their squares.
        return self.linear(inputs, kernel)

    def input_sign_shape(self, inputs: Tensor) -> None:
        return None

    def is_local_exact(self, input_rank: int, calls: int | None) -> bool:
        return input_rank == 1 and calls == 1

    # That of Keras' layer takes the inputs alone.
    compute_output_spec = keras.Layer.compute_output_spec
