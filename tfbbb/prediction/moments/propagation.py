"""The walk through a model's graph that carries means and variances along."""

from collections.abc import Callable, Mapping
from typing import Any

import keras
import tensorflow as tf
from keras import tree

from tfbbb.base.call_context import call_with
from tfbbb.base.private_apis import (
    graph_of,
    mask_of,
    run_through_graph,
    standardize_inputs,
    sublayers,
)
from tfbbb.base.types import Structure, Tensor
from tfbbb.layers import VariationalLayer
from tfbbb.layers.row_axes import row_axes
from tfbbb.prediction.moments.marginals import Marginals
from tfbbb.prediction.moments.registry import Call, MomentsError, find_rule
from tfbbb.prediction.properties import Operation
from tfbbb.prediction.structure import num_members


class Propagation:
    """Carries means and variances through a model, operation by operation.

    Operations before the first random one simply run, on the rows alone.

    Args:
        model: A built functional or sequential model.
        prepared: Known tensors that depend on the weights alone, by name.
    """

    def __init__(
        self, model: keras.Model, prepared: Mapping[str, Tensor] | None = None
    ):
        self._model = model
        self._prepared = prepared or {}
        self._indices = {id(layer): i for i, layer in enumerate(sublayers(model))}
        # Kept, so that the id of a tensor stays its own.
        self._batches: dict[int, Tensor | Marginals] = {}
        self.members = num_members(model)
        self._axes = row_axes(model)
        self._without_rows = {operation for operation, _ in self._axes.without_rows}
        self.operations: list[Operation] = []
        self.of_weights_alone: dict[str, Callable[[], Tensor]] = {}

    def run(self, inputs: Structure) -> Structure:
        """Returns the outputs, each a `Marginals` or a tensor where it is certain."""
        with call_with(layer_draws=_AtTheMean()):
            return self._walk(self._model, inputs, "")

    def of_weights(
        self, layer: keras.Layer, name: str, compute: Callable[[], Tensor]
    ) -> Tensor:
        """Returns a tensor that depends on weights alone, prepared or computed now."""
        key = f"{self._indices[id(layer)]}/{layer.name}/{name}"
        self.of_weights_alone[key] = compute
        return self._prepared[key] if key in self._prepared else compute()

    def _walk(self, model: keras.Model, inputs: Structure, path: str) -> Structure:
        graph = graph_of(model)
        if graph is None:
            raise MomentsError(
                model, "it is no functional or sequential model, whose graph is known"
            )
        flat = tree.flatten(inputs)
        if not any(isinstance(x, Marginals) for x in flat):
            flat = standardize_inputs(graph, inputs)
            self._batches |= {id(x): x for x in flat}

        def operation(op: keras.Operation) -> Any:
            return lambda *args, **kwargs: self._call(op, args, kwargs, path)

        return run_through_graph(graph, flat, operation)

    def _call(
        self,
        op: keras.Operation,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        path: str,
    ) -> Any:
        given = tree.flatten((args, kwargs))
        uncertain = any(isinstance(x, Marginals) for x in given)
        if kwargs.get("training"):
            raise MomentsError(op, "it is called with `training=True`")
        if kwargs.get("mask") is not None and graph_of(op) is not None:
            raise MomentsError(op, "it is called with a mask")
        if id(op) in self._axes.drawing and not self._is_random(op):
            raise MomentsError(op, "it draws random numbers of its own")
        if not (uncertain or self._is_random(op)):
            outputs = op(*args, **kwargs)
            if id(op) not in self._without_rows:
                self._batches |= {id(x): x for x in tree.flatten(outputs)}
            return outputs
        name = f"{path}{op.name}"
        # Operations that mix rows have no rule.
        mixed = self._axes.unfoldable
        if isinstance(op, VariationalLayer) and not (
            mixed or self._axes.has_rows_first(op)
        ):
            raise MomentsError(op, "the first axis of its inputs is not the rows alone")
        if isinstance(op, keras.Model) and graph_of(op) is not None:
            inner = args[0] if args else kwargs["inputs"]
            return self._walk(op, inner, f"{name}/")
        if any(mask_of(x) is not None for x in given):
            raise MomentsError(op, "its inputs have a mask")
        rule = find_rule(op)
        if rule is None:
            raise MomentsError(op, "there is no rule for its class")
        if uncertain:
            args, kwargs = tree.map_structure(self._for_every_member, (args, kwargs))
        call = Call(op, args, kwargs, self.members, self.of_weights)
        outputs = rule(call)
        self.operations.append(
            Operation(name, type(op).__name__, not call.reasons, " ".join(call.reasons))
        )
        return outputs

    def _is_random(self, op: keras.Operation) -> bool:
        # Points are certain, but several members have different points.
        return isinstance(op, keras.Layer) and any(
            isinstance(layer, VariationalLayer)
            and (self.members > 1 or not _is_certain(layer))
            for layer in sublayers(op)
        )

    def _for_every_member(self, tensor: Tensor) -> Tensor:
        if self.members == 1 or id(tensor) not in self._batches:
            return tensor
        return tf.tile(tensor, [self.members, *[1] * (len(tensor.shape) - 1)])


def _is_certain(layer: VariationalLayer) -> bool:
    return all(w.posterior.deterministic for w in layer.variational_weights)


class _AtTheMean:
    """Runs layers whose weights are points at these points, without divergence."""

    def outputs(self, layer: keras.Layer, inputs: Tensor) -> Tensor:
        inputs = layer.cast_inputs(inputs)
        kernel = tf.cast(layer.kernel.mean, layer.compute_dtype)
        outputs = layer.linear(inputs, kernel)
        if layer.bias is None:
            return outputs
        bias = tf.cast(layer.bias.mean, layer.compute_dtype)
        return outputs + layer.broadcast_bias(bias, len(outputs.shape))

    def drawn_weights(
        self, layer: VariationalLayer, inputs: Tensor
    ) -> dict[str, Tensor]:
        return {w.name: w.mean[tf.newaxis] for w in layer.variational_weights}
