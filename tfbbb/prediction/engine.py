"""One pass of a model for S posterior samples at once."""

from typing import Any

import keras
import tensorflow as tf
from keras import tree

from tfbbb import noise
from tfbbb.estimators import Local
from tfbbb.fold import merge_leading, split_leading
from tfbbb.layers import VariationalLayer
from tfbbb.layers.linear_variational import LinearVariationalLayer
from tfbbb.layers.sharing import calls_per_pass, graph_of, sublayers
from tfbbb.layers.variational import active_engine
from tfbbb.prediction.local import local_pre_activations
from tfbbb.prediction.weight import weight_pre_activations

# Of one layer: pre-activations, then its weights.
_PLACES = 64


class Engine:
    """Runs a model with S posterior samples folded into the batch, sample by sample.

    What does not depend on a sample yet runs once, on the rows alone: the samples are
    folded in at the first variational layer on each path of the model's graph, and
    tensors that join such a path are repeated there. A model without a graph (a
    subclass) is folded at its inputs.

    In a model of K members, sample i is one of member i modulo K. Within a pass the
    samples are in the order of the members, which keeps each member's together.

    Args:
        model: A built Keras model.
        method: `"local"` draws pre-activations where that is exact and weights in the
            other layers; `"weight"` draws weights everywhere.
        seed: int32 tensor of shape [2].
        first: Index of the first sample.
        count: Number of samples S, a multiple of the number of members.
    """

    def __init__(
        self, model: keras.Model, method: str, seed: Any, first: Any, count: Any
    ):
        self._model = model
        self._method = method
        self._seed = seed
        self._first = first
        self.count = count
        self.members = num_members(model)
        self._indices = {id(layer): i for i, layer in enumerate(sublayers(model))}
        # Every tensor of the pass that has a batch dimension, and whether the samples
        # are folded into it; the tensor is kept so that its id stays its own.
        self._batches: dict[int, tuple[Any, bool]] = {}
        self._input_is_folded = True

    def run(self, inputs: Any) -> tf.Tensor:
        """Returns the model's output for every sample and row, [S, rows, ...]."""
        token = active_engine.set(self)
        try:
            tree.map_structure(lambda x: self._mark(x, folded=False), inputs)
            outputs = self.unfold(self._folded(self._walk(self._model, inputs)))
            return self._in_order_of_samples(outputs)
        finally:
            active_engine.reset(token)

    def outputs(self, layer: LinearVariationalLayer, inputs: Any) -> tf.Tensor:
        """Returns draws of a layer's pre-activations, [S * rows, ...]."""
        calls = calls_per_pass(self._model, layer)
        draw = (
            local_pre_activations
            if self._method == "local" and is_local(layer, len(inputs.shape), calls)
            else weight_pre_activations
        )
        return draw(self, layer, inputs, self._input_is_folded)

    def drawn_weights(self, layer: VariationalLayer) -> dict[str, tf.Tensor]:
        """Returns S draws of every weight of a layer by name, [S, *shape], float32.

        All rows, and all calls of a shared layer, see the same S weights.
        """
        return {
            weight.name: weight.draw_from(
                self.noise(layer, place, weight.posterior.noise_shape(weight.shape))
            )
            for place, weight in enumerate(layer.variational_weights, start=1)
        }

    def noise(
        self, layer: VariationalLayer, place: int, shape: tuple[int, ...]
    ) -> tf.Tensor:
        """Returns noise: a function of seed, layer, place and sample.

        Args:
            layer: The layer that it is for.
            place: 0 for pre-activations, then the layer's weights in their order.
            shape: Shape of the noise of one sample.

        Returns:
            [S, *shape]; with members [members, S / members, *shape].
        """
        seed = noise.fold(self._seed, _PLACES * self._indices[id(layer)] + place)
        block = noise.normal_block(seed, self._first, self.count, shape)
        if self.members == 1:
            return block
        by_turns = tf.reshape(block, [-1, self.members, *shape])
        return tf.transpose(by_turns, [1, 0, *range(2, 2 + len(shape))])

    def unfold(self, tensor: Any) -> tf.Tensor:
        """Returns [S * rows, ...] as [S, rows, ...]."""
        return split_leading(tensor, self.count)

    def _in_order_of_samples(self, tensor: Any) -> tf.Tensor:
        """Returns [S, ...] in the order of the samples, from that of the members."""
        if self.members == 1:
            return tensor
        by_member = split_leading(tensor, self.members)
        axes = [1, 0, *range(2, len(by_member.shape))]
        return merge_leading(tf.transpose(by_member, axes))

    def _walk(self, model: keras.Layer, inputs: Any) -> Any:
        graph = graph_of(model)
        if graph is None:
            return self._call(model, inputs)
        folded = any(map(self._is_folded, tree.flatten(inputs)))
        if folded:
            inputs = tree.map_structure(self._folded, inputs)
        standardized = graph._standardize_inputs(inputs)
        for tensor in standardized:
            self._mark(tensor, folded=folded)

        def operation(op: Any) -> Any:
            return lambda *args, **kwargs: self._call(op, *args, **kwargs)

        return graph._run_through_graph(standardized, operation_fn=operation)

    def _call(self, operation: Any, *args: Any, **kwargs: Any) -> Any:
        stochastic = isinstance(operation, keras.Layer) and any(
            isinstance(layer, VariationalLayer) for layer in sublayers(operation)
        )
        if stochastic and graph_of(operation) is not None:
            return self._walk(operation, args[0] if args else kwargs["inputs"])
        folded = any(map(self._is_folded, tree.flatten((args, kwargs))))
        folds_itself = isinstance(operation, LinearVariationalLayer)
        mask_is_folded = folded or not folds_itself
        if folds_itself:
            self._input_is_folded = folded
            folded = True
        elif stochastic or folded:
            args, kwargs = tree.map_structure(self._folded, (args, kwargs))
            self._input_is_folded = folded = True
        outputs = operation(*args, **kwargs)
        if not mask_is_folded:
            # Keras gives the outputs the mask of inputs that were not folded yet.
            self._repeat_mask(outputs, outputs)
        tree.map_structure(lambda x: self._mark(x, folded=folded), outputs)
        return outputs

    def _mark(self, tensor: Any, *, folded: bool) -> None:
        self._batches[id(tensor)] = (tensor, folded)

    def _is_folded(self, tensor: Any) -> bool:
        return self._batches.get(id(tensor), (None, False))[1]

    def _folded(self, tensor: Any) -> Any:
        # A constant that the graph holds is not in the book: it has no rows to repeat.
        if id(tensor) not in self._batches or self._is_folded(tensor):
            return tensor
        copies = [self.count, *[1] * (len(tensor.shape) - 1)]
        folded = tf.tile(tensor, copies)
        self._repeat_mask(tensor, folded)
        self._mark(folded, folded=True)
        return folded

    def _repeat_mask(self, masked: Any, folded: Any) -> None:
        """Gives a folded tensor the mask of another for every sample, if it has one."""
        mask = getattr(masked, "_keras_mask", None)
        if mask is not None:
            copies = [self.count, *[1] * (len(mask.shape) - 1)]
            folded._keras_mask = tf.tile(mask, copies)


def is_local(layer: VariationalLayer, input_rank: int, calls: int | None) -> bool:
    """Whether the method `local` draws pre-activations in this layer, not weights."""
    return (
        isinstance(layer, LinearVariationalLayer)
        and layer.is_local_exact(input_rank, calls)
        and all(Local().can_serve(w.posterior) for w in layer.variational_weights)
    )


def num_members(model: keras.Model) -> int:
    """Returns the number of members of a model's variational layers.

    Raises:
        ValueError: Where they do not agree.
    """
    members = {
        layer.members
        for layer in sublayers(model)
        if isinstance(layer, VariationalLayer)
    }
    if len(members) > 1:
        raise ValueError(
            "All variational layers of a model need the same number of members. "
            f"Received: members={sorted(members)}"
        )
    return members.pop() if members else 1
