"""Which layers of a Keras model get a posterior, and why the others stay."""

import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

import keras

import tfbbb.layers as variational
from tfbbb.base.private_apis import graph_of, producer, sources, sublayers
from tfbbb.model.adapted import Adapted

# "all", "last", "adapters", names of layers, or a rule.
Where: TypeAlias = "str | Iterable[str] | Callable[[keras.Layer], bool]"

_COUNTERPART = "variational counterpart"
# Keras' layer by the name of its variational counterpart.
_COUNTERPARTS: dict[str, type[keras.Layer]] = {
    f"{name}Variational": getattr(keras.layers, name)
    for name in (
        *("Dense", "EinsumDense", "Conv1D", "Conv2D", "Conv3D"),
        *("Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose"),
        *("DepthwiseConv2D", "SeparableConv2D", "Embedding"),
        *("SimpleRNN", "LSTM", "GRU", "MultiHeadAttention"),
    )
}
TO_VARIATIONAL = {
    deterministic: getattr(variational, name)
    for name, deterministic in _COUNTERPARTS.items()
}
TO_DETERMINISTIC = {new: old for old, new in TO_VARIATIONAL.items()}
# Attributes of layers that wrap another layer, and its key in their configs.
_WRAPPED = {
    "layer": "layer",
    "forward_layer": "layer",
    "backward_layer": "backward_layer",
    "down": "down",
    "up": "up",
}


def wrapped(layer: keras.Layer) -> dict[str, str]:
    """Returns attributes of layers within a layer that can be converted, and keys."""
    if isinstance(layer, keras.layers.SpectralNormalization):
        # It divides the kernel by its norm in training, which a posterior lacks.
        return {}
    return {
        attribute: key
        for attribute, key in _WRAPPED.items()
        if isinstance(getattr(layer, attribute, None), keras.Layer)
    }


def parts(layer: keras.Layer) -> Iterator[keras.Layer]:
    """Yields the layers of nested models and wrappers, which are copied one by one."""
    if graph_of(layer) is not None:
        for each in layer.layers:
            yield from parts(each)
    elif within := wrapped(layer):
        for attribute in within:
            yield from parts(getattr(layer, attribute))
    else:
        yield layer


def reasons_to_stay(model: keras.Model, where: Where) -> dict[int, str]:
    """Returns why layers stay deterministic, by their ids; "" if they do not."""
    adapters = [layer for layer in sublayers(model) if isinstance(layer, Adapted)]
    second = {id(layer.up) for layer in adapters}
    if isinstance(where, str) and where == "adapters":
        if not adapters:
            raise ValueError(
                "The model has no adapters. Add them: "
                '`tfbbb.convert(tfbbb.adapters.add(model), where="adapters")`. '
                f"Received: model={model.name!r}, where={where!r}"
            )
        where = "all"

    def reason(layer: keras.Layer) -> str:
        if id(layer) in second:
            return "the first factor has the posterior"
        return _own_reason(layer)

    return chosen_layers(model, where, reason, _COUNTERPART)


def chosen_layers(
    model: keras.Model, where: Where, reason: Callable[[keras.Layer], str], what: str
) -> dict[int, str]:
    """Returns why layers are not chosen, by the id of the layer; "" if they are."""
    layers = list({id(layer): layer for layer in parts(model)}.values())
    _check_weights(layers)
    found = {id(layer): reason(layer) for layer in layers}
    possible = [layer for layer in layers if not found[id(layer)]]
    chosen = _chosen(model, where, possible, found, what)
    for layer in possible:
        if id(layer) not in chosen:
            found[id(layer)] = "not in `where`"
    return found


def last_layers(model: keras.Model) -> set[int]:
    """Returns the ids of the last layers with a counterpart before the outputs."""
    return _last(
        model, {id(x) for x in parts(model) if x.weights and type(x) in TO_VARIATIONAL}
    )


def _own_reason(layer: keras.Layer) -> str:
    """Returns why a layer cannot be converted, or ""."""
    if not layer.weights:
        return "no weights"
    if type(layer) not in TO_VARIATIONAL:
        return f"no {_COUNTERPART}"
    if not layer.trainable:
        return "frozen: trainable=False"
    return ""


def _check_weights(layers: Iterable[keras.Layer]) -> None:
    """Refuses weights that a copy of the layers would not have."""
    owners: dict[int, keras.Layer] = {}
    for layer in layers:
        mode = getattr(layer, "quantization_mode", None)
        if mode is not None:
            raise ValueError(
                f"The layer '{layer.name}' is quantized, and whole numbers have no "
                "posterior. Convert the network before `quantize`, and quantize "
                "`tfbbb.to_deterministic(twin)` afterwards. "
                f"Received: quantization_mode={mode!r}"
            )
        for weight in layer.weights:
            owner = owners.setdefault(id(weight), layer)
            if owner is not layer:
                raise ValueError(
                    f"The layers '{owner.name}' and '{layer.name}' share a weight, "
                    "which their copies would not. Call one layer in both places, or "
                    "build the network from `tfbbb.layers`. "
                    f"Received: {weight.path} in both layers"
                )


def _chosen(
    model: keras.Model,
    where: Where,
    possible: list[keras.Layer],
    reasons: dict[int, str],
    what: str,
) -> set[int]:
    """Returns the ids of the layers that `where` chooses among the possible ones."""
    if isinstance(where, str) and where == "all":
        return {id(layer) for layer in possible}
    if isinstance(where, str) and where == "last":
        return _last(model, {id(layer) for layer in possible})
    if callable(where):
        return {id(layer) for layer in possible if where(layer)}
    if isinstance(where, str) or not isinstance(where, Iterable):
        raise ValueError(
            '`where` must be "all", "last", "adapters", a list of the names of layers, '
            "or a function of a layer that returns a bool. "
            f"Received: where={where!r}"
        )
    return _named(model, list(where), reasons, what)


def _named(
    model: keras.Model, names: list[str], reasons: dict[int, str], what: str
) -> set[int]:
    """Returns the ids of the layers of these names, and of those in them."""
    layers = sublayers(model)
    known = {layer.name: layer for layer in layers if any(_reached(layer, reasons))}
    chosen: set[int] = set()
    for name in names:
        if name not in known:
            raise ValueError(
                f"The model has no layer of this name, but {sorted(known)}. "
                f"Received: where={names} with {name!r}"
            )
        inside = list(_reached(known[name], reasons))
        able = {id(layer) for layer in inside if not reasons[id(layer)]}
        if not able:
            raise ValueError(_refusal(name, inside[0], reasons[id(inside[0])], what))
        chosen |= able
    return chosen


def _reached(layer: keras.Layer, reasons: dict[int, str]) -> Iterator[keras.Layer]:
    return (part for part in parts(layer) if id(part) in reasons)


def _refusal(name: str, layer: keras.Layer, reason: str, what: str) -> str:
    remedy = ""
    if reason.startswith("frozen"):
        remedy = "Set `layer.trainable = True`, or leave the layer out. "
    elif what == _COUNTERPART:
        remedy = f"{sorted(cls.__name__ for cls in TO_VARIATIONAL)} have one. "
    return (
        f"The layer '{name}' gets no {what}: {reason}. {remedy}"
        f"Received: '{layer.name}' of type {type(layer).__name__}"
    )


def _last(model: keras.Model, possible: set[int]) -> set[int]:
    """Returns the possible layers before each output, behind no other possible one."""
    graph = graph_of(model)
    assert graph is not None
    found: set[int] = set()
    seen: set[int] = set()

    def search(tensor: keras.KerasTensor) -> None:
        if id(tensor) in seen:
            return
        seen.add(id(tensor))
        operation: Any = producer(tensor)
        inside = parts(operation) if isinstance(operation, keras.Layer) else ()
        able = {id(part) for part in inside} & possible
        if able and graph_of(operation) is not None:
            able = _last(operation, able)
        found.update(able)
        if not able:
            for source in sources(tensor):
                search(source)

    for output in graph.outputs:
        search(output)
    return found


def shared_arguments(layer: keras.Layer) -> set[str]:
    """Returns the names of the arguments that a layer and its counterpart both take."""
    deterministic = TO_DETERMINISTIC.get(type(layer), type(layer))
    return {"name", "trainable", "dtype", *inspect.signature(deterministic).parameters}
