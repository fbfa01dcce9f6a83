"""Weights of a legacy model, or of a file that it has written."""

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import h5py  # type: ignore[import-untyped]
import keras
import numpy as np

from tfbbb.lab.compat.legacy_weights.layer_weights import (
    LayerWeights,
    LegacyModel,
    is_variational,
    leaf_layers,
    ordered_weights,
)


def read_source(source: Path | LegacyModel, model: keras.Model) -> list[LayerWeights]:
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
            return _read_structure(root, model, source)
    raise ValueError(
        f"The HDF5 file holds no weights of a Keras model. Received: path={source}"
    )


def _read_model(model: LegacyModel) -> list[LayerWeights]:
    if not hasattr(model, "layers") or not hasattr(model, "weights"):
        raise ValueError(
            "The source must be a model of legacy Keras or the path of an HDF5 file "
            f"of its weights. Received: {model!r}"
        )
    return [
        LayerWeights(
            layer.name,
            [(_last_part(w.name), np.array(w.numpy())) for w in ordered_weights(layer)],
        )
        for layer in leaf_layers(model)
    ]


def _read_named_groups(root: h5py.Group) -> list[LayerWeights]:
    """Reads the layout of `save_weights("weights.h5")` and `save("model.h5")`."""
    layers: dict[str, list[tuple[str | None, np.ndarray]]] = {}
    for layer_name in _texts(root.attrs["layer_names"]):
        group = root[layer_name]
        for name in _texts(group.attrs["weight_names"]):
            # The group of a model in the model holds the weights of all its layers.
            layer, _, _ = name.partition("/")
            value = (_last_part(name), np.array(group[name]))
            layers.setdefault(layer, []).append(value)
    return [LayerWeights(name, weights) for name, weights in layers.items()]


def _read_structure(
    group: h5py.Group, model: keras.Model, path: Path
) -> list[LayerWeights]:
    """Reads the layout of `save_weights("model.weights.h5")`, which names classes."""
    found = []
    counts: Counter[str] = Counter()
    for layer in model.layers:
        if is_variational(layer):
            raise ValueError(
                "This layout of HDF5 files does not name the weights, as the "
                f"variational layer '{layer.name}' needs them: pass the legacy model "
                "itself, or save its weights under a name that ends in '.h5' but not "
                f"in '.weights.h5'. Received: path={path}"
            )
        name = _snake_case(type(layer).__name__)
        key = f"layers/{name}_{counts[name]}" if counts[name] else f"layers/{name}"
        counts[name] += 1
        if not layer.weights:
            continue
        if key not in group:
            raise ValueError(
                f"The file holds no weights for the layer '{layer.name}', which it "
                f"would call {key!r}. Received: path={path}, "
                f"with {sorted(group.get('layers', {}))}"
            )
        if hasattr(layer, "layers"):
            found += _read_structure(group[key], layer, path)
        else:
            values = _datasets(group[key])
            found.append(LayerWeights(layer.name, [(None, v) for v in values]))
    return found


def _datasets(group: h5py.Group) -> list[np.ndarray]:
    """Returns the values in a group: of a layer first, then of the layers in it."""
    own = group.get("vars", {})
    values = [np.array(own[key]) for key in sorted(own, key=int)]
    for key in sorted(set(group) - {"vars"}):
        values += _datasets(group[key])
    return values


def _texts(names: Iterable[str | bytes]) -> list[str]:
    return [n.decode() if isinstance(n, bytes) else str(n) for n in names]


def _last_part(name: str) -> str:
    return name.rsplit("/", 1)[-1].split(":")[0]


def _snake_case(name: str) -> str:
    words = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", words).lower()
