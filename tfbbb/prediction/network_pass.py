"""One pass of a model for S posterior samples at once."""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import keras
import tensorflow as tf
from keras import tree

from tfbbb.base import noise
from tfbbb.base.batch_layout import merge_leading, split_leading
from tfbbb.base.call_context import call_with
from tfbbb.base.private_apis import (
    call_arguments,
    graph_of,
    in_stateless_scope,
    mask_of,
    run_through_graph,
    set_mask,
    standardize_inputs,
)
from tfbbb.base.types import Tensor
from tfbbb.bayes.estimators.local import pre_activation_moments
from tfbbb.layers import VariationalLayer
from tfbbb.layers.conv_variational import ConvVariational
from tfbbb.layers.linear_variational import LinearVariationalLayer
from tfbbb.layers.row_axes import RowAxes, row_axes
from tfbbb.prediction.draws import Tensors, normal_noise
from tfbbb.prediction.dropout import dropped, is_dropout, mask_shape
from tfbbb.prediction.folding import (
    IN_ROWS,
    UNFOLDED,
    Folding,
    folds_channels,
    keeps_channels,
    normalized,
    without_channels,
    without_rows,
)
from tfbbb.prediction.plan import Plan
from tfbbb.prediction.structure import Structure, is_stochastic, structure_of_outputs

# The name of the variables that Keras' seed generators have.
SEED_STATE = "seed_generator_state"
# In place of the index of a layer: the seeds of layers that draw by themselves.
_RANDOM_LAYERS = -2
# Of passes with given weights, which have no seed.
_ONE_SOURCE = {"seed": (0, 0), "first": 0}


class NetworkPass:
    """Runs a model with S posterior samples folded into the batch, sample by sample.

    Operations before the first draw run once, on the rows alone: the samples are
    folded in at the first layer that draws on each path of the model's graph, and
    tensors of rows that join such a path are repeated there. Between convolutions, the
    samples are folded into the channels. A model without a graph (a subclass) is folded
    at its inputs. A network that cannot be folded (`tfbbb.layers.row_axes`) runs as it
    is called, once for each sample.

    The draws are samples by member, by sign, by round, S in all (`count`). Only with
    `uses_channels` may samples be in the channels of convolutions. The pass then does
    the work of their calls, and a `tf.GradientTape` needs oneDNN: without it TensorFlow
    has no gradients of grouped channels.
    """

    def __init__(
        self,
        model: keras.Model,
        structure: Structure,
        plan: Plan,
        moments: Tensors,
        draws: Tensors,
        count: int | Tensor,
        uses_channels: bool = True,
    ):
        self._model = model
        self._structure = structure
        self._plan = plan
        self._moments = moments
        self._draws = draws
        self.members = structure.members
        self.count = count
        self._uses_channels = uses_channels
        # Every tensor of the pass that has a batch dimension, and how the samples are
        # folded into it; the tensor is kept so that its id stays its own.
        self._batches: dict[int, tuple[tf.Tensor, Folding]] = {}
        self._input_is_folded = True
        self._location_variances: dict[int, tf.Tensor] = {}
        self._calls: Counter[int] = Counter()
        self._axes = RowAxes()

    def run(self, inputs: Tensor) -> tuple[list[tf.Tensor], list[tf.Tensor | None]]:
        """Returns the model's outputs for every sample and row, [S, rows, ...] each.

        Beside each is the variance of the means that were integrated, not drawn, [S,
        rows, k], or None.
        """
        draws = is_dropout if self._plan.dropout else None
        self._axes = row_axes(self._model, inputs, draws)
        self._axes.check_outputs()
        if self._axes.unfoldable:
            outputs = self._draw_by_draw(inputs)
            return outputs, [None] * len(outputs)
        with call_with(layer_draws=self), self._random_layers_seeded():
            tree.map_structure(lambda x: self._mark(x, UNFOLDED), inputs)
            outputs = self._walk(self._model, (inputs,), {})
            folded = [self.unfold(self._folded(x)) for x in tree.flatten(outputs)]
            indices = self._structure.indices
            lasts = [indices[id(x)] for x in self._structure.lasts if id(x) in indices]
            if len(lasts) != len(folded):
                return folded, [None] * len(folded)
            return folded, [self._location_variances.get(index) for index in lasts]

    def _draw_by_draw(self, inputs: Tensor) -> list[tf.Tensor]:
        """Returns the outputs, [S, rows, ...] each, of one pass for each sample."""
        source = self._draws.get("source")
        weights = {k: v for k, v in self._draws.items() if k != "source"}

        def run(given: tuple[tf.Tensor, Tensors]) -> list[tf.Tensor]:
            index, drawn = given
            drawn = tree.map_structure(lambda x: x[tf.newaxis], drawn)
            if source is not None:
                # By sign and member, by round: see `draw`.
                place, number = index // source["count"], index % source["count"]
                seed = noise.fold(source["seed"], source["first"] + number)
                one = {"seed": noise.fold(seed, place), "first": 0, "count": 1}
                drawn["source"] = one
            single = NetworkPass(
                self._model, self._structure, self._plan, {}, drawn, 1, False
            )
            single.members, single._axes = 1, self._axes
            return single._run_once(inputs)

        specs = [
            tf.TensorSpec(x.shape, x.dtype)
            for x in tree.flatten(structure_of_outputs(self._model, inputs))
        ]
        elements = tf.range(self.count), weights
        return tf.map_fn(
            run, elements, fn_output_signature=specs, parallel_iterations=1
        )

    def _run_once(self, inputs: Tensor) -> list[tf.Tensor]:
        """Returns the outputs, [rows, ...] each, of the one sample there is."""
        with call_with(layer_draws=self), self._random_layers_seeded():
            tree.map_structure(lambda x: self._mark(x, IN_ROWS), inputs)
            return tree.flatten(self._walk(self._model, (inputs,), {}))

    @contextlib.contextmanager
    def _random_layers_seeded(self) -> Iterator[None]:
        """Makes the noise of layers that draw by themselves one of the pass' seed.

        Such a layer draws anew for every row and sample, from its own seed generator.
        """
        source = self._draws.get("source", _ONE_SOURCE)
        states = {
            id(variable): variable
            for layer in self._structure.layers
            if id(layer) in self._axes.drawing
            for variable in layer.variables
            if variable.name == SEED_STATE
        }
        if not states:
            yield
            return
        scope: Any = contextlib.nullcontext()
        if not in_stateless_scope():
            scope = keras.StatelessScope()
        with scope:
            # The graph of a loop must leave none of its tensors behind.
            before = [state.value for state in states.values()]
            for index, state in enumerate(states.values()):
                seed = noise.fold(
                    source["seed"], _RANDOM_LAYERS, index, source["first"]
                )
                state.assign(tf.cast(seed, state.dtype))
            yield
            for state, value in zip(states.values(), before, strict=True):
                state.assign(value)

    def outputs(self, layer: LinearVariationalLayer, inputs: Tensor) -> tf.Tensor:
        """Returns draws of a layer's pre-activations, [S * rows, ...]."""
        index = self._structure.indices[id(layer)]
        folded = self._input_is_folded
        if index not in self._plan.local:
            return self._by_weights(layer, inputs, folded)
        if index not in self._plan.integrated:
            return self._by_pre_activations(layer, inputs, folded, 0)[0]
        num_integrated = self._plan.num_integrated
        draws, self._location_variances[index] = self._by_pre_activations(
            layer, inputs, folded, num_integrated
        )
        return draws

    def drawn_weights(
        self, layer: VariationalLayer, inputs: Tensor = None
    ) -> dict[str, tf.Tensor]:
        """Returns S draws of every weight of a layer by name, [S, *shape], or arranged.

        All rows, and all calls of a shared layer, see the same S weights.
        """
        return self._draws[self._key(layer)]

    def unfold(self, tensor: Tensor) -> tf.Tensor:
        """Returns [S * rows, ...] as [S, rows, ...]."""
        return split_leading(tensor, self.count)

    def _by_weights(
        self, layer: LinearVariationalLayer, inputs: Tensor, folded: bool
    ) -> tf.Tensor:
        """Returns pre-activations for S draws of the weights, [S * rows, ..., units].

        The inputs are [rows, ...], or [S * rows, ...] where `folded`.
        """
        if (
            self._uses_channels
            and isinstance(layer, ConvVariational)
            and layer.takes_channels_beside
        ):
            if folded:
                inputs = without_rows(inputs, self.count)
            outputs = self._by_kernels_beside(layer, inputs)
            return without_channels(outputs, self.count, layer.filters)
        inputs = layer.cast_inputs(inputs)
        inputs = self.unfold(inputs) if folded else inputs[tf.newaxis]
        draws = self.drawn_weights(layer)
        outputs = layer.linear(inputs, draws["kernel"])
        if layer.bias is not None:
            outputs += layer.broadcast_bias(draws["bias"], len(outputs.shape))
        return merge_leading(outputs)

    def _by_kernels_beside(self, layer: ConvVariational, inputs: Tensor) -> tf.Tensor:
        """Returns pre-activations for S draws of a kernel, [rows, ..., S * filters].

        The inputs are [rows, ..., channels], or [rows, ..., S * channels].
        """
        draws = layer.arranged(self.drawn_weights(layer))
        return layer.convolve_beside(layer.cast_inputs(inputs), draws)

    def _by_pre_activations(
        self,
        layer: LinearVariationalLayer,
        inputs: Tensor,
        folded: bool,
        num_integrated: int,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns S draws of every row's pre-activations, [S * rows, units].

        The noise is a function of seed, layer, sample and unit and shared by the rows:
        each row's marginal distribution is exact, and does not depend on the rows
        beside it. Where the samples are not folded into the inputs, mean and variance
        are computed once, not S times. The first `num_integrated` units are not drawn
        and stay at their mean; also returns their variance, [S, rows, num_integrated].
        """
        key = self._key(layer)
        members, samples = self.members, self.count // self.members
        if members > 1:
            inputs = split_leading(inputs, members) if folded else inputs[tf.newaxis]
        moments = self._moments[key]
        mean, variance = pre_activation_moments(layer, inputs, moments)
        # [members, samples, rows, units], samples of 1 where they are not folded in
        # yet; the 1 in the noise is for the rows.
        rank = 1 if members == 1 else 2
        normals = tf.expand_dims(self._draws[key]["noise"], rank)
        normals = tf.cast(normals, mean.dtype)
        if folded:
            mean, variance = (_by_sample(x, members, samples) for x in (mean, variance))
        elif members > 1:
            mean, variance = mean[:, tf.newaxis], variance[:, tf.newaxis]
        integrated = variance[..., :num_integrated]
        num_drawn = mean.shape[-1] - num_integrated
        if num_integrated:
            normals *= tf.constant(
                [0.0] * num_integrated + [1.0] * num_drawn, mean.dtype
            )
        if not folded:
            integrated += tf.zeros_like(normals[..., :num_integrated])
        draws = mean
        if num_drawn or not folded:
            draws += tf.sqrt(variance) * normals
        if members > 1:
            draws, integrated = merge_leading(draws), merge_leading(integrated)
        return merge_leading(draws), integrated

    def _key(self, layer: keras.Layer) -> str:
        return str(self._structure.indices[id(layer)])

    def _walk(self, model: keras.Layer, args: Any, kwargs: Any) -> Any:
        graph = graph_of(model)
        if graph is None:
            return self._call(model, *args, **kwargs)
        folded = any(map(self._is_folded, tree.flatten((args, kwargs))))
        if folded:
            args, kwargs = tree.map_structure(self._folded, (args, kwargs))
        inputs, others = call_arguments(model, args, kwargs)
        standardized = standardize_inputs(graph, inputs)
        for tensor in standardized:
            self._mark(tensor, IN_ROWS if folded else UNFOLDED)

        def operation(op: keras.Operation) -> Callable[..., Any]:
            return lambda *args, **kwargs: self._call(op, *args, **kwargs)

        return run_through_graph(graph, standardized, operation, **others)

    def _call(self, operation: keras.Operation, *args: Any, **kwargs: Any) -> Any:
        call = id(operation), self._calls[id(operation)]
        self._calls[id(operation)] += 1
        if self._plan.dropout and is_dropout(operation):
            return self._drop(operation, args[0] if args else kwargs["inputs"])
        stochastic = is_stochastic(operation)
        if graph_of(operation) is not None and (stochastic or self._plan.dropout):
            return self._walk(operation, args, kwargs)
        if self._uses_channels and (
            folds_channels(operation) or self._are_in_channels(args, kwargs)
        ):
            outputs = self._call_in_channels(operation, args, kwargs)
            if outputs is not None:
                return outputs
            args, kwargs = tree.map_structure(self._out_of_channels, (args, kwargs))
        folded = any(map(self._is_folded, tree.flatten((args, kwargs))))
        folds_itself = isinstance(operation, LinearVariationalLayer)
        mask_is_folded = folded or not folds_itself
        if folds_itself:
            self._input_is_folded = folded
            folded = True
        elif stochastic or folded or id(operation) in self._axes.drawing:
            args, kwargs = tree.map_structure(self._folded, (args, kwargs))
            self._input_is_folded = folded = True
        outputs = operation(*args, **kwargs)
        if not mask_is_folded:
            # Keras gives the outputs the mask of inputs that were not folded yet.
            self._repeat_mask(outputs, outputs)
        if call not in self._axes.without_rows:
            folding = IN_ROWS if folded else UNFOLDED
            tree.map_structure(lambda x: self._mark(x, folding), outputs)
        return outputs

    def _are_in_channels(self, *arguments: Any) -> bool:
        return any(self._folding(x).channels for x in tree.flatten(arguments))

    def _call_in_channels(
        self, operation: keras.Operation, args: Any, kwargs: Any
    ) -> tf.Tensor | None:
        """Returns outputs with the samples in their channels; None if impossible."""
        if folds_channels(operation):
            given = args[0] if args else kwargs["inputs"]
            if self._folding(given).in_rows:
                given = without_rows(given, self.count)
            outputs = operation.activation(self._by_kernels_beside(operation, given))
            self._mark(outputs, Folding(channels=operation.filters))
            return outputs
        # A constant, or a flag such as `training`, is an argument without samples.
        inputs = [x for x in tree.flatten((args, kwargs)) if x is not None]
        foldings = {self._folding(x) for x in inputs}
        if len(foldings) > 1 or not keeps_channels(operation, inputs):
            return None
        (folding,) = foldings
        if isinstance(operation, keras.layers.BatchNormalization):
            outputs = normalized(operation, inputs[0], folding.channels)
        else:
            outputs = operation(*args, **kwargs)
        self._mark(outputs, folding)
        return outputs

    def _drop(self, layer: keras.Layer, inputs: Tensor) -> tf.Tensor:
        """Returns a dropout layer's outputs, whose units all rows drop together."""
        inputs = self._out_of_channels(inputs)
        folded = self._folded(inputs)
        shape = mask_shape(layer, inputs)
        index = self._structure.indices[id(layer)]
        source = self._draws["source"]
        normals = normal_noise(source, self.members, index, 0, shape)
        # Of the pair, a single sample is the first.
        normals = tf.reshape(normals, [-1, 1, *shape])[: self.count]
        outputs = merge_leading(dropped(layer, self.unfold(folded), normals))
        self._repeat_mask(inputs, outputs, copies=1 if folded is inputs else None)
        self._mark(outputs, IN_ROWS)
        return outputs

    def _mark(self, tensor: Tensor, folding: Folding) -> None:
        self._batches[id(tensor)] = (tensor, folding)

    def _folding(self, tensor: Tensor) -> Folding:
        return self._batches.get(id(tensor), (None, UNFOLDED))[1]

    def _is_folded(self, tensor: Tensor) -> bool:
        return self._folding(tensor).is_folded

    def _out_of_channels(self, tensor: Tensor) -> tf.Tensor:
        """Returns a tensor with samples in its rows instead of its channels, if any."""
        channels = self._folding(tensor).channels
        if not channels:
            return tensor
        in_rows = without_channels(tensor, self.count, channels)
        self._mark(in_rows, IN_ROWS)
        return in_rows

    def _folded(self, tensor: Tensor) -> tf.Tensor:
        """Returns a tensor with the samples in its rows."""
        tensor = self._out_of_channels(tensor)
        # A constant is not in `_batches`: it has no rows to repeat.
        if id(tensor) not in self._batches or self._is_folded(tensor):
            return tensor
        copies = [self.count, *[1] * (len(tensor.shape) - 1)]
        folded = tf.tile(tensor, copies)
        self._repeat_mask(tensor, folded)
        self._mark(folded, IN_ROWS)
        return folded

    def _repeat_mask(
        self, masked: Tensor, folded: Tensor, copies: int | None = None
    ) -> None:
        """Gives a folded tensor the mask of another for every sample, if it has one."""
        mask = mask_of(masked)
        if mask is not None:
            copies = self.count if copies is None else copies
            shape = [copies, *[1] * (len(mask.shape) - 1)]
            set_mask(folded, tf.tile(mask, shape))


def _by_sample(tensor: Tensor, members: int, samples: int | Tensor) -> tf.Tensor:
    """Returns [samples * rows, ...] as [samples, rows, ...], member by member."""
    if members == 1:
        return split_leading(tensor, samples)
    units = tf.shape(tensor)[2:]
    return tf.ensure_shape(
        tf.reshape(tensor, tf.concat([[members, samples, -1], units], 0)),
        [members, None, None, *tensor.shape[2:]],
    )
