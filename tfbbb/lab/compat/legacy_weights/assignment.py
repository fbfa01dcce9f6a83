"""Assigns legacy weights to variables."""

import keras
import numpy as np

from tfbbb.lab.compat.legacy_weights.layer_weights import (
    LayerWeights,
    is_variational,
    ordered_weights,
)

Assignment = tuple[keras.Variable, np.ndarray]

_RESOLUTION = np.finfo(np.float32).eps


def assignments(
    source: list[LayerWeights], layers: list[keras.Layer]
) -> list[Assignment]:
    """Returns all variables of the layers with their values, or raises an error."""
    found: list[Assignment] = []
    for legacy, layer in _pairs(source, layers):
        assign = _to_variational if is_variational(layer) else _to_layer
        found += assign(legacy, layer)
    for variable, value in found:
        if tuple(variable.shape) != value.shape:
            raise ValueError(
                f"The shape of '{variable.path}' is {tuple(variable.shape)}; the "
                f"legacy weight has another shape. Received: shape={value.shape}"
            )
    return found


def _pairs(
    source: list[LayerWeights], layers: list[keras.Layer]
) -> list[tuple[LayerWeights, keras.Layer]]:
    names = [legacy.name for legacy in source]
    if len(source) != len(layers):
        raise ValueError(
            f"The model has {len(layers)} layers with weights, "
            f"{[layer.name for layer in layers]}, and the legacy model has another "
            "number. "
            f"Received: {len(source)} layers, {names}"
        )
    by_name = {layer.name: layer for layer in layers}
    if set(by_name) == set(names):
        return [(legacy, by_name[legacy.name]) for legacy in source]
    return list(zip(source, layers, strict=True))


def _to_layer(legacy: LayerWeights, layer: keras.Layer) -> list[Assignment]:
    variables = ordered_weights(layer)
    names = [name for name, _ in legacy.weights]
    own_names = [variable.name for variable in variables]
    if set(names) == set(own_names) and len(set(names)) == len(names):
        # A wrapper and its layer order their weights differently.
        values_by_name = dict(legacy.weights)
        return [(variable, values_by_name[variable.name]) for variable in variables]
    if len(names) != len(variables) or (None not in names and names != own_names):
        raise ValueError(
            f"The weights of the layer '{layer.name}' are {own_names}; the legacy "
            f"layer '{legacy.name}' has other weights. Received: weights={names}"
        )
    values = [value for _, value in legacy.weights]
    return list(zip(variables, values, strict=True))


def _to_variational(legacy: LayerWeights, layer: keras.Layer) -> list[Assignment]:
    values = dict(legacy.weights)
    found: list[Assignment] = []
    for weight in layer.variational_weights:
        mean = values.pop(f"{weight.name}_posterior_loc", None)
        untransformed = values.pop(f"{weight.name}_posterior_untransformed_scale", None)
        variables = weight.variables
        is_normal = set(variables) == {"mean", "log_scale"}
        is_point = set(variables) == {"mean"}
        if mean is None or not (is_normal or (is_point and untransformed is None)):
            raise ValueError(
                f"The {weight.name} of the layer '{layer.name}', a posterior with "
                f"the variables {sorted(variables)}, cannot represent the posterior of "
                f"the legacy layer '{legacy.name}': independent normals fit "
                "`mean_field_normal`, a point fits `point`, a layer without bias fits "
                "one without. "
                f"Received: weights={[name for name, _ in legacy.weights]}"
            )
        found.append((variables["mean"], mean))
        if is_normal:
            if untransformed is None:
                scale = np.full(mean.shape, _RESOLUTION)
            else:
                scale = np.logaddexp(0.0, untransformed.astype(float)) + _RESOLUTION
            found.append((variables["log_scale"], np.log(scale).astype(np.float32)))
    if values:
        raise ValueError(
            f"The layer '{layer.name}' has no place for weights of the legacy layer "
            f"'{legacy.name}'. Received: weights={list(values)}"
        )
    return found
