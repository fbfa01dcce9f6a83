"""Pruning of the least important weights of a model."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from numbers import Real
from typing import Literal

import keras
import numpy as np

from tfbbb.base.layer_state import copy_state
from tfbbb.base.private_apis import sublayers
from tfbbb.bayes.variational_weight import VariationalWeight
from tfbbb.layers import VariationalLayer
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.model.compression import ranking as rankings
from tfbbb.model.compression.ranking import Ranking
from tfbbb.model.compression.removal import (
    check_removable,
    is_removed,
    remove,
)

Scope = Literal["global", "layer"]


def prune(
    model: keras.Model,
    share: float | None = None,
    *,
    threshold: float | None = None,
    ranking: str | Ranking = "signal_to_noise",
    scope: Scope = "global",
) -> keras.Model:
    """Returns a copy of a model without its least important weights.

    Blundell et al. (2015) remove up to 98 % of the weights by their signal-to-noise
    ratio with little loss of accuracy. A removed weight is exactly 0: its posterior has
    mean 0 and variance 0, so it adds neither to a prediction nor to its variance. The
    copy is a model of the same class and shapes, which predicts and can be saved and
    exported as before; `compact` turns it into a smaller network. The copy's `kl`
    counts removed weights as if their posterior were very narrow around 0;
    `description_length` counts them correctly. Further training changes removed weights
    again; `GradualPruning` removes weights while a model trains.

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
        share: Share of the weights to remove, biases included, from 0 to 1. The number
            of removed weights is rounded down.
        threshold: Instead of `share`: removes the weights whose importance is below
            this.
        ranking: `"signal_to_noise"`, `"density_ratio"` or a
            `tfbbb.compression.Ranking`.
        scope: `"global"` compares all weights of the model with each other, `"layer"`
            removes the same share of each layer.

    Raises:
        ValueError: `share` or `threshold` is out of range, both or neither are given,
            `ranking` or `scope` is unknown, or the model has no weights that can be
            removed one by one.
    """
    if (share is None) == (threshold is None):
        raise ValueError(
            "Pass either `share` or `threshold`. "
            f"Received: share={share}, threshold={threshold}"
        )
    copy = copied(model)
    chosen = rankings.get(ranking)
    if threshold is not None:
        _remove_below(copy, threshold, chosen)
    elif share is not None:
        removal = Removal(copy, chosen, scope)
        removal.remove(share)
    return copy


class Removal:
    """Removes the weights of a model in place, the least important first.

    Args:
        model: A built Keras model with variational layers.
        ranking: The importance of the weights.
        scope: `"global"` or `"layer"`.
    """

    def __init__(self, model: keras.Model, ranking: rankings.Ranking, scope: Scope):
        if scope not in ("global", "layer"):
            raise ValueError(
                f"`scope` must be 'global' or 'layer'. Received: scope={scope!r}"
            )
        layers = list(weights_of(model).values())
        groups = layers if scope == "layer" else [list(chain.from_iterable(layers))]
        self._groups = [(group, _order(group, ranking)) for group in groups]

    def remove(self, share: float) -> None:
        """Removes the least important `share` of the weights."""
        for weights, order in self._groups:
            which = np.zeros(len(order), bool)
            which[order[: math.floor(validate_share(share) * len(order))]] = True
            sizes = [np.size(is_removed(weight)) for weight in weights]
            for weight, mask in zip(
                weights, np.split(which, np.cumsum(sizes)[:-1]), strict=True
            ):
                remove(weight, mask.reshape(weight.mean.shape))


def share_removed(model: keras.Model) -> float:
    """Returns the share of the model's weights that are removed."""
    removed = [
        np.ravel(is_removed(weight))
        for weights in weights_of(model).values()
        for weight in weights
    ]
    return float(np.mean(np.concatenate(removed)))


def validate_share(share: float, name: str = "share") -> float:
    """Returns `share`, the argument `name`."""
    is_number = isinstance(share, Real) and not isinstance(share, bool)
    if not (is_number and 0.0 <= share <= 1.0):
        raise ValueError(
            f"`{name}` must be a number from 0 to 1. Received: {name}={share!r}"
        )
    return share


def validate_shares(shares: Sequence[float]) -> list[float]:
    """Returns the shares of a curve, ascending."""
    if not np.iterable(shares) or not len(shares):
        raise ValueError(
            "`shares` must be a list of at least one share. "
            f"Received: shares={shares!r}"
        )
    return sorted(validate_share(share) for share in shares)


def weights_of(model: keras.Model) -> dict[str, list[VariationalWeight]]:
    """Returns the weight tensors of each variational layer, by the layer's path."""
    if not isinstance(model, keras.Model):
        raise ValueError(f"`model` must be a Keras model. Received: model={model!r}")
    layers = [
        layer
        for layer in sublayers(model)
        if isinstance(layer, VariationalLayer) and layer.built
    ]
    if not layers:
        raise ValueError(
            "The model has no weights to remove: it has no variational layer, or is "
            f"not built yet. Received: model={model.name!r}"
        )
    return {layer.path: layer.variational_weights for layer in layers}


def copied(model: keras.Model) -> keras.Model:
    """Returns a compiled copy of a model whose weights can be removed."""
    for path, weights in weights_of(model).items():
        for weight in weights:
            check_removable(f"{path}/{weight.name}", weight)
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


def _order(weights: list[VariationalWeight], ranking: rankings.Ranking) -> np.ndarray:
    importance = [np.ravel(ranking.importance(weight)) for weight in weights]
    return np.argsort(np.concatenate(importance), kind="stable")


def _remove_below(
    model: keras.Model, threshold: float, ranking: rankings.Ranking
) -> None:
    if not (isinstance(threshold, Real) and threshold >= 0.0):
        raise ValueError(
            "`threshold` must be a number of at least 0. "
            f"Received: threshold={threshold!r}"
        )
    for weights in weights_of(model).values():
        for weight in weights:
            remove(weight, ranking.importance(weight) < threshold)
