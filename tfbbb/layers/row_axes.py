"""Finds by a probe which tensors of a network have its rows as their first axis.

The draws from a posterior share one pass by lying beside each other in the first axis.
That is right only for operations that treat each row alike and alone. A tensor without
rows (a codebook, a learned query) has no place for draws, a tensor with several places
for each row shares weights between them, and an operation may mix rows.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf
from keras import tree

from tfbbb.base import types
from tfbbb.base.call_context import call_with
from tfbbb.base.private_apis import (
    arguments_of_node,
    call_arguments,
    graph_of,
    nodes_by_depth,
    outside_calls,
    run_through_graph,
    standardize_inputs,
    sublayers,
)
from tfbbb.base.types import Tensor

# Number of rows of the first run, and those of them that the second run has. No place
# has the same row in both, nor does a flip, a shift or a sum over rows agree.
_ROWS, _CHOSEN = 4, (1, 3, 0)
# The size of an axis that a network leaves open, e.g. time steps or pixels.
_OPEN_SIZE = 32
# Differences by the order of summation, relative to the largest value of a tensor.
_TOLERANCE = {tf.float16: 0.05, tf.bfloat16: 0.2}
_OTHER_TOLERANCE = 1e-3
# The layers of these modules treat each row alike and alone.
_PLAIN_MODULES = (
    *("keras.src.layers.", "keras.src.models.", "keras.src.activations."),
    *("tfbbb.layers.", "tfbbb.model.", "tfbbb.tables."),
)
_RANDOM = ("Random", "Multinomial", "TruncatedNormal", "StandardNormal", "Uniform")

# What only a `VariationalLayer` has, whose module needs this one.
_OF_VARIATIONAL = "add_variational_weight"

# A call of an operation: its `id`, and how many calls of it were before.
CallKey = tuple[int, int]
# Whether an operation draws by itself in a prediction: dropout, if it is included.
Draws = Callable[[keras.Operation], bool]


@dataclass(frozen=True)
class RowAxes:
    """What the first axes of the tensors of a network are.

    `unfoldable` names the first operation to which draws cannot be given beside each
    other in the first axis. `without_rows` are the calls whose outputs are the same for
    all rows, `drawing` the ids of operations that draw random numbers in a prediction,
    and `one_place` those of the variational layers whose first axis is the network's
    rows in every call (None for all). `no_output` is the shape of an output without
    rows.
    """

    unfoldable: str = ""
    mixes_rows: bool = False
    without_rows: frozenset[CallKey] = frozenset()
    drawing: frozenset[int] = frozenset()
    one_place: frozenset[int] | None = None
    no_output: tuple[int, ...] | None = None

    def has_rows_first(self, layer: keras.Layer) -> bool:
        """Whether the first axis of a layer's inputs is the network's rows."""
        return self.one_place is None or id(layer) in self.one_place

    def check_outputs(self) -> None:
        """Raises ValueError if an output has no axis of rows."""
        if self.no_output is not None:
            raise ValueError(
                "Every output of the model needs the rows as its first axis: transpose "
                "it, or add the axis, within the model. Received: an output of shape "
                f"{list(self.no_output)} for {_ROWS} rows"
            )


def row_axes(
    model: keras.Layer, inputs: types.Structure = None, draws: Draws | None = None
) -> RowAxes:
    """Returns what the first axes of a network's tensors are, found once."""
    graph = graph_of(model)
    if graph is not None:
        # Not those of a prediction, so that the answer is found once.
        inputs = tree.map_structure(
            lambda x: tf.TensorSpec(x.shape, x.dtype), graph.input
        )
    elif inputs is None:
        inputs = _built_for(model)
        if inputs is None:
            return RowAxes()
    layers = sublayers(model)
    # Past Keras' tracking of attributes: this is no part of the model's state.
    known = model.__dict__.get("_row_axes")
    if known is None or [*map(id, known.layers)] != [*map(id, layers)]:
        known = model.__dict__["_row_axes"] = _Known(layers)
    kinds = repr(tree.map_structure(lambda x: (*x.shape[1:], x.dtype), inputs))
    key = kinds, draws
    if key not in known.axes:
        plain = graph is not None and _is_plain(graph)
        known.axes[key] = RowAxes() if plain else _probe(model, inputs, draws)
    return known.axes[key]


@dataclass
class _Known:
    """What was found for a model with these layers, held so that no id is reused."""

    # Keras would load weights into a tuple or a dictionary of the model.

    layers: Sequence[keras.Layer]
    axes: dict[Any, RowAxes] = field(default_factory=dict)


def _built_for(model: keras.Layer) -> tf.TensorSpec | None:
    """Returns the spec of the one input that a model was built for; None of others."""
    shape = (model.get_build_config() or {}).get("input_shape")
    if (
        not isinstance(model, keras.Model)
        or not model.built
        or not isinstance(shape, list | tuple)
        or not all(size is None or isinstance(size, int) for size in shape)
    ):
        return None
    with tf.init_scope():
        # Variables of a model that is built while a step is traced have no value yet.
        small = [x.value for x in model.variables if len(x.shape) < 2]
        if any(
            not hasattr(x, "numpy") or x.numpy().shape != tuple(x.shape) for x in small
        ):
            return None
    return tf.TensorSpec([None, *shape[1:]], keras.config.floatx())


def _is_plain(graph: keras.Model) -> bool:
    """Whether all operations of a graph are known to treat each row alike and alone."""
    for node in itertools.chain.from_iterable(nodes_by_depth(graph)):
        operation = node.operation
        args, kwargs = arguments_of_node(node)
        # In training, layers draw and normalise over rows.
        if kwargs.get("training") or any(x is True for x in args):
            return False
        inner = graph_of(operation)
        if inner is not None:
            if not _is_plain(inner):
                return False
        elif not isinstance(operation, keras.Layer) or not all(
            map(_is_plain_layer, sublayers(operation))
        ):
            return False
    return True


def _is_plain_layer(layer: keras.Layer) -> bool:
    axis = getattr(layer, "axis", None)
    parts = [type(layer), getattr(layer, "activation", None) or type(layer)]
    return (
        all(str(x.__module__).startswith(_PLAIN_MODULES) for x in parts)
        and not isinstance(layer, keras.layers.Lambda)
        and 0 not in (axis if isinstance(axis, list | tuple) else [axis])
    )


def _probe(model: keras.Layer, inputs: types.Structure, draws: Draws | None) -> RowAxes:
    # The network may be found within a call of it, whose batch has copies of its rows.
    with tf.init_scope(), call_with(copies_in_batch=1, samples_in_batch=None):
        try:
            return _Probe(model, draws or (lambda operation: False)).find(inputs)
        except Exception:
            # The network cannot run on a few rows of made-up values, so nothing
            # is known: it is run as it is called, with one draw at a time.
            return RowAxes(model.name, mixes_rows=True, one_place=frozenset())


class _Call(NamedTuple):
    """A call in a probe, or without an `operation` the inputs of a nested graph.

    `nodes` are the names of the nodes that it added.
    """

    operation: keras.Operation | None
    key: CallKey
    inputs: list[Tensor]
    outputs: list[Tensor]
    nodes: list[str]
    is_walked: bool = False


class _Probe:
    """Runs a network on some rows and on a part of them, with one draw of the weights.

    It draws the outputs of layers, as `tfbbb.base.call_context.LayerDraws`.
    """

    def __init__(self, model: keras.Layer, draws: Draws):
        self._model = model
        self._draws = draws
        self._calls: list[_Call] = []
        self._numbers: Counter[int] = Counter()
        self._seen: list[tuple[keras.Layer, Tensor]] = []
        # The outputs of the calls that draw, in place of their own.
        self._outputs: dict[CallKey, list[np.ndarray]] = {}
        self._weights: dict[int, dict[str, Tensor]] = {}
        # Of every tensor by its id: the result of `_places`, and its two shapes.
        self._places: dict[int, int | None] = {}
        self._shapes: dict[int, tuple[tuple[int, ...], tuple[int, ...]]] = {}
        # A gate or scale that starts at 0 would hide what is behind it.
        self._values = [
            (variable, variable + 0.1 * tf.random.stateless_uniform(shape, [index, 3]))
            for index, variable in enumerate(model.variables)
            if len(shape := variable.shape) < 2 and variable.dtype == "float32"
        ]

    def find(self, inputs: types.Structure) -> RowAxes:
        """Returns the axes of a model, given inputs or their specs."""
        specs = [
            tf.TensorSpec([None, *x.shape[1:]], x.dtype) for x in tree.flatten(inputs)
        ]
        rows = [_made_up_rows(spec, index) for index, spec in enumerate(specs)]
        chosen = [x[list(_CHOSEN)] for x in rows]
        concrete = self._trace(inputs, specs)
        runs = [_run(concrete, values) for values in (rows, chosen)]
        random = _random_nodes(concrete.graph)
        drawing = [x for x in self._calls if not random.isdisjoint(x.nodes)]
        if drawing:
            # The second run has other noise, and needs that of its rows in the first.
            places = {
                id(x): pair for x, *pair in zip(self._tensors, *runs, strict=True)
            }
            self._outputs = {
                call.key: [_of_chosen_rows(*places[id(x)]) for x in call.outputs]
                for call in drawing
                if not call.is_walked
            }
            runs[1] = _run(self._trace(inputs, specs), chosen)
        for tensor, first, second in zip(self._tensors, *runs, strict=True):
            self._places[id(tensor)] = _places(first, second, tensor.dtype)
            self._shapes[id(tensor)] = first.shape, second.shape
        return self._decide({id(call.operation) for call in drawing})

    def outputs(self, layer: keras.Layer, inputs: Tensor) -> Tensor:
        """Returns the pre-activations of a layer."""
        weights = self.drawn_weights(layer, inputs)
        outputs = layer.linear(layer.cast_inputs(inputs), weights["kernel"][0])
        if layer.bias is not None:
            bias = weights["bias"][0]
            outputs += layer.broadcast_bias(bias, len(outputs.shape))
        return outputs

    def drawn_weights(self, layer: keras.Layer, inputs: Tensor) -> dict[str, Tensor]:
        """Returns one draw of the weights of a layer, [1, *shape]."""
        self._seen.append((layer, inputs))
        if id(layer) not in self._weights:
            with tf.init_scope():
                self._weights[id(layer)] = {
                    weight.name: tf.cast(
                        tf.random.stateless_normal([1, *weight.shape], [index, 7])
                        / weight.fan_in**0.5,
                        layer.compute_dtype,
                    )
                    for index, weight in enumerate(layer.variational_weights)
                }
        return self._weights[id(layer)]

    def _trace(
        self, inputs: types.Structure, specs: list[tf.TensorSpec]
    ) -> tf.types.experimental.ConcreteFunction:
        """Returns a function of the inputs, one by one, that returns `_tensors`."""

        def run(*flat: Tensor) -> list[Tensor]:
            return self._run(tree.pack_sequence_as(inputs, flat))

        function = tf.function(run, input_signature=specs, autograph=False)
        return function.get_concrete_function()

    def _run(self, inputs: types.Structure) -> list[Tensor]:
        """Runs the model, and returns every tensor that the decision is about."""
        self._calls, self._numbers, self._seen = [], Counter(), []
        graph = tf.compat.v1.get_default_graph()
        with (
            keras.StatelessScope(state_mapping=self._values),
            call_with(layer_draws=self),
        ):
            outputs = self._call(self._model, inputs)
        self._results = tree.flatten(outputs)
        found = [x for call in self._calls for x in (*call.inputs, *call.outputs)]
        found += [inputs for _, inputs in self._seen]
        # Those of a loop within a layer stay there.
        self._tensors = [
            x
            for x in {id(x): x for x in found}.values()
            if getattr(x, "graph", None) is graph
        ]
        return self._tensors

    def _call(self, operation: keras.Operation, *args: Any, **kwargs: Any) -> Any:
        key = id(operation), self._numbers[id(operation)]
        self._numbers[id(operation)] += 1
        tensor_graph = tf.compat.v1.get_default_graph()
        first = len(tensor_graph.get_operations())
        graph = graph_of(operation)
        if graph is None:
            with outside_calls():
                outputs = operation(*args, **kwargs)
            if key in self._outputs:
                known = iter(self._outputs[key])
                outputs = tree.map_structure(
                    lambda x: tf.constant(next(known)) if tf.is_tensor(x) else x,
                    outputs,
                )
        else:
            inputs, others = call_arguments(operation, args, kwargs)
            flat = standardize_inputs(graph, inputs)
            self._calls.append(_Call(None, key, _tensors(args), _tensors(flat), []))
            outputs = run_through_graph(
                graph,
                flat,
                lambda op: lambda *args, **kwargs: self._call(op, *args, **kwargs),
                **others,
            )
        nodes = [node.name for node in tensor_graph.get_operations()[first:]]
        given, found = _tensors((args, kwargs)), _tensors(outputs)
        call = _Call(operation, key, given, found, nodes, graph is not None)
        self._calls.append(call)
        return outputs

    def _decide(self, drawing: set[int]) -> RowAxes:
        """Returns the axes, given the ids of the operations that draw by themselves."""
        drawn: set[int] = set()
        unfoldable, mixed = "", False
        for call in self._calls:
            acts = call.operation is not None and (
                id(call.operation) in drawing
                or self._draws(call.operation)
                or _is_stochastic(call.operation)
            )
            if call.is_walked or not (acts or any(id(x) in drawn for x in call.inputs)):
                continue
            if call.operation is None:
                drawn.update(map(id, call.outputs))
                continue
            varying = [x for x in call.outputs if acts or self._of(x) != 0]
            drawn.update(map(id, varying))
            mixed |= any(self._of(x) is None for x in varying)
            if not (
                all(self._of(x) for x in varying)
                and all(self._of(x) is not None for x in call.inputs)
            ):
                unfoldable = unfoldable or call.operation.name
        places: dict[int, set[int | None]] = {}
        for layer, inputs in self._seen:
            found = places.setdefault(id(layer), set())
            # Tensors of a loop within a layer are unknown.
            if id(inputs) in self._places:
                found.add(self._places[id(inputs)])
            if not self._places.get(id(inputs)):
                unfoldable = unfoldable or layer.name
        # An operation that mixes rows shares the weights of layers between them.
        one_place = {key for key, found in places.items() if found <= {1} and not mixed}
        without_rows = {
            call.key
            for call in self._calls
            if call.operation is not None
            and all(self._of(x) == 0 for x in call.outputs)
        }
        lost = [
            self._shapes.get(id(x), (tuple(x.shape), ()))[0]
            for x in self._results
            if not (self._of(x) or _grows(*self._shapes.get(id(x), ((), ()))))
        ]
        return RowAxes(
            unfoldable,
            mixes_rows=any(self._of(x) is None for x in self._results),
            without_rows=frozenset(without_rows),
            drawing=frozenset(drawing),
            one_place=frozenset(one_place),
            no_output=lost[0] if lost else None,
        )

    def _of(self, tensor: Tensor) -> int | None:
        """Returns the places of a tensor; 0 for a constant."""
        return self._places.get(id(tensor), 0)


def _is_stochastic(operation: keras.Operation) -> bool:
    return isinstance(operation, keras.Layer) and any(
        hasattr(layer, _OF_VARIATIONAL) for layer in sublayers(operation)
    )


def _tensors(structure: types.Structure) -> list[Tensor]:
    return [x for x in tree.flatten(structure) if isinstance(x, tf.Tensor)]


def _run(
    function: tf.types.experimental.ConcreteFunction, values: list[np.ndarray]
) -> list[np.ndarray]:
    return [x.numpy() for x in function(*map(tf.constant, values))]


def _made_up_rows(spec: tf.TensorSpec, seed: int) -> np.ndarray:
    """Returns rows that differ, of values that are indices of the smallest tables."""
    generator = np.random.default_rng(seed)
    shape = _ROWS, *(size or _OPEN_SIZE for size in spec.shape[1:])
    if spec.dtype.is_floating:
        values = generator.uniform(0.05, 1.95, shape)
        return values.astype(spec.dtype.as_numpy_dtype)
    bits = generator.integers(0, 2, shape[1:])
    rows = np.arange(_ROWS).reshape(-1, *[1] * (len(shape) - 1))
    bits = (bits + rows) % 2
    if spec.dtype == tf.string:
        return np.where(bits == 1, "a", "b").astype(object)
    return bits.astype(spec.dtype.as_numpy_dtype)


def _of_chosen_rows(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Returns a tensor of the first run for the rows of the second."""
    if not _grows(first.shape, second.shape):
        return first
    by_row = first.reshape(_ROWS, -1, *first.shape[1:])[list(_CHOSEN)]
    return by_row.reshape(second.shape)


def _places(first: np.ndarray, second: np.ndarray, dtype: tf.DType) -> int | None:
    """Returns how many places of a tensor's first axis each row has."""
    if first.shape == second.shape and _is_close(first, second, dtype):
        return 0
    if not _grows(first.shape, second.shape):
        return None
    if not _is_close(_of_chosen_rows(first, second), second, dtype):
        return None
    return len(first) // _ROWS


def _grows(first: tuple[int, ...], second: tuple[int, ...]) -> bool:
    """Whether the first axis, and no other, grows with the rows of the two runs."""
    return (
        len(first) == len(second) > 0
        and first[1:] == second[1:]
        and first[0] > 0
        and first[0] * len(_CHOSEN) == second[0] * _ROWS
    )


def _is_close(first: np.ndarray, second: np.ndarray, dtype: tf.DType) -> bool:
    if not dtype.is_floating:
        return np.array_equal(first, second)
    first, second = first.astype(np.float64), second.astype(np.float64)
    finite = np.abs(first[np.isfinite(first)])
    tolerance = _TOLERANCE.get(dtype, _OTHER_TOLERANCE) * finite.max(initial=0.0)
    return np.allclose(first, second, rtol=0.0, atol=tolerance, equal_nan=True)


def _random_nodes(graph: tf.Graph) -> set[str]:
    """Returns the names of the nodes of a graph that draw random numbers."""
    definition = graph.as_graph_def()
    functions = {f.signature.name: f.node_def for f in definition.library.function}

    def called(node: Any) -> list[str]:
        values = node.attr.values()
        lists = (x.list.func for x in values)
        return [f.name for f in (*(x.func for x in values), *itertools.chain(*lists))]

    random: set[str] = set()

    def draws(node: Any) -> bool:
        return any(name in node.op for name in _RANDOM) or any(
            name in random for name in called(node)
        )

    size = -1
    while len(random) > size:
        size = len(random)
        random |= {n for n, nodes in functions.items() if any(map(draws, nodes))}
    return {node.name for node in definition.node if draws(node)}
