"""A network without the units that do nothing."""

from itertools import pairwise

import keras
import numpy as np

from tfbbb.compression.chain import AffineMap, Between, Step, chain_of
from tfbbb.layer_state import copy_state
from tfbbb.layers.sharing import graph_of


def compact(model: keras.Model) -> keras.Sequential:
    """Returns the smallest deterministic Keras network of the same posterior mean.

    It has the weights' means, in `Dense` and convolutional layers of Keras, and the
    shapes of the units (channels) that still do something:

    - A unit all of whose incoming weights are 0 has the constant output
      `c = activation(bias)`. It is removed, and `c` times its outgoing weights goes to
      the bias of the next layer.
    - A unit all of whose outgoing weights are 0 is removed.

    Layers of which nothing is left keep one unit. On any input it computes what the
    model computes with every weight at its mean, up to rounding: for a `BayesianModel`
    that is what its likelihood takes, `model.likelihood.mean(compact(model)(x))` being
    in raw units. Units are removed only where that is exact: not before a softmax
    within the network, and not where the padding of a convolution would replace a
    constant other than 0. Inputs all stay.

    Example:

    >>> import keras, tfbbb
    >>> model = keras.Sequential([
    ...     keras.Input((3,)),
    ...     tfbbb.layers.DenseVariational(64, "relu"),
    ...     tfbbb.layers.DenseVariational(1),
    ... ])
    >>> pruned = tfbbb.compression.prune(model, 0.9)
    >>> smaller = tfbbb.compression.compact(pruned)
    >>> smaller.count_params() < model.layers[0].kernel.size
    True

    Args:
        model: A built Keras model, pruned or not, whose layers follow one another:
            dense and convolutional ones, variational or not, `Flatten`, pooling,
            activations and dropout, after `Normalization`, `Rescaling` and
            `Reshape`.

    Raises:
        ValueError: For a model that branches, holds other layers, several members or
            one input that is no tensor; the message names the layer.
    """
    if not (isinstance(model, keras.Model) and model.built):
        raise ValueError(
            f"`model` must be a Keras model that is built. Received: model={model!r}"
        )
    if graph_of(model) is not None and len(model.inputs) != 1:
        raise ValueError(
            "A network that is made smaller has one input. "
            f"Received: {len(model.inputs)} inputs"
        )
    steps = chain_of(model)
    _fold_constants(steps)
    _drop_unused(steps)
    return _network(steps, model.inputs[0])


def _fold_constants(steps: list[Step]) -> None:
    """Moves what units of constant output give to the next layer into its bias."""
    # One number per unit: its output, or not a number where that varies, as inputs do.
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
        # `Flatten` lays out all units of one place, then those of the next.
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
    """Removes the units that no later unit reads."""
    positions = [i for i, step in enumerate(steps) if isinstance(step, AffineMap)]
    for before, after in reversed(list(pairwise(positions))):
        giver, taker = steps[before], steps[after]
        between = steps[before + 1 : after]
        assert isinstance(giver, AffineMap)
        assert isinstance(taker, AffineMap)
        if not giver.units_are_independent or any(
            isinstance(step, Between) and step.activate is None for step in between
        ):
            continue
        units = giver.kernel.shape[-1]
        at_places = _any(taker.kernel, axis=-2).reshape(-1, units)
        read = np.asarray(np.any(at_places, axis=0))
        # No layer of Keras has no units.
        read[0] |= not read.any()
        places = taker.kernel.shape[-2] // units
        taker.kernel = taker.kernel[..., np.tile(read, places), :]
        giver.kernel, giver.bias = giver.kernel[..., read], giver.bias[read]


def _any(kernel: np.ndarray, axis: int) -> np.ndarray:
    """Returns for each index of `axis` whether any weight there is not 0."""
    others = tuple(i for i in range(kernel.ndim) if i != kernel.ndim + axis)
    return np.asarray(np.any(kernel != 0.0, axis=others))


def _network(steps: list[Step], source: keras.KerasTensor) -> keras.Sequential:
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
