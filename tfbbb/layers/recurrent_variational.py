"""The base class of recurrent layers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Self

import keras
import tensorflow as tf
from keras import ops, tree

from tfbbb.base.batch_layout import merge_leading, split_leading
from tfbbb.base.call_context import RecurrentStep, call_with, current_call
from tfbbb.base.numbers import is_finite_number, positive_integer
from tfbbb.base.types import (
    Activation,
    Config,
    Constraint,
    Initializer,
    Regularizer,
    Shape,
    Structure,
    Tensor,
)
from tfbbb.bayes.estimators import Estimator, Local
from tfbbb.bayes.estimators.drawn_kernel import DrawnKernel
from tfbbb.bayes.estimators.weight import grouped_kernels
from tfbbb.layers.variational import VariationalLayer, VariationalOptions

# A loop takes as long as a small step, and its graph is smaller.
_FEW_STEPS = 32


class RecurrentOptions(VariationalOptions, total=False):
    """The options that recurrent layers share: see `RecurrentVariationalLayer`."""

    kernel_initializer: Initializer
    recurrent_initializer: Initializer
    bias_initializer: Initializer
    kernel_regularizer: Regularizer
    recurrent_regularizer: Regularizer
    bias_regularizer: Regularizer
    activity_regularizer: Regularizer
    kernel_constraint: Constraint
    recurrent_constraint: Constraint
    bias_constraint: Constraint
    dropout: float
    recurrent_dropout: float
    return_sequences: bool
    return_state: bool
    go_backwards: bool
    stateful: bool
    unroll: bool
    zero_output_for_mask: bool


class RecurrentVariationalLayer(VariationalLayer, keras.layers.RNN):
    """Base of the layers that run `step` over a sequence with one draw of the weights.

    All time steps of a sequence use the same weights, which are drawn once per call,
    before the loop (Fortunato et al. 2017). With `flipout` every sequence has its own
    signs, and so its own weights, which are the same in all steps. `local` raises an
    error: it would draw new noise in every step, which is another model.

    The part of a step that depends only on its inputs, `inputs @ kernel + bias`, is
    computed for all steps in one product before the loop. Where a prediction has a
    kernel for each sample, that product would be large: a step computes
    `[inputs, 1, state] @ [kernel, bias, recurrent_kernel]` instead, if that is all that
    the layer needs. The layer has no `use_cudnn`: the kernels of cuDNN use the same
    weights for all rows.

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
        zero_output_for_mask: Whether masked steps give zeros instead of the output
            before them.
        posterior: q of the two kernels, by name or as a `tfbbb.posteriors.Posterior`.
        prior: p of the two kernels, by name or as a `tfbbb.priors.Prior`. The default
            is `Normal(scale=0.5)`.
        bias_posterior: q of the bias.
        estimator: How noise reaches the output: `"weight"` draws weights once per step
            of training, `"flipout"` weights for each sequence by random signs,
            `"score_function"` weights without a gradient; `"auto"` takes `"flipout"`
            where the posterior is symmetric and factorises, else `"weight"`.
    """

    num_gates = 1
    num_states = 1

    def __init__(
        self,
        units: int,
        *,
        activation: Activation = "tanh",
        use_bias: bool = True,
        kernel_initializer: Initializer = "glorot_uniform",
        recurrent_initializer: Initializer = "orthogonal",
        bias_initializer: Initializer = "zeros",
        kernel_regularizer: Regularizer = None,
        recurrent_regularizer: Regularizer = None,
        bias_regularizer: Regularizer = None,
        kernel_constraint: Constraint = None,
        recurrent_constraint: Constraint = None,
        bias_constraint: Constraint = None,
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        **options: Any,
    ):
        self.use_bias = use_bias
        cell = _Cell(positive_integer("units", units), self.num_states)
        super().__init__(cell=cell, **options)
        cell.compute_dtype = self.compute_dtype
        self.units = units
        self.set_objects(
            activation=activation,
            kernel_initializer=kernel_initializer,
            recurrent_initializer=recurrent_initializer,
            bias_initializer=bias_initializer,
            kernel_regularizer=kernel_regularizer,
            recurrent_regularizer=recurrent_regularizer,
            bias_regularizer=bias_regularizer,
            kernel_constraint=kernel_constraint,
            recurrent_constraint=recurrent_constraint,
            bias_constraint=bias_constraint,
        )
        self.dropout = _validate_rate("dropout", dropout)
        self.recurrent_dropout = _validate_rate("recurrent_dropout", recurrent_dropout)
        self.check_penalties(self.members)
        self.input_spec = keras.layers.InputSpec(ndim=3)

    def can_use(self, estimator: Estimator) -> bool:
        return super().can_use(estimator) and not isinstance(estimator, Local)

    def build(
        self, sequences_shape: tuple[int | None, ...], initial_state_shape: Shape = None
    ) -> None:
        input_dim = sequences_shape[-1]
        if input_dim is None:
            raise ValueError(
                f"The last dimension of the input of '{self.name}' must be known. "
                f"Received: sequences_shape={sequences_shape}"
            )
        gates = self.num_gates * self.units
        self.kernel = self.add_variational_weight(
            "kernel",
            (input_dim, gates),
            fan_in=input_dim,
            initializer=self.kernel_initializer,
            regularizer=self.kernel_regularizer,
            constraint=self.kernel_constraint,
        )
        self.recurrent_kernel = self.add_variational_weight(
            "recurrent_kernel",
            (self.units, gates),
            fan_in=self.units,
            initializer=self.recurrent_initializer,
            regularizer=self.recurrent_regularizer,
            constraint=self.recurrent_constraint,
        )
        self.bias = None
        if self.use_bias:
            self.bias = self.add_variational_weight(
                "bias",
                self.bias_shape,
                fan_in=1,
                initializer=self.initializer_of_bias(),
                is_bias=True,
                regularizer=self.bias_regularizer,
                constraint=self.bias_constraint,
            )
        self.add_kl_weight()
        self.input_spec = keras.layers.InputSpec(ndim=3, axes={-1: input_dim})
        super().build(sequences_shape, initial_state_shape)

    @property
    def bias_shape(self) -> tuple[int, ...]:
        """Shape of the bias, of the inputs' product alone or of both products."""
        return (self.num_gates * self.units,)

    def initializer_of_bias(self) -> Initializer:
        """Returns the initializer of the whole bias."""
        return self.bias_initializer

    @property
    def recurrent_parts(self) -> Sequence[tuple[int, int]]:
        """First and last gate of each product with the state."""
        return [(0, self.num_gates)]

    @property
    def needs_sum_alone(self) -> bool:
        """Whether `step_from_sum` can do the work of `step`."""
        return type(self).step is RecurrentVariationalLayer.step

    def arranged(self, draws: dict[str, Tensor]) -> dict[str, Tensor]:
        if not self._joins_kernels or "joined" in draws:
            return draws
        return {"joined": self.joined_kernel(draws)}

    def joined_kernel(self, draws: dict[str, Tensor]) -> Tensor:
        """Returns the kernel whose product with `[inputs, 1, state]` is the sum.

        Args:
            draws: Draws of the weights by name, [samples, *shape].
        """
        parts = [draws["kernel"], draws["recurrent_kernel"]]
        if self.bias is not None:
            parts.insert(1, draws["bias"][:, tf.newaxis])
        return tf.concat(parts, axis=1)

    def step(
        self,
        inputs: Tensor,
        states: list[Tensor],
        *recurrent: Callable[[Tensor], Tensor],
    ) -> tuple[Tensor, list[Tensor]]:
        """Returns the output of a time step and the states after it.

        A layer that needs no more than the sum of both products defines `step_from_sum`
        in place of this.

        Args:
            inputs: `inputs @ kernel + bias`, [n, num_gates * units].
            states: The previous states, each [n, units].
            *recurrent: `state @ recurrent_kernel` as a function of the state, for each
                of the `recurrent_parts` of the kernel.
        """
        (product,) = recurrent
        return self.step_from_sum(inputs + product(states[0]), states)

    def step_from_sum(
        self, pre_activations: Tensor, states: list[Tensor]
    ) -> tuple[Tensor, list[Tensor]]:
        """Returns the output of a time step and the states after it.

        Args:
            pre_activations: `inputs @ kernel + state @ recurrent_kernel + bias`,
                [..., num_gates * units].
            states: The previous states, each [..., units].
        """
        raise NotImplementedError

    def call(
        self,
        sequences: Structure,
        initial_state: Structure = None,
        mask: Tensor | None = None,
        training: bool = False,
    ) -> Tensor:
        if self.stateful and current_call().layer_draws is not None:
            raise ValueError(
                f"The layer '{self.name}' keeps one state for each row, not one for "
                "each draw from the posterior, so it has no posterior predictive. "
                "Create it with `stateful=False`. Received: stateful=True"
            )
        return super().call(sequences, initial_state, mask, training)

    def inner_loop(
        self,
        sequences: Structure,
        initial_state: Structure,
        mask: Tensor | None,
        training: bool = False,
    ) -> Tensor:
        layer_draws = current_call().layer_draws
        if layer_draws is not None and self._joins_kernels:
            values = self.arranged(layer_draws.drawn_weights(self, sequences))["joined"]
            fold = _SampleFold(tf.shape(values)[0])
            sequences, step = self._step_of_inputs(sequences, values)
            if mask is None and (sequences.shape[1] or math.inf) <= _FEW_STEPS:
                return self._unrolled(sequences, initial_state, step, fold)
            step = _folded(step, fold)
        else:
            sequences, step = self._step_of_products(sequences, training)
        with call_with(recurrent_step=step):
            return super().inner_loop(sequences, initial_state, mask, training)

    @property
    def _joins_kernels(self) -> bool:
        """Whether a step of a prediction computes both products as one.

        With wide inputs it would read a large kernel in every step.
        """
        return self.needs_sum_alone and self.kernel.shape[0] <= self.units

    def _step_of_inputs(
        self, sequences: Tensor, values: Tensor
    ) -> tuple[Tensor, RecurrentStep]:
        """Returns what goes into the loop, and a step that computes one product.

        The step takes inputs and states by sample, [samples, rows, ...].

        Args:
            sequences: [samples * rows, timesteps, input_dim].
            values: The result of `joined_kernel`.
        """
        if self.bias is not None:
            # A bias is the row of a kernel whose input is the constant 1.
            ones = tf.ones_like(sequences[..., :1])
            sequences = tf.concat([sequences, ones], axis=-1)

        def step(inputs: Tensor, states: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
            product = tf.matmul(tf.concat([inputs, states[0]], axis=-1), values)
            return self.step_from_sum(product, states)

        return sequences, step

    def _unrolled(
        self,
        sequences: Tensor,
        initial_state: Structure,
        step: RecurrentStep,
        fold: _SampleFold,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Returns the last output, the outputs and the last states, without a loop."""
        inputs = tf.unstack(fold.split(sequences), axis=2)
        outputs, states = [], list(map(fold.split, tree.flatten(initial_state)))
        for at_step in reversed(inputs) if self.go_backwards else inputs:
            output, states = step(at_step, states)
            outputs.append(output)
        kept = outputs if self.return_sequences else outputs[-1:]
        stacked = merge_leading(tf.stack(kept, axis=2))
        return merge_leading(outputs[-1]), stacked, list(map(merge_leading, states))

    def _step_of_products(
        self, sequences: Tensor, training: bool
    ) -> tuple[Tensor, RecurrentStep]:
        """Returns the products of all inputs, and a step that adds the state's."""
        rows = ops.shape(sequences)[0]
        kernels = self._drawn(sequences, training)
        biases = self._biases(kernels, rows)
        dropped = self._dropout("dropout", (rows, 1, sequences.shape[-1]), training)
        products = self._product(kernels["kernel"], dropped)(sequences)
        if biases:
            products += biases[0][:, tf.newaxis]
        dropped = self._dropout("recurrent_dropout", (rows, self.units), training)
        recurrent = [
            self._recurrent_product(kernels["recurrent_kernel"], part, dropped, biases)
            for part in self.recurrent_parts
        ]
        return products, lambda inputs, states: self.step(inputs, states, *recurrent)

    def _drawn(self, sequences: Tensor, training: bool) -> dict[str, DrawnKernel]:
        """Returns this call's kernels by name; an ordinary one counts divergence."""
        layer_draws = current_call().layer_draws
        if layer_draws is None:
            self.begin_call()
            with self.weights_read_once():
                kernels, draws = self.estimator.draw_kernels(
                    self, ops.shape(sequences)[0]
                )
                self.count_kl(draws, training)
            return kernels
        draws = layer_draws.drawn_weights(self, sequences)
        count = tf.shape(next(iter(draws.values())))[0]
        return grouped_kernels(self, draws, _SampleFold(count))

    def _biases(
        self, kernels: dict[str, DrawnKernel], rows: int | Tensor
    ) -> list[Tensor]:
        """Returns every row's biases: of the inputs' product, and of the state's."""
        if self.bias is None:
            return []
        # A bias is the row of a kernel whose input is the constant 1.
        number = 1 if len(self.bias_shape) == 1 else self.bias_shape[0]
        constants = tf.eye(number, dtype=self.compute_dtype)
        return [
            kernels["bias"].product(tf.tile(constants[i : i + 1], [rows, 1]))
            for i in range(number)
        ]

    def _dropout(
        self, kind: str, shape: tuple[Any, ...], training: bool
    ) -> list[Tensor]:
        """Returns what to multiply with for each gate, or for all, or nothing."""
        rate = getattr(self, kind)
        if not (training and rate):
            return []
        seed = self.noise_seed(kind, shared=False)
        # As in Keras' cells, each gate drops its own inputs if it drops the state.
        number = self.num_gates if self.recurrent_dropout else 1
        ones = tf.ones((number, *shape), self.compute_dtype)
        return tf.unstack(tf.nn.experimental.stateless_dropout(ones, rate, seed))

    def _product(
        self, kernel: DrawnKernel, dropped: list[Tensor]
    ) -> Callable[[Tensor], Tensor]:
        """Returns `inputs @ kernel` as a function, after dropout."""
        if not dropped:
            return kernel.product
        if len(dropped) == 1:
            return lambda inputs: kernel.product(inputs * dropped[0])
        gates = [
            kernel.columns(gate * self.units, (gate + 1) * self.units)
            for gate in range(len(dropped))
        ]

        def by_gate(inputs: Tensor) -> Tensor:
            products = [
                gate.product(inputs * mask)
                for gate, mask in zip(gates, dropped, strict=True)
            ]
            return ops.concatenate(products, axis=-1)

        return by_gate

    def _recurrent_product(
        self,
        kernel: DrawnKernel,
        gates: tuple[int, int],
        dropped: list[Tensor],
        biases: list[Tensor],
    ) -> Callable[[Tensor], Tensor]:
        """Returns the state's product with some of the gates' columns, plus bias."""
        first, last = (gate * self.units for gate in gates)
        if len(dropped) > 1:
            dropped = dropped[slice(*gates)]
        product = self._product(kernel.columns(first, last), dropped)
        if len(biases) < 2:
            return product
        bias = biases[1][:, first:last]
        return lambda state: product(state) + bias

    def get_config(self) -> Config:
        config = super().get_config()
        del config["cell"]
        return {
            **config,
            "units": self.units,
            "use_bias": self.use_bias,
            "activity_regularizer": keras.regularizers.serialize(
                self.activity_regularizer
            ),
            "dropout": self.dropout,
            "recurrent_dropout": self.recurrent_dropout,
        }

    @classmethod
    def from_config(cls, config: Config) -> Self:
        return cls(**config)


class _Cell:
    """The cell of `keras.layers.RNN`, which runs the steps of one call."""

    compute_dtype: str

    def __init__(self, units: int, num_states: int):
        self.state_size = [units] * num_states
        self.output_size = units

    def call(self, inputs: Tensor, states: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        step = current_call().recurrent_step
        assert step is not None
        return step(inputs, states)

    __call__ = call

    def get_config(self) -> Config:
        return {}


class _SampleFold:
    """The order of a batch that has samples folded in: samples, then rows."""

    def __init__(self, count: int | Tensor):
        self._count = count

    def split(self, tensor: Tensor) -> Tensor:
        return split_leading(tensor, self._count)

    def merge(self, tensor: Tensor, rows: int | Tensor) -> Tensor:
        return merge_leading(tensor)


def _folded(step: RecurrentStep, fold: _SampleFold) -> RecurrentStep:
    """Returns a step of a whole batch from one that takes it by sample."""

    def folded(inputs: Tensor, states: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        output, states = step(fold.split(inputs), list(map(fold.split, states)))
        return merge_leading(output), list(map(merge_leading, states))

    return folded


def _validate_rate(name: str, rate: float) -> float:
    if not is_finite_number(rate) or not 0 <= rate < 1:
        raise ValueError(
            f"`{name}` must be at least 0 and less than 1. Received: {name}={rate!r}"
        )
    return rate
