"""Pruning of the least important weights of a model."""

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from numbers import Real

import keras
import numpy as np

from tfbbb.base.layer_state import copy_state
from tfbbb.bayes.variational_weight import VariationalWeight
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.model.layer_posterior import (
    has_independent_normals,
    signal_to_noise,
    variational_layers,
)

# The importance of each weight of a tensor, of its shape, at least 0.
Ranking = Callable[[VariationalWeight], np.ndarray]

# The variables of a removed weight. exp(-60)^2 is exactly 0 in single precision. Unlike
# log(0), -60 keeps gradients and divergences finite.
_REMOVED = {"mean": 0.0, "log_scale": -60.0}


def _density_ratio(weight: VariationalWeight) -> np.ndarray:
    """Returns `log q(mean) / q(0)` of each weight."""
    return 0.5 * signal_to_noise(weight) ** 2


RANKINGS: dict[str, Ranking] = {
    "density_ratio": _density_ratio,
    "signal_to_noise": signal_to_noise,
}


def prune(
    model: keras.Model,
    share: float | None = None,
    *,
    threshold: float | None = None,
    ranking: str | Ranking = "signal_to_noise",
) -> keras.Model:
    """Returns a copy of a model without its least important weights.

    Blundell et al. (2015) remove up to 98 % of the weights by their signal-to-noise
    ratio `|mean| / stddev` with little loss of accuracy. Graves (2011) removes the
    weights whose `q(0) / q(mean) = exp(-mean^2 / (2 stddev^2))` exceeds a threshold
    lambda: with `ranking="density_ratio"`, the importance is the logarithm of the
    inverse, `mean^2 / (2 stddev^2)` in nats, and `threshold` is `-log(lambda)`. This is
    half the square of the signal-to-noise ratio, so both have the same order.

    A removed weight is exactly 0: its posterior has mean 0 and variance 0, so it adds
    neither to a prediction nor to its variance. The copy is a model of the same class
    and shapes, which predicts and can be saved and exported as before. The copy's `kl`
    counts removed weights as if their posterior were very narrow around 0;
    `tfbbb.lab.evidence.description_length` counts them correctly. Further training
    changes removed weights again.

    Example:

    >>> import keras, tfbbb
    >>> model = keras.Sequential([
    ...     keras.Input((3,)),
    ...     tfbbb.layers.DenseVariational(4, "relu"),
    ...     tfbbb.layers.DenseVariational(1),
    ... ])
    >>> pruned = tfbbb.compression.prune(model, 0.5)
    >>> tfbbb.compression.share_removed(pruned)  # of 16 + 5 weights
    0.476190

    Args:
        model: A built Keras model with variational layers. A subclassed model needs a
            constructor that accepts its config, as for saving.
        share: Share of the weights of the model to remove, biases included, from 0 to
            1. The number of removed weights is rounded down.
        threshold: Instead of `share`: removes the weights whose importance is below
            this.
        ranking: `"signal_to_noise"`, `"density_ratio"`, or a function of a weight
            tensor of a layer that returns the importance of each of its weights, an
            array of the weight's shape (with members [members, *shape]).

    Raises:
        ValueError: `share` or `threshold` is out of range, both or neither are given,
            `ranking` is unknown, or the model has no weights that can be removed one by
            one.
    """
    if (share is None) == (threshold is None):
        raise ValueError(
            "Pass either `share` or `threshold`. "
            f"Received: share={share}, threshold={threshold}"
        )
    importance = ranking if callable(ranking) else _named(ranking)
    copy = _copied(model)
    weights = list(chain.from_iterable(weights_of(copy).values()))
    values = [importance(weight) for weight in weights]
    if share is not None:
        masks = _least(values, _validate_share(share))
    else:
        limit = _validate_threshold(threshold)
        masks = [value < limit for value in values]
    for weight, mask in zip(weights, masks, strict=True):
        _remove(weight, mask)
    return copy


def share_removed(model: keras.Model) -> float:
    """Returns the share of the model's weights that are removed."""
    weights = chain.from_iterable(weights_of(model).values())
    removed = [np.ravel(is_removed(weight)) for weight in weights]
    return float(np.mean(np.concatenate(removed)))


def weights_of(model: keras.Model) -> dict[str, list[VariationalWeight]]:
    """Returns the weight tensors of each variational layer, by the layer's path."""
    if not isinstance(model, keras.Model):
        raise ValueError(f"`model` must be a Keras model. Received: model={model!r}")
    layers = [layer for layer in variational_layers(model) if layer.built]
    if not layers:
        raise ValueError(
            "The model has no weights to remove: it has no variational layer, or is "
            f"not built yet. Received: model={model.name!r}"
        )
    return {layer.path: layer.variational_weights for layer in layers}


def is_removed(weight: VariationalWeight) -> np.ndarray:
    """Returns a mask of the weights with mean 0 and variance 0 under q."""
    return (np.asarray(weight.mean) == 0.0) & (np.asarray(weight.variance) == 0.0)


def _named(ranking: str) -> Ranking:
    if ranking not in RANKINGS:
        names = ", ".join(f"'{name}'" for name in RANKINGS)
        raise ValueError(
            f"`ranking` must be one of {names}, or a function of a weight tensor. "
            f"Received: ranking={ranking!r}"
        )
    return RANKINGS[ranking]


def _validate_threshold(threshold: float | None) -> float:
    if not (isinstance(threshold, Real) and threshold >= 0.0):
        raise ValueError(
            "`threshold` must be a number of at least 0. "
            f"Received: threshold={threshold!r}"
        )
    return float(threshold)


def _validate_share(share: float) -> float:
    is_number = isinstance(share, Real) and not isinstance(share, bool)
    if not (is_number and 0.0 <= share <= 1.0):
        raise ValueError(
            f"`share` must be a number from 0 to 1. Received: share={share!r}"
        )
    return share


def _copied(model: keras.Model) -> keras.Model:
    """Returns a compiled copy of a model whose weights can be removed."""
    for path, weights in weights_of(model).items():
        for weight in weights:
            if not has_independent_normals(weight):
                raise ValueError(
                    "Weights can be removed one by one only if each has its own mean "
                    "and variance: train with `posterior='mean_field_normal'`. "
                    f"Received: {path}/{weight.name} with "
                    f"posterior={weight.posterior!r}"
                )
    copy = type(model).from_config(model.get_config())
    if not copy.built:
        copy.build_from_config(model.get_build_config())
    copy_state(model, copy)
    if isinstance(copy, BayesianModel):
        # Recalibration and figures are of the original weights.
        copy.recalibration, copy.inference = None, model.inference
        if copy.inference is not None:
            copy.inference = replace(copy.inference, log_evidence=None, diagnostics={})
    if getattr(model, "compiled", False):
        copy.compile_from_config(model.get_compile_config())
    return copy


def _least(values: list[np.ndarray], share: float) -> list[np.ndarray]:
    """Returns masks of the least important `share` of the weights."""
    together = np.concatenate([np.ravel(value) for value in values])
    mask = np.zeros(len(together), bool)
    order = np.argsort(together, kind="stable")
    mask[order[: math.floor(share * len(order))]] = True
    parts = np.split(mask, np.cumsum([np.size(value) for value in values])[:-1])
    return [
        part.reshape(np.shape(value)) for part, value in zip(parts, values, strict=True)
    ]


def _remove(weight: VariationalWeight, which: np.ndarray) -> None:
    """Sets the weights of a mask of the mean's shape to exactly 0 under q."""
    for name, value in _REMOVED.items():
        variable = weight.variables[name]
        variable.assign(np.where(which, np.float32(value), variable.numpy()))
