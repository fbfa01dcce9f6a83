"""The long short-term memory (LSTM) layer."""

from __future__ import annotations

from typing import Unpack

import keras
from keras import ops

from tfbbb.base.types import (
    Activation,
    Config,
    Constraint,
    DType,
    Initializer,
    Regularizer,
    Shape,
    Tensor,
)
from tfbbb.layers.recurrent_variational import (
    RecurrentVariationalLayer,
    RecurrentVariationalOptions,
)


@keras.saving.register_keras_serializable(package="tfbbb.layers")
class LSTMVariational(RecurrentVariationalLayer):
    """A layer of long short-term memory whose weights have a posterior distribution.

    `i, f, g, o = split(x_t @ kernel + h_{t-1} @ recurrent_kernel + bias)`
    `c_t = sigmoid(f) * c_{t-1} + sigmoid(i) * tanh(g)`
    `h_t = sigmoid(o) * tanh(c_t)`

    (Hochreiter and Schmidhuber 1997) with `kernel, recurrent_kernel, bias ~ q` drawn
    once per sequence: all of its time steps see the same weights (Fortunato et al.
    2017). It trains by Bayes by backprop (Blundell et al. 2015), and its divergence
    counts once, not once per step.

    Example:

    >>> import keras, numpy as np, tfbbb
    >>> layer = tfbbb.layers.LSTMVariational(4, return_sequences=True, kl_weight=0.01)
    >>> layer(np.ones((2, 10, 3), "float32")).shape
    TensorShape([2, 10, 4])

    Args:
        units: Number of outputs, a positive integer.
        activation: Keras activation of `g` and `c`, by name or as a function.
        recurrent_activation: Activation of the gates `i`, `f` and `o`.
        use_bias: Whether a bias is added.
        kernel_initializer: Keras initializer of the input kernel's posterior mean.
        recurrent_initializer: Keras initializer of the recurrent kernel's mean.
        bias_initializer: Keras initializer of the bias' posterior mean.
        unit_forget_bias: Whether the posterior mean of the bias of `f` starts at one.
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
        seed: Integer that fixes the noise of training.
        return_sequences: Whether to return the outputs of all steps.
        return_state: Whether to return the last state too.
        go_backwards: Whether to begin at the end of the sequences.
        stateful: Whether a batch begins with the last state of the previous batch.
            Such a layer has no posterior predictive.
        unroll: Whether to unroll the loop.
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
        `return_state` followed by `h` and `c`, each [batch, units].

    Raises:
        ValueError: `units` is not a positive integer, a dropout is out of range, a name
            is unknown, or the estimator cannot train this layer with its posteriors
            (`"local"` would draw anew at every step).
    """

    num_gates = 4
    num_states = 2

    def __init__(
        self,
        units: int,
        activation: Activation = "tanh",
        recurrent_activation: Activation = "sigmoid",
        use_bias: bool = True,
        kernel_initializer: Initializer = "glorot_uniform",
        recurrent_initializer: Initializer = "orthogonal",
        bias_initializer: Initializer = "zeros",
        unit_forget_bias: bool = True,
        kernel_regularizer: Regularizer = None,
        recurrent_regularizer: Regularizer = None,
        bias_regularizer: Regularizer = None,
        activity_regularizer: Regularizer = None,
        kernel_constraint: Constraint = None,
        recurrent_constraint: Constraint = None,
        bias_constraint: Constraint = None,
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        seed: int | None = None,
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        stateful: bool = False,
        unroll: bool = False,
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
        self.set_objects(recurrent_activation=recurrent_activation)
        self.unit_forget_bias = unit_forget_bias

    def initializer_of_bias(self) -> Initializer:
        if self.unit_forget_bias:
            return _UnitForgetBias(self.bias_initializer)
        return self.bias_initializer

    def step_from_sum(
        self, pre_activations: Tensor, states: list[Tensor]
    ) -> tuple[Tensor, list[Tensor]]:
        _, c = states
        i, f, g, o = ops.split(pre_activations, 4, axis=-1)
        c = self.recurrent_activation(f) * c + (
            self.recurrent_activation(i) * self.activation(g)
        )
        h = self.recurrent_activation(o) * self.activation(c)
        return h, [h, c]

    def get_config(self) -> Config:
        return {
            **super().get_config(),
            "unit_forget_bias": self.unit_forget_bias,
        }


class _UnitForgetBias(keras.initializers.Initializer):
    """Ones for the forget gate, values of another initializer for the other gates.

    It has the other initializer's seed, so that members of an ensemble start apart.
    """

    def __init__(self, initializer: Initializer, seed: int | None = None):
        self.initializer = keras.initializers.get(initializer)
        self.seed = getattr(self.initializer, "seed", None)
        if seed is not None:
            config = {**self.initializer.get_config(), "seed": seed}
            self.initializer = type(self.initializer)(**config)
            self.seed = seed

    def __call__(self, shape: Shape, dtype: DType = None) -> Tensor:
        i, f, g, o = ops.split(self.initializer(shape, dtype=dtype), 4, axis=-1)
        return ops.concatenate([i, ops.ones_like(f), g, o], axis=-1)

    def get_config(self) -> Config:
        return {"initializer": self.initializer, "seed": self.seed}
