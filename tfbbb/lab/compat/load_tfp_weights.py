"""Weights of a legacy model with `tfp.layers` in a model of Keras 3."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple, Protocol

import h5py  # type: ignore[import-untyped]
import keras
import numpy as np

_RESOLUTION = np.finfo(np.float32).eps

Assignment = tuple[keras.Variable, np.ndarray]


class LegacyModel(Protocol):
    """A model of legacy Keras."""

    layers: list[keras.Layer]
    weights: list[keras.Variable]


class _LayerWeights(NamedTuple):
    """A layer's name, and its values with names such as `"kernel_posterior_loc"`."""

    name: str
    weights: list[tuple[str, np.ndarray]]


def load_tfp_weights(
    legacy_model_or_h5: str | Path | LegacyModel, model: keras.Model
) -> None:
    """Copies the weights of a legacy model with `tfp.layers` into a Keras 3 model.

    Layers correspond by name if the model has all of the legacy names, else by their
    order. A layer of `tfbbb.lab.compat.tfp_layers` takes the weights as they are. A
    variational layer of `tfbbb.layers` with mean-field posteriors takes the means and,
    as it keeps the logarithm of the standard deviation,

        log_scale = log(softplus(untransformed_scale) + eps)

    with `eps` the resolution of float32. A bias that is a point, the default of
    `tfp.layers`, becomes the mean of the layer's bias, with a standard deviation of
    `eps` unless its posterior is a point, too.

    Nothing is written unless everything fits.

    Example:

    >>> import keras, numpy as np, tf_keras, tensorflow_probability as tfp, tfbbb
    >>> from tfbbb.lab.compat.load_tfp_weights import load_tfp_weights
    >>> legacy = tf_keras.Sequential([tfp.layers.DenseFlipout(2)])
    >>> legacy.build((None, 3))
    >>> model = keras.Sequential([
    ...     keras.Input((3,)), tfbbb.layers.DenseVariational(2, kl_weight=1.0)])
    >>> load_tfp_weights(legacy, model)
    >>> theirs = legacy.layers[0].kernel_posterior.mean()
    >>> np.allclose(model.layers[0].kernel.mean, theirs)
    True

    Args:
        legacy_model_or_h5: A model of legacy Keras (`tf_keras`), or the path of an HDF5
            file that it wrote by `save_weights` or `save`. A file `*.weights.h5` is
            refused, because it has no names of weights.
        model: The model to write to, built.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file holds no weights of Keras, the model is not built, the
            number of layers or weights or a shape differs, or a layer cannot represent
            the legacy layer's posterior.
    """
    if not isinstance(model, keras.Model) or not model.built:
        raise ValueError(
            "`model` must be a Keras 3 model that has been built: give it an input "
            f"shape, or call it once. Received: model={model!r}"
        )
    if isinstance(legacy_model_or_h5, str | Path):
        legacy_model_or_h5 = Path(legacy_model_or_h5)
    source = _read_source(legacy_model_or_h5)
    for variable, value in _assignments(source, _leaf_layers(model)):
        variable.assign(value)


def _read_source(source: Path | LegacyModel) -> list[_LayerWeights]:
    """Returns the weights of a legacy model or file, layer by layer."""
    if not isinstance(source, Path):
        return _read_model(source)
    if not source.is_file():
        raise FileNotFoundError(
            f"There is no file of weights at this path. Received: path={source}"
        )
    if not h5py.is_hdf5(source):
        raise ValueError(
            "Weights are read from HDF5 files, which `save_weights('weights.h5')` of a "
            f"legacy model writes. Received: path={source}"
        )
    with h5py.File(source) as file:
        root = file.get("model_weights", file)
        if "layer_names" in root.attrs:
            return _read_named_groups(root)
        if "layers" in root:
            raise ValueError(
                "A file '*.weights.h5' does not name the weights: pass the legacy "
                "model itself, or save its weights under a name that ends in '.h5' "
                f"but not in '.weights.h5'. Received: path={source}"
            )
    raise ValueError(
        f"The HDF5 file holds no weights of a Keras model. Received: path={source}"
    )


def _read_model(model: LegacyModel) -> list[_LayerWeights]:
    if not hasattr(model, "layers") or not hasattr(model, "weights"):
        raise ValueError(
            "The source must be a model of legacy Keras or the path of an HDF5 file "
            f"of its weights. Received: {model!r}"
        )
    return [
        _LayerWeights(
            layer.name,
            [
                (_last_part(w.name), np.array(w.numpy()))
                for w in _ordered_weights(layer)
            ],
        )
        for layer in _leaf_layers(model)
    ]


def _read_named_groups(root: h5py.Group) -> list[_LayerWeights]:
    """Reads the layout of `save_weights("weights.h5")` and `save("model.h5")`."""
    layers: dict[str, list[tuple[str, np.ndarray]]] = {}
    for layer_name in _texts(root.attrs["layer_names"]):
        group = root[layer_name]
        for name in _texts(group.attrs["weight_names"]):
            # The group of a model in the model holds the weights of all its layers.
            layer, _, _ = name.partition("/")
            value = (_last_part(name), np.array(group[name]))
            layers.setdefault(layer, []).append(value)
    return [_LayerWeights(name, weights) for name, weights in layers.items()]


def _texts(names: Iterable[str | bytes]) -> list[str]:
    return [n.decode() if isinstance(n, bytes) else str(n) for n in names]


def _last_part(name: str) -> str:
    return name.rsplit("/", 1)[-1].split(":")[0]


def _assignments(
    source: list[_LayerWeights], layers: list[keras.Layer]
) -> list[Assignment]:
    """Returns all variables of the layers with their values, or raises an error."""
    found: list[Assignment] = []
    for legacy, layer in _pairs(source, layers):
        assign = _to_variational if _is_variational(layer) else _to_layer
        found += assign(legacy, layer)
    for variable, value in found:
        if tuple(variable.shape) != value.shape:
            raise ValueError(
                f"The shape of '{variable.path}' is {tuple(variable.shape)}; the "
                f"legacy weight has another shape. Received: shape={value.shape}"
            )
    return found


def _pairs(
    source: list[_LayerWeights], layers: list[keras.Layer]
) -> list[tuple[_LayerWeights, keras.Layer]]:
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


def _to_layer(legacy: _LayerWeights, layer: keras.Layer) -> list[Assignment]:
    variables = _ordered_weights(layer)
    names = [name for name, _ in legacy.weights]
    own_names = [variable.name for variable in variables]
    if set(names) == set(own_names) and len(set(names)) == len(names):
        # A wrapper and its layer order their weights differently.
        values_by_name = dict(legacy.weights)
        return [(variable, values_by_name[variable.name]) for variable in variables]
    if names != own_names:
        raise ValueError(
            f"The weights of the layer '{layer.name}' are {own_names}; the legacy "
            f"layer '{legacy.name}' has other weights. Received: weights={names}"
        )
    values = [value for _, value in legacy.weights]
    return list(zip(variables, values, strict=True))


def _to_variational(legacy: _LayerWeights, layer: keras.Layer) -> list[Assignment]:
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


def _leaf_layers(model: keras.Model | LegacyModel) -> list[keras.Layer]:
    """Returns the layers of a model, and of the models in it, that hold weights."""
    leaves = []
    for layer in model.layers:
        if hasattr(layer, "layers"):
            leaves += _leaf_layers(layer)
        elif layer.weights:
            leaves.append(layer)
    return leaves


def _ordered_weights(layer: keras.Layer) -> list[keras.Variable]:
    """Returns the weights of a layer in the order of legacy files."""
    return [*layer.trainable_weights, *layer.non_trainable_weights]


def _is_variational(layer: keras.Layer) -> bool:
    """Whether a layer is a variational layer of `tfbbb.layers`."""
    return hasattr(layer, "variational_weights")
