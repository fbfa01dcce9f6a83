"""The fully connected recurrent layer."""

from __future__ import annotations

from typing import Unpack

import keras

from tfbbb.base.types import Activation, Constraint, Initializer, Regularizer, Tensor
from tfbbb.layers.recurrent_variational import (
    RecurrentVariationalLayer,
    RecurrentVariationalOptions,
)


@keras.saving.register_keras_serializable(package="tfbbb.layers")
class SimpleRNNVariational(RecurrentVariationalLayer):
    """A fully connected recurrent layer whose weights have a posterior distribution.

    `h_t = activation(x_t @ kernel + h_{t-1} @ recurrent_kernel + bias)`

    with `kernel, recurrent_kernel, bias ~ q` drawn once per sequence: all of its time
    steps see the same weights (Fortunato et al. 2017). It trains by Bayes by backprop
    (Blundell et al. 2015), and its divergence counts once, not once per step.

    Example:

    >>> import keras, numpy as np, tfbbb
    >>> layer = tfbbb.layers.SimpleRNNVariational(4, kl_weight=1 / 80)
    >>> layer(np.ones((2, 10, 3), "float32")).shape
    TensorShape([2, 4])

    Args:
        units: Number of outputs, a positive integer.
        activation: Keras activation, by name or as a function.
        use_bias: Whether a bias is added.
        kernel_initializer: Keras initializer of the input kernel's posterior mean.
        recurrent_initializer: Keras initializer of the recurrent kernel's mean.
        bias_initializer: Keras initializer of the bias' posterior mean.
        kernel_regularizer: Keras regularizer of the input kernel's posterior mean.
        recurrent_regularizer: Keras regularizer of the recurrent kernel's mean.
        bias_regularizer: Keras regularizer of the bias' posterior mean.
        activity_regularizer: Keras regularizer of the output.
        kernel_constraint: Keras constraint on the input kernel's posterior mean.
        recurrent_constraint: Keras constraint on the recurrent kernel's posterior mean.
        bias_constraint: Keras constraint on the bias' posterior mean.
        dropout: Fraction of the inputs to drop in training, at least 0, less than 1.
        recurrent_dropout: Fraction of the state to drop in training, for its product
            with the recurrent kernel.
        return_sequences: Whether to return the outputs of all steps.
        return_state: Whether to return the last state too.
        go_backwards: Whether to begin at the end of the sequences.
        stateful: Whether a batch begins with the last state of the previous batch.
            Such a layer has no posterior predictive.
        unroll: Whether to unroll the loop.
        seed: Integer that fixes the noise of training.
        posterior: q of the two kernels, by name or as a `tfbbb.posteriors.Posterior`.
        prior: p of the two kernels, by name or as a `tfbbb.priors.Prior`. The default
            is `Normal(scale=0.5)`.
        bias_posterior: q of the bias.
        bias_prior: p of the bias. The default is a standard normal.
        estimator: How noise reaches the output: `"weight"` draws weights once per step
            of training, `"flipout"` weights for each sequence by random signs,
            `"score_function"` weights without a gradient; `"auto"` takes `"flipout"`
            where the posterior is symmetric and factorises, else `"weight"`.
        kl_weight: Weight of the KL divergence in the loss, `1/N` for N training rows.
            With `None`, `tfbbb.BayesianModel` sets it in `fit`.
        members: Number of posteriors that the layer holds.
        zero_output_for_mask: Whether masked steps give zeros instead of the output
            before them.
        name: Name of the layer.
        dtype: Dtype policy of the layer. Posterior and divergence stay in float32.
        trainable: Whether the layer's variables are trained.

    Call arguments:
        sequences: [batch, timesteps, input_dim].
        initial_state: List of the initial states, each [batch, units].
        mask: Boolean, [batch, timesteps]: which steps to take.
        training: Whether the call is for training.

    Output shape:
        [batch, units], or [batch, timesteps, units] with `return_sequences`; with
        `return_state` followed by the state, [batch, units].

    Raises:
        ValueError: `units` is not a positive integer, a dropout is out of range, a name
            is unknown, or the estimator cannot train this layer with its posteriors
            (`"local"` would draw anew at every step).
    """

    def __init__(
        self,
        units: int,
        activation: Activation = "tanh",
        use_bias: bool = True,
        kernel_initializer: Initializer = "glorot_uniform",
        recurrent_initializer: Initializer = "orthogonal",
        bias_initializer: Initializer = "zeros",
        kernel_regularizer: Regularizer = None,
        recurrent_regularizer: Regularizer = None,
        bias_regularizer: Regularizer = None,
        activity_regularizer: Regularizer = None,
        kernel_constraint: Constraint = None,
        recurrent_constraint: Constraint = None,
        bias_constraint: Constraint = None,
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        stateful: bool = False,
        unroll: bool = False,
        seed: int | None = None,
        **options: Unpack[RecurrentVariationalOptions],
    ):
        super().__init__(
            units,
            activation=activation,
            use_bias=use_bias,
            kernel_initializer=kernel_initializer,
            recurrent_initializer=recurrent_initializer,
            bias_initializer=bias_initializer,
            kernel_regularizer=kernel_regularizer,
            recurrent_regularizer=recurrent_regularizer,
            bias_regularizer=bias_regularizer,
            activity_regularizer=activity_regularizer,
            kernel_constraint=kernel_constraint,
            recurrent_constraint=recurrent_constraint,
            bias_constraint=bias_constraint,
            dropout=dropout,
            recurrent_dropout=recurrent_dropout,
            return_sequences=return_sequences,
            return_state=return_state,
            go_backwards=go_backwards,
            stateful=stateful,
            unroll=unroll,
            seed=seed,
            **options,
        )

    def step_from_sum(
        self, pre_activations: Tensor, states: list[Tensor]
    ) -> tuple[Tensor, list[Tensor]]:
        output = self.activation(pre_activations)
        return output, [output]
