"""The embedding layer."""

from typing import Any, Unpack

import keras
import tensorflow as tf
from keras import ops

from tfbbb.base.numbers import positive_integer
from tfbbb.base.types import Config, Constraint, Initializer, Regularizer, Tensor
from tfbbb.bayes.variational_weight import VariationalWeight
from tfbbb.layers.linear_variational import LinearVariationalLayer
from tfbbb.layers.variational import VariationalOptions


@keras.saving.register_keras_serializable(package="tfbbb.layers")
class EmbeddingVariational(LinearVariationalLayer):
    """A table of vectors with a posterior, from which indices pick.

    `output[..., :] = embeddings[input[...], :]`, `embeddings ~ q`

    The fan-in is 1, because each index picks one row of the table. The divergence
    counts the whole table in each step, however few of its rows a batch picks. Training
    moves rows that the data never picks to their prior.

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
        output_dim: Length of a vector.
        embeddings_initializer: Keras initializer of the table's posterior mean.
        embeddings_regularizer: Keras regularizer of the table's posterior mean.
        embeddings_constraint: Keras constraint on the table's posterior mean.
        mask_zero: Whether the index 0 is padding, to be masked in later layers.
        weights: Initial posterior mean, [input_dim, output_dim], or a list of that.
        posterior: q of the table.
        prior: p of the table.
        bias_posterior: Without effect, as there is no bias.
        bias_prior: Without effect.

    Input shape:
        [batch, ...], integers from 0 to `input_dim - 1`.

    Output shape:
        [batch, ..., output_dim].

    Raises:
        ValueError: A dimension is not a positive integer, `weights` has another shape,
            or as for `DenseVariational`.
    """

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        embeddings_initializer: Initializer = "uniform",
        embeddings_regularizer: Regularizer = None,
        embeddings_constraint: Constraint = None,
        mask_zero: bool = False,
        weights: Any = None,
        **options: Unpack[VariationalOptions],
    ):
        super().__init__(
            use_bias=False,
            kernel_initializer=embeddings_initializer,
            kernel_regularizer=embeddings_regularizer,
            kernel_constraint=embeddings_constraint,
            **options,
        )
        self.input_dim = positive_integer("input_dim", input_dim)
        self.output_dim = positive_integer("output_dim", output_dim)
        self.mask_zero = mask_zero
        self.supports_masking = mask_zero
        # Half precision cannot represent large indices.
        self.autocast = False
        self._initial_mean = self._validate_weights(weights)

    def _validate_weights(self, weights: Any) -> Any:
        if weights is None:
            return None
        if isinstance(weights, list) and len(weights) == 1:
            weights = weights[0]
        matrix = ops.convert_to_numpy(weights)
        if matrix.shape != (self.input_dim, self.output_dim):
            raise ValueError(
                f"`weights` must have the shape ({self.input_dim}, {self.output_dim}) "
                f"of the table. Received: weights of shape {matrix.shape}"
            )
        return matrix

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        self.input_rank = len(input_shape)
        self.kernel = self.add_variational_weight(
            "kernel",
            (self.input_dim, self.output_dim),
            fan_in=1,
            initializer=self.kernel_initializer
            if self._initial_mean is None
            else keras.initializers.Constant(self._initial_mean),
            regularizer=self.kernel_regularizer,
            constraint=self.kernel_constraint,
        )
        self.bias = None
        self.add_kl_weight()

    @property
    def embeddings(self) -> VariationalWeight:
        """The table, [input_dim, output_dim]."""
        return self.kernel

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

    def compute_mask(self, inputs: Tensor, previous_mask: Any = None) -> Any:
        return ops.not_equal(inputs, 0) if self.mask_zero else None

    def compute_output_shape(
        self, input_shape: tuple[int | None, ...]
    ) -> tuple[int | None, ...]:
        return (*input_shape, self.output_dim)

    def get_config(self) -> Config:
        config = super().get_config()
        for part in ("initializer", "regularizer", "constraint"):
            config[f"embeddings_{part}"] = config.pop(f"kernel_{part}")
            del config[f"bias_{part}"]
        del config["activation"], config["use_bias"]
        return {
            **config,
            "input_dim": self.input_dim,
            "output_dim": self.output_dim,
            "mask_zero": self.mask_zero,
        }
