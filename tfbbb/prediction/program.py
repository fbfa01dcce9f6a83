"""The pure functions that the predictions of one model by one plan are made of."""

import functools
from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf
from keras import tree

from tfbbb.base.batch_layout import dimensions
from tfbbb.base.private_apis import graph_of, output_structure
from tfbbb.base.types import Tensor
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.prediction import propagated
from tfbbb.prediction.draws import Tensors, draw, local_moments
from tfbbb.prediction.engine import Engine
from tfbbb.prediction.linearised import linearised_outputs, weight_means
from tfbbb.prediction.moments import operations
from tfbbb.prediction.plan import Plan
from tfbbb.prediction.properties import Sizes
from tfbbb.prediction.recalibration.recalibration import IDENTITY, Recalibration
from tfbbb.prediction.structure import Structure
from tfbbb.prediction.summary import Sums, summary, sums


class Program:
    """A prediction as functions of tensors and of the model's variables.

    One likelihood for a model of several outputs makes the outputs members of one
    mixture: see `tfbbb.average`.

    Args:
        model: A built Keras model.
        likelihoods: One for each output of the model, or one for all of them.
        plan: The plan: what each layer draws.
        inputs: Example inputs or their specs, from which shapes are taken.
        recalibration: The recalibration, which may change the outputs.
        held_moments: Moments of weights by layer, as `local_moments` returns them, from
            which weights are drawn if possible; None to draw from the variables of the
            posteriors.

    Attributes:
        input_specs: Specs of the inputs, for any number of rows.
        event_shapes: Shapes of the outputs of one row and draw, as the likelihoods
            take them.
        output_dtypes: Their data types.
        operations: Whether each operation is exact, if moments are propagated; else
            empty.
        networks: Number of outputs that share one likelihood.
        members: Number K of members of the mixture.

    Raises:
        MomentsError: For a plan that propagates moments, at the first operation of the
            model that has no closed form.
    """

    def __init__(
        self,
        model: keras.Model,
        likelihoods: Sequence[Likelihood],
        plan: Plan,
        inputs: Tensor,
        recalibration: Recalibration = IDENTITY,
        held_moments: Tensors | None = None,
    ):
        # Before anything else: it names the operation that has no closed form.
        self.operations = operations(model) if plan.propagated else ()
        self.model = model
        self.likelihoods = tuple(likelihoods)
        self.plan = plan
        self.recalibration = recalibration
        self._held_moments = held_moments
        self.structure = Structure.of(model)
        self.input_specs = tree.map_structure(_rows_unknown, inputs)
        outputs = tree.flatten(structure_of_outputs(model, self.input_specs))
        self.networks = len(outputs) // len(self.likelihoods)
        self.members = self.networks * self.structure.members
        outputs = outputs[:: self.networks]
        self.output_dtypes = [tf.as_dtype(output.dtype) for output in outputs]
        self.event_shapes = [
            self._event_shape(likelihood, output.shape)
            for likelihood, output in zip(self.likelihoods, outputs, strict=True)
        ]

    @property
    def outputs_spec(self) -> tf.TensorSpec:
        """The spec of the first output, for any number of rows and draws."""
        return tf.TensorSpec([None, None, *self.event_shapes[0]], self.output_dtypes[0])

    @functools.cached_property
    def sizes(self) -> Sizes:
        """The sizes of a pass."""
        sizes = Sizes(
            members=self.members,
            widest=self.structure.widest,
            outputs=sum(shape.num_elements() or 1 for shape in self.event_shapes),
            # A draw is made of the numbers of one network alone.
            drawn=-(-self.plan.floats_per_draw(self.structure) // self.networks),
        )
        return propagated.change_sizes(sizes) if self.plan.propagated else sizes

    def num_integrated(self, likelihood: Likelihood, num_outputs: int) -> int:
        """Returns how many of a likelihood's outputs are integrated, not drawn."""
        if self.plan.propagated:
            return likelihood.num_integrated(num_outputs)
        return self.plan.num_integrated

    def moments(self) -> Tensors:
        """Returns the moments of the weights whose pre-activations are drawn.

        For the propagation of moments, the tensors that depend on weights alone; for a
        linearised network, the means of all weights.
        """
        if self.plan.propagated:
            return propagated.weight_tensors(self.model, self.structure)
        if self.plan.linearised:
            return weight_means(self.structure)
        return local_moments(self.structure, self.plan)

    def draws(self, seed: Tensor, first: int | Tensor, count: int | Tensor) -> Tensors:
        """Returns noise and weights of `count` rounds of draws, from `first` on."""
        if self.plan.propagated:
            return {"nodes": {"first": first, "count": count}}
        moments = self._held_moments
        return draw(self.structure, self.plan, seed, first, count, moments)

    def outputs(self, inputs: Tensor, moments: Tensors, draws: Tensors) -> list[Any]:
        """Returns the outputs as the likelihoods take them, [rows, S, ..., P] each.

        Args:
            inputs: Tensors whose leading dimension is the number of rows.
            moments: The result of `moments`.
            draws: The result of `draws`.
        """
        if self.plan.propagated:
            pairs = propagated.moments_of_outputs(
                self.model, self.structure, inputs, moments
            )
            nodes = draws["nodes"]
            found = [
                propagated.outputs_at_nodes(
                    self.likelihoods[index // self.networks], *pair, **nodes
                )
                for index, pair in enumerate(pairs)
            ]
            return self._joined(found)
        count = 2 * self.structure.members * draws["source"]["count"]
        if self.plan.linearised:
            outputs = linearised_outputs(
                self.model, self.structure, inputs, moments, draws, count
            )
            variances: list[Any] = [None] * len(outputs)
        else:
            engine = Engine(
                self.model, self.structure, self.plan, moments, draws, count
            )
            outputs, variances = engine.run(inputs)
        found = [
            (self._rows_first(x), None if v is None else self._rows_first(v))
            for x, v in zip(outputs, variances, strict=True)
        ]
        return self._joined(found)

    def sums(
        self, inputs: Tensor, moments: Tensors, draws: Tensors
    ) -> tuple[list[Sums], list[Any]]:
        """Returns the sums behind the summary of each output, and the outputs."""
        outputs = self.outputs(inputs, moments, draws)
        found = [
            sums(likelihood, values, self.members)
            for likelihood, values in zip(self.likelihoods, outputs, strict=True)
        ]
        return found, outputs

    def summary(self, found: Sums) -> dict[str, tf.Tensor]:
        """Returns the summary of one output's sums."""
        weights = self.likelihoods[0].member_weights
        return summary(found, drawn=not self.plan.propagated, weights=weights)

    def _joined(self, found: list[Any]) -> list[tf.Tensor]:
        """Returns outputs as the likelihoods take them, those of networks as members.

        Args:
            found: Of each output, [rows, R, 2, K, ..., P], with the variance of its
                integrated mean, [rows, R, 2, K, k], or None.
        """
        outputs = []
        for index, likelihood in enumerate(self.likelihoods):
            parts = found[index * self.networks : (index + 1) * self.networks]
            values, variances = zip(*parts, strict=True)
            variance = variances[0]
            if variance is not None and len(parts) > 1:
                variance = tf.concat(variances, axis=3)
            joined = values[0] if len(parts) == 1 else tf.concat(values, axis=3)
            outputs.append(self._complete(likelihood, joined, variance))
        return outputs

    def _rows_first(self, outputs: Tensor) -> tf.Tensor:
        """Returns [S, rows, ...] by member, sign and round as [rows, R, 2, K, ...]."""
        rows, *event = dimensions(outputs, 1)
        split = tf.reshape(outputs, [self.structure.members, 2, -1, rows, *event])
        return tf.transpose(split, [3, 2, 1, 0, *range(4, len(split.shape))])

    def _complete(
        self, likelihood: Likelihood, outputs: Tensor, location_variance: Any
    ) -> tf.Tensor:
        """Returns outputs as the likelihood takes them, [rows, S, ..., P].

        Draws are by round, by sign, by member, so blocks of rounds can be
        concatenated.

        Args:
            likelihood: The likelihood of the outputs.
            outputs: [rows, R, 2, K, ..., P].
            location_variance: Variance of its integrated mean, [rows, R, 2, K, k], or
                None.
        """
        ones = [1] * (len(outputs.shape) - 5)
        member = tf.reshape(tf.range(self.members), [-1, *ones])
        outputs = likelihood.of_members(outputs, member)
        outputs = self.recalibration.outputs(likelihood, outputs)
        if location_variance is not None:
            outputs = likelihood.with_location_variance(outputs, location_variance)
        rows, _, _, _, *event = dimensions(outputs, 0)
        return tf.reshape(outputs, [rows, -1, *event])

    def _event_shape(
        self, likelihood: Likelihood, shape: tf.TensorShape
    ) -> tf.TensorShape:
        example = tf.zeros([1, *(size or 1 for size in shape[1:])])
        outputs = likelihood.of_members(example, 0)
        outputs = self.recalibration.outputs(likelihood, outputs)
        integrated = self.num_integrated(likelihood, shape[-1])
        if integrated:
            variance = example[..., :integrated]
            outputs = likelihood.with_location_variance(outputs, variance)
        return tf.TensorShape([*shape[1:-1], outputs.shape[-1]])


def structure_of_outputs(model: keras.Model, inputs: Tensor) -> Any:
    """Returns the structure of the model's outputs, with shapes and dtypes."""
    graph = graph_of(model)
    if graph is not None:
        return output_structure(graph)
    symbolic = tree.map_structure(
        lambda x: keras.KerasTensor((None, *x.shape[1:]), x.dtype.name), inputs
    )
    return model.compute_output_spec(symbolic)


def _rows_unknown(tensor: Tensor) -> tf.TensorSpec:
    return tf.TensorSpec([None, *tensor.shape[1:]], tensor.dtype)
