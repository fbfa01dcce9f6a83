"""The base class of recurrent layers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import keras
import tensorflow as tf
from keras import ops, tree

from tfbbb.base.batch_layout import BatchLayout, merge_leading
from tfbbb.base.call_context import RecurrentStep, call_with, current_call
from tfbbb.base.numbers import fraction
from tfbbb.base.private_apis import build_weights, replace_cell
from tfbbb.base.types import Shape, Structure, Tensor
from tfbbb.bayes.estimators import Estimator, Local
from tfbbb.bayes.estimators.drawn_kernel import DrawnKernel
from tfbbb.bayes.estimators.weight import grouped_kernels
from tfbbb.layers.variational import VariationalLayer

# A loop takes as long as a small step, and its graph is smaller.
_FEW_STEPS = 32


class RecurrentVariationalLayer(VariationalLayer):
    """Base of the layers that run `step` over a sequence with one draw of the weights.

    A subclass derives from a recurrent layer of Keras as well, whose cell has the
    arguments and creates the weights.

    All time steps of a sequence use the same weights, which are drawn once per call,
    before the loop (Fortunato et al. 2017). With `flipout` every sequence has its own
    signs, and so its own weights, which are the same in all steps. `local` raises an
    error: it would draw new noise in every step, which is another model.

    The part of a step that depends only on its inputs, `inputs @ kernel + bias`, is
    computed for all steps in one product before the loop. Where a prediction has a
    kernel for each sample, that product would be large: a step computes
    `[inputs, 1, state] @ [kernel, bias, recurrent_kernel]` instead, if that is all that
    the layer needs.

    Args:
        stateful: Whether a batch begins with the last state of the previous batch.
            Such a layer has no posterior predictive.
        estimator: How noise reaches the output: `"weight"` draws weights once per step
            of training, `"flipout"` weights for each sequence by random signs,
            `"score_function"` weights without a gradient; `"auto"` takes `"flipout"`
            where the posterior is symmetric and factorises, else `"weight"`.
    """

    posterior_weights: ClassVar = {
        "kernel": "kernel",
        "recurrent_kernel": "recurrent_kernel",
        "bias": "bias",
    }
    num_gates = 1

    def __init__(self, *arguments: Any, **options: Any):
        for name in ("dropout", "recurrent_dropout"):
            fraction(name, options.get(name, 0.0))
        super().__init__(*arguments, **options)
        self.use_cudnn = False
        replace_cell(self, _Cell(self.cell))

    def can_use(self, estimator: Estimator) -> bool:
        return super().can_use(estimator) and not isinstance(estimator, Local)

    def build(
        self, sequences_shape: tuple[int | None, ...], initial_state_shape: Shape = None
    ) -> None:
        cell = self.cell.of_keras
        build_weights(cell, (None, sequences_shape[-1]), self.add_weight)
        self.kernel, self.recurrent_kernel = cell.kernel, cell.recurrent_kernel
        self.bias = cell.bias
        self.add_kl_weight()
        self.input_spec = keras.layers.InputSpec(ndim=3, axes={-1: sequences_shape[-1]})
        super().build(sequences_shape, initial_state_shape)

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
        """Returns the kernels whose product with `[inputs, 1, state]` is the sum."""
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
        """Returns the output of a time step and the states after it, [n, units] each.

        `inputs` are `inputs @ kernel + bias`, [n, num_gates * units], and `recurrent`
        the products of a state with each of the `recurrent_parts` of the kernel. A
        layer that needs only the sum of both defines `step_from_sum` in place of this.
        """
        (product,) = recurrent
        return self.step_from_sum(inputs + product(states[0]), states)

    def step_from_sum(
        self, pre_activations: Tensor, states: list[Tensor]
    ) -> tuple[Tensor, list[Tensor]]:
        """Returns output and states after a step, from the sum of both products."""
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
            fold = BatchLayout(samples=tf.shape(values)[0])
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
        """Whether a step of a prediction computes both products as one."""
        # With wide inputs it would read a large kernel in every step.
        return self.needs_sum_alone and self.kernel.shape[0] <= self.units

    def _step_of_inputs(
        self, sequences: Tensor, values: Tensor
    ) -> tuple[Tensor, RecurrentStep]:
        """Returns the loop's inputs and a step, by sample, that is one product."""
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
        fold: BatchLayout,
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
        return grouped_kernels(self, draws, BatchLayout(samples=count))

    def _biases(
        self, kernels: dict[str, DrawnKernel], rows: int | Tensor
    ) -> list[Tensor]:
        """Returns every row's biases: of the inputs' product, and of the state's."""
        if self.bias is None:
            return []
        # A bias is the row of a kernel whose input is the constant 1.
        number = 1 if len(self.bias.shape) == 1 else self.bias.shape[0]
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


class _Cell:
    """The cell of a layer of Keras, with our steps and, being no layer, no weights."""

    def __init__(self, of_keras: keras.Layer):
        self.of_keras = of_keras

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # `copy` asks before there is an attribute.
            raise AttributeError(name)
        return getattr(self.of_keras, name)

    def call(self, inputs: Tensor, states: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        step = current_call().recurrent_step
        assert step is not None
        return step(inputs, states)

    __call__ = call


def _folded(step: RecurrentStep, fold: BatchLayout) -> RecurrentStep:
    """Returns a step of a whole batch from one that takes it by sample."""

    def folded(inputs: Tensor, states: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        output, states = step(fold.split(inputs), list(map(fold.split, states)))
        return merge_leading(output), list(map(merge_leading, states))

    return folded
