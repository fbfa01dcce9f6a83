"""The plan of a prediction: which layers draw pre-activations and which weights."""

from collections.abc import Sequence
from dataclasses import dataclass

import keras

from tfbbb.layers import DenseVariational
from tfbbb.likelihoods import Likelihood
from tfbbb.prediction.structure import LayerInfo, Structure

METHODS = ("local", "weight", "linearised", "moments")

# Nanoseconds on two cores, of which only the ratios matter.
_PER_MULTIPLY_ADD = 0.0105
_PER_NORMAL = 4.5
_PER_WEIGHT_READ = 0.15


@dataclass(frozen=True)
class Plan:
    """Whether each layer of a model draws pre-activations or weights.

    Attributes:
        local: Indices of the layers whose pre-activations are drawn; the weights of
            all others are.
        integrated: Index of the last layer if its mean is integrated instead of drawn,
            or None.
        num_integrated: Number of the outputs of this layer, from the first on, that are
            integrated.
        dropout: Whether dropout layers drop.
        propagated: Whether nothing is drawn, and moments are propagated.
        linearised: Whether the network is replaced by one that is linear in its
            weights, whose weights are drawn.
    """

    local: frozenset[int] = frozenset()
    integrated: int | None = None
    num_integrated: int = 0
    dropout: bool = False
    propagated: bool = False
    linearised: bool = False

    def is_local(self, info: LayerInfo) -> bool:
        """Whether a layer's pre-activations are drawn."""
        return info.index in self.local

    def floats_per_draw(self, structure: Structure) -> int:
        """Returns how many numbers one draw is made of."""
        if self.propagated:
            return 0
        return sum(
            info.num_outputs if self.is_local(info) else info.num_weights
            for info in structure.layer_infos
        )


def plan_for(
    structure: Structure,
    method: str,
    num_rows: int,
    num_samples: int,
    max_floats: int,
    likelihoods: Sequence[Likelihood] = (),
    dropout: bool = False,
) -> Plan:
    """Returns the plan of a method; `"auto"` chooses the faster way for each layer.

    Drawing pre-activations costs two products per row and draw. Drawing weights costs
    one product, and reading every drawn weight. Drawn weights are kept between calls if
    they fit into memory; if not, drawing them costs time in every call.

    Args:
        structure: The model's.
        method: One of `METHODS`, or `"auto"`.
        num_rows: Number of rows.
        num_samples: Number of samples S.
        max_floats: How many numbers of drawn weights may be kept.
        likelihoods: The likelihoods of the outputs. If there is one output, its mean is
            integrated where the likelihood can and the last layer is linear.
        dropout: Whether dropout layers drop.
    """
    if method == "moments":
        return Plan(propagated=True)
    if method == "linearised":
        return Plan(linearised=True)
    exact = [info for info in structure.layer_infos if info.is_local]
    if method == "weight":
        return Plan(dropout=dropout)
    if method == "auto":
        many = [p for p in exact if not p.is_first]
        drawn = sum(p.num_weights for p in structure.layer_infos if p not in exact)
        kept = num_samples * (drawn + sum(p.num_weights for p in many)) <= max_floats
        per_weight = _PER_WEIGHT_READ if kept else _PER_NORMAL
        if num_rows * _PER_MULTIPLY_ADD > per_weight:
            exact = [info for info in exact if info.is_first]
    local = frozenset(info.index for info in exact)
    last = _last_layer_info(structure)
    if last is None or len(likelihoods) != 1 or not likelihoods[0].integrates_location:
        return Plan(local, dropout=dropout)
    return Plan(
        local=local | {last.index},
        integrated=last.index,
        num_integrated=last.num_outputs // likelihoods[0].num_outputs(1),
        dropout=dropout,
    )


def _last_layer_info(structure: Structure) -> LayerInfo | None:
    """Returns a last layer whose linear outputs are one vector for each row."""
    for info in structure.layer_infos:
        linear = getattr(info.layer, "activation", None) is keras.activations.linear
        vectors = isinstance(info.layer, DenseVariational)
        if info.layer is structure.last and info.is_local and linear and vectors:
            return info
    return None


def check_method(method: str) -> None:
    """Raises ValueError for an unknown method."""
    if method not in ("auto", *METHODS):
        names = ", ".join(f"'{name}'" for name in ("auto", *METHODS))
        raise ValueError(
            f"Unknown prediction method. Pass one of {names}. "
            f"Received: method={method!r}"
        )
