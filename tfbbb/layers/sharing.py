"""Counts the calls of a layer in one pass of a model."""

from __future__ import annotations

import itertools
import zlib

import keras

from tfbbb.base.private_apis import graph_of, layers_within, nodes_by_depth, sublayers


def number_of(model: keras.Layer, layer: keras.Layer) -> int:
    """Returns a number that tells a layer from all others that a model calls."""
    for place, other in enumerate(sublayers(model)):
        if other is layer:
            return place
    # The model does not track it: a layer that is called from the code of another.
    return zlib.crc32(layer.name.encode()) >> 1


def calls_per_pass(model: keras.Layer, layer: keras.Layer) -> int | None:
    """Returns how often `layer` is called in one call of `model`.

    A nested model that is itself shared counts with its own number of calls. A layer
    with `calls_layers_once = True` calls each layer in it once.
    """
    if model is layer:
        return 1
    calls = 0
    called = _called(model)
    if called is None:
        return None
    for operation in called:
        inner = calls_per_pass(operation, layer)
        if inner is None and layer in sublayers(operation):
            return None
        calls += inner or 0
    return calls


def _called(model: keras.Layer) -> list[keras.Layer] | None:
    """Returns the layers that a model calls, each as often as it does, if known."""
    graph = graph_of(model)
    if graph is None:
        if getattr(model, "calls_layers_once", False):
            return layers_within(model)
        return None
    nodes = itertools.chain.from_iterable(nodes_by_depth(graph))
    return [x.operation for x in nodes if isinstance(x.operation, keras.Layer)]
