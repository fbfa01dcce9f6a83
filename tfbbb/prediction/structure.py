"""The properties of a model's layers that prediction needs before it runs them."""

import functools
import itertools
import math
import operator
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import tree

from tfbbb.base.private_apis import (
    graph_of,
    nodes_by_depth,
    output_structure,
    own_variables,
    producer,
    run_through_graph,
    sublayers,
)
from tfbbb.base.types import Tensor
from tfbbb.bayes.estimators import Local
from tfbbb.layers import DenseVariational, VariationalLayer
from tfbbb.layers.linear_variational import LinearVariationalLayer
from tfbbb.layers.row_axes import RowAxes, row_axes
from tfbbb.layers.sharing import calls_per_pass
from tfbbb.prediction.output_mask import OutputMask

_NUMBERS = (int, float, complex, np.generic)
_PLAIN = (*_NUMBERS, str, bytes, type(None), tf.DType, tf.TensorShape)
_VALUES = (*_NUMBERS, np.ndarray, tf.Tensor, tf.Variable)
# Marks of tensors that depend on drawn weights, and of tensors that do not.
_DRAWN, _KNOWN = object(), object()
# Each holds its graphs and its last draws.
_MOST_PROGRAMS = 16
# As many tensors as a graph's operation may return.
_MANY = 1000


@dataclass(frozen=True)
class LayerInfo:
    """One variational layer of a model, and its index among the model's sublayers."""

    index: int
    layer: VariationalLayer
    # Whether drawing its pre-activations is exact.
    is_local: bool
    # Whether its inputs depend on no weight that is drawn.
    is_first: bool
    # Number of weights of one draw.
    num_weights: int
    # Number of outputs per row, if it is linear in a kernel.
    num_outputs: int

    @property
    def key(self) -> str:
        """The key of the layer's tensors in a pass."""
        return str(self.index)


class Structure:
    """The layers of a built model, its variational layers and the sizes of tensors."""

    def __init__(self, model: keras.Model):
        # Hold references so that layer ids are not reused.
        self.layers = sublayers(model)
        self._constants = _constants(self.layers)
        self._seen = _attributes(self.layers)
        self.indices = {id(layer): i for i, layer in enumerate(self.layers)}
        self.members = num_members(model)
        axes = row_axes(model)
        firsts = _first_layers(model, axes.drawing)
        self.layer_infos = tuple(
            LayerInfo(
                index,
                layer,
                is_local=_is_local(model, layer, axes),
                is_first=id(layer) in firsts,
                num_weights=sum(weight.size for weight in layer.variational_weights),
                num_outputs=_num_outputs(layer),
            )
            for index, layer in enumerate(self.layers)
            if isinstance(layer, VariationalLayer)
        )
        self.widest = widest_output(model)
        # The last layer of each output; None where it is not one layer's, as it is.
        self.lasts = output_layers(model)
        # Indices of the outputs that are known to be no probabilities.
        self.logits: set[int] = set()
        # By what they compute, the most recently used at the end.
        self.programs: dict[Hashable, Any] = {}
        self._lock = threading.RLock()
        # Computes the mask of a graph with one output; None without such a graph.
        graph = graph_of(model)
        self.output_mask = None
        if graph is not None and len(graph.outputs) == 1:
            self.output_mask = OutputMask(graph)

    @classmethod
    def of(cls, model: keras.Model) -> "Structure":
        """Returns the model's structure, computed again if the model has changed."""
        # Past Keras' tracking of attributes: this is no part of the model's state.
        known = model.__dict__.get("_predictive_structure")
        if known is None or not known.is_of(model):
            known = model.__dict__["_predictive_structure"] = cls(model)
        return known

    def program(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Returns the program of a key, which `make` returns if it is not kept."""
        with self._lock:
            found = self.programs.pop(key, None) or make()
            self.programs[key] = found
            while len(self.programs) > _MOST_PROGRAMS:
                del self.programs[next(iter(self.programs))]
        return found

    def is_of(self, model: keras.Model) -> bool:
        """Whether compiled graphs of the model are still right."""
        layers = sublayers(model)
        seen = _attributes(layers)
        if len(seen) == len(self._seen) and all(map(operator.is_, seen, self._seen)):
            return True
        is_same = (
            len(layers) == len(self.layers)
            and all(map(operator.is_, layers, self.layers))
            and _are_same(_constants(layers), self._constants)
            and all(info.layer.members == self.members for info in self.layer_infos)
        )
        if is_same:
            self._seen = seen
        return is_same

    @functools.cached_property
    def is_linear(self) -> bool:
        """Whether the outputs are linear in all weights that are drawn."""
        return all(
            isinstance(info.layer, DenseVariational)
            and info.layer.activation is keras.activations.linear
            and any(info.layer is last for last in self.lasts)
            and calls_per_pass(self.model, info.layer) == 1
            for info in self.layer_infos
            if not all(
                w.posterior.deterministic for w in info.layer.variational_weights
            )
        )

    @property
    def model(self) -> keras.Model:
        """The model, the first of its layers."""
        return self.layers[0]


def num_members(model: keras.Model) -> int:
    """Returns the number of members of a model's variational layers."""
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


def is_stochastic(operation: keras.Operation) -> bool:
    """Whether an operation of a graph is, or holds, a variational layer."""
    return isinstance(operation, keras.Layer) and any(
        isinstance(layer, VariationalLayer) for layer in sublayers(operation)
    )


def widest_output(model: keras.Model) -> int:
    """Returns the size of the largest tensor in the model, per row."""
    weights = [
        weight
        for layer in sublayers(model)
        if isinstance(layer, VariationalLayer)
        for weight in layer.variational_weights
    ]
    sizes = [1, *(sum(weight.shape) for weight in weights)]
    for layer in sublayers(model):
        sizes.append(_num_outputs(layer))
        graph = graph_of(layer)
        if graph is not None:
            nodes = itertools.chain.from_iterable(nodes_by_depth(graph))
            sizes += [
                math.prod(size or 1 for size in tensor.shape)
                for node in nodes
                for tensor in node.outputs
            ]
    return max(sizes)


def _num_outputs(layer: keras.Layer) -> int:
    # Within another layer it is no node of a graph.
    if not isinstance(layer, LinearVariationalLayer):
        return 1
    shape = layer.compute_output_shape(layer.get_build_config()["input_shape"])
    return math.prod(size or 1 for size in shape[1:])


def _is_local(model: keras.Model, layer: VariationalLayer, axes: RowAxes) -> bool:
    return (
        isinstance(layer, LinearVariationalLayer)
        and not axes.unfoldable
        and axes.has_rows_first(layer)
        and layer.is_local_exact(layer.input_rank, calls_per_pass(model, layer))
        and all(Local().can_serve(w.posterior) for w in layer.variational_weights)
    )


def structure_of_outputs(model: keras.Model, inputs: Tensor) -> Tensor:
    """Returns the structure of the model's outputs, with shapes and dtypes."""
    graph = graph_of(model)
    if graph is not None:
        return output_structure(graph)
    symbolic = tree.map_structure(
        lambda x: keras.KerasTensor((None, *x.shape[1:]), x.dtype.name), inputs
    )
    return model.compute_output_spec(symbolic)


def output_layers(model: keras.Model) -> tuple[keras.Layer | None, ...]:
    """Returns the layers whose outputs are those of the model, as they are.

    None for an output that is not one layer's.
    """
    graph = graph_of(model)
    if graph is None:
        return ()
    found: list[keras.Layer | None] = []
    for output in graph.outputs:
        last = producer(output)
        if graph_of(last) is not None:
            inner = output_layers(last)
            last = inner[0] if len(inner) == 1 else None
        found.append(last)
    return tuple(found)


def _first_layers(model: keras.Layer, drawing: frozenset[int]) -> set[int]:
    """Returns the ids of the linear layers whose inputs depend on nothing drawn."""
    firsts: set[int] = set()

    def outputs(operation: keras.Operation, inputs: object) -> object:
        """Returns the mark of an operation's outputs, and notes first layers."""
        stochastic = is_stochastic(operation)
        graph = graph_of(operation) if stochastic else None
        if graph is not None:
            return run(graph, inputs)
        if inputs is _KNOWN and isinstance(operation, LinearVariationalLayer):
            firsts.add(id(operation))
        return _DRAWN if stochastic or id(operation) in drawing else inputs

    def run(graph: keras.Model, inputs: object) -> object:
        def operation(op: keras.Operation) -> Callable[..., list[object]]:
            return lambda *args, **kwargs: (
                [outputs(op, _any_drawn((args, kwargs)))] * _MANY
            )

        flags = [inputs] * len(graph.inputs)
        return _any_drawn(run_through_graph(graph, flags, operation))

    outputs(model, _KNOWN)
    return firsts


def _any_drawn(flags: object) -> object:
    return _DRAWN if any(flag is _DRAWN for flag in tree.flatten(flags)) else _KNOWN


def _attributes(layers: Iterable[keras.Layer]) -> list[Any]:
    """Returns layers, their variables and attributes: those compared below, and more.

    Where all are the same objects as before, nothing has to be compared.
    """
    found: list[Any] = []
    for layer in layers:
        found += layer, *own_variables(layer), *vars(layer).values()
    return found


def _constants(layers: Iterable[keras.Layer]) -> list[Any]:
    """Returns what the graphs of layers keep as constants, at one moment.

    TensorFlow reads variables each time a graph runs. All else that a layer reads
    becomes part of the graph when it is traced: numbers of Python, tensors, the handles
    of variables and of lookup tables. After `Normalization.adapt`,
    `StringLookup.set_vocabulary` or an assignment to an attribute, such a graph goes on
    with the former values. The list holds the objects, so that no other takes their
    identity.
    """
    return [part for layer in layers for part in _of_layer(layer)]


def _are_same(some: list[Any], others: list[Any]) -> bool:
    """Whether graphs that keep either constants compute the same."""
    return len(some) == len(others) and all(
        one is two or (type(one) is type(two) and _are_equal(one, two))
        for one, two in zip(some, others, strict=True)
    )


def _are_equal(one: Any, two: Any) -> bool:
    return isinstance(one, _PLAIN) and bool(one == two)


def _of_layer(layer: keras.Layer) -> Iterator[Any]:
    yield from own_variables(layer)
    is_model = isinstance(layer, keras.Model)
    keeps_books = is_model or isinstance(layer, VariationalLayer)
    bookkeeping = _bookkeeping()
    for name, value in vars(layer).items():
        if name in bookkeeping or (keeps_books and name.startswith("_")):
            continue
        if not is_model or isinstance(value, _VALUES):
            yield name
            yield value


@functools.cache
def _bookkeeping() -> frozenset[str]:
    """Returns the attributes of every layer or model that no call reads."""
    of_loops = {"stop_training", "stop_evaluating", "stop_predicting"}
    return (frozenset(vars(keras.Layer())) | of_loops) - {"_dtype_policy"}
