"""Removal of the units that do not affect a network's output."""

from itertools import pairwise

import keras
import numpy as np

from tfbbb.base.layer_state import copy_state
from tfbbb.base.private_apis import graph_of
from tfbbb.lab.compression.chain import (
    AffineMap,
    Between,
    Step,
    build_chain,
)


def compact(model: keras.Model) -> keras.Sequential:
    """Returns the smallest deterministic Keras network of the same posterior mean.

    The network has `Dense` and convolutional layers of Keras with the means of the
    weights, without the units (channels) that do not affect its output:

    - A unit whose incoming weights are all 0 has the constant output
      `c = activation(bias)`. `compact` removes the unit and adds `c` times its outgoing
      weights to the bias of the next layer.
    - `compact` removes a unit whose outgoing weights are all 0.

    A layer without remaining units keeps one. For any input the network computes what
    the model computes with every weight at its mean, up to rounding. For a
    `BayesianModel` this is the output before the likelihood:
    `model.likelihood.mean(compact(model)(x))` is in raw units. A unit is removed only
    if that is exact: not before a softmax within the network, and not if the padding of
    a convolution would replace a constant other than 0. All inputs stay.

    Example:

    >>> import keras, tfbbb
    >>> model = keras.Sequential([
    ...     keras.Input((3,)),
    ...     tfbbb.layers.DenseVariational(64, "relu"),
    ...     tfbbb.layers.DenseVariational(1),
    ... ])
    >>> pruned = tfbbb.compression.prune(model, 0.9)
    >>> smaller = tfbbb.lab.compression.compact(pruned)
    >>> smaller.count_params() < model.layers[0].kernel.size
    True

    Args:
        model: A built Keras model without branches, pruned or not. Its layers may be
            dense and convolutional layers, variational or not, `Flatten`, pooling,
            activations and dropout, after `Normalization`, `Rescaling` and `Reshape`.

    Raises:
        ValueError: The model is not built, branches, or has other layers, several
            members or several inputs; the message names the layer.
    """
    if not (isinstance(model, keras.Model) and model.built):
        raise ValueError(
            f"`model` must be a built Keras model. Received: model={model!r}"
        )
    if graph_of(model) is not None and len(model.inputs) != 1:
        raise ValueError(
            "`compact` needs a model with one input. "
            f"Received: {len(model.inputs)} inputs"
        )
    steps = build_chain(model)
    _fold_constants(steps)
    _drop_unused(steps)
    return _build_network(steps, model.inputs[0])


def _fold_constants(steps: list[Step]) -> None:
    """Adds the contribution of units with constant output to the next bias."""
    # One number per unit: its constant output, or NaN if the output varies.
    maps = [(i, step) for i, step in enumerate(steps) if isinstance(step, AffineMap)]
    if not maps:
        return
    first, affine_map = maps[0]
    constants = np.full(affine_map.kernel.shape[-2], np.nan)
    for step in steps[first:]:
        if isinstance(step, Between):
            varying = np.full_like(constants, np.nan)
            constants = varying if step.activate is None else step.activate(constants)
            continue
        # `Flatten` concatenates the units of all places, place by place.
        constants = np.tile(constants, step.kernel.shape[-2] // len(constants))
        known = constants == 0.0 if step.sees_padding else ~np.isnan(constants)
        places = tuple(range(step.kernel.ndim - 2))
        step.bias += constants[known] @ step.kernel[..., known, :].sum(places)
        step.kernel[..., known, :] = 0.0
        constants = np.full(len(step.bias), np.nan)
        if step.units_are_independent:
            constant = ~_any(step.kernel, axis=-1)
            constants[constant] = step.activate(step.bias[constant])


def _drop_unused(steps: list[Step]) -> None:
    """Removes the units whose outgoing weights are all 0."""
    positions = [i for i, step in enumerate(steps) if isinstance(step, AffineMap)]
    for before, after in reversed(list(pairwise(positions))):
        source, reader = steps[before], steps[after]
        between = steps[before + 1 : after]
        assert isinstance(source, AffineMap)
        assert isinstance(reader, AffineMap)
        if not source.units_are_independent or any(
            isinstance(step, Between) and step.activate is None for step in between
        ):
            continue
        units = source.kernel.shape[-1]
        at_places = _any(reader.kernel, axis=-2).reshape(-1, units)
        used = np.asarray(np.any(at_places, axis=0))
        # A Keras layer needs at least one unit.
        used[0] |= not used.any()
        places = reader.kernel.shape[-2] // units
        reader.kernel = reader.kernel[..., np.tile(used, places), :]
        source.kernel, source.bias = source.kernel[..., used], source.bias[used]


def _any(kernel: np.ndarray, axis: int) -> np.ndarray:
    """Returns for each index of `axis` whether any weight there is not 0."""
    others = tuple(i for i in range(kernel.ndim) if i != kernel.ndim + axis)
    return np.asarray(np.any(kernel != 0.0, axis=others))


def _build_network(steps: list[Step], source: keras.KerasTensor) -> keras.Sequential:
    network = keras.Sequential([keras.Input(source.shape[1:], dtype=source.dtype)])
    for step in steps:
        if isinstance(step, AffineMap):
            layer, weights = step.smaller_layer()
            network.add(layer)
            layer.set_weights(weights)
        else:
            layer = type(step.layer).from_config(step.layer.get_config())
            network.add(layer)
            copy_state(step.layer, layer)
    return network
