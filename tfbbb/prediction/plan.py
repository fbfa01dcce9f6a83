"""The plan of a prediction: which layers draw pre-activations and which weights."""

from collections.abc import Sequence
from dataclasses import dataclass

import keras

from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.layers import DenseVariational
from tfbbb.prediction.structure import LayerInfo, Structure

METHODS = ("local", "weight", "linearised")

# Nanoseconds on two cores, of which only the ratios matter.
_PER_MULTIPLY_ADD = 0.0105
_PER_NORMAL = 4.5
_PER_WEIGHT_READ = 0.15


@dataclass(frozen=True)
class Plan:
    """Whether each layer of a model draws pre-activations or weights."""

    # Indices of the layers whose pre-activations are drawn; other weights are drawn.
    local: frozenset[int] = frozenset()
    # Indices of the last layers, one of each output, if their means are integrated
    # instead of drawn; and how many of their outputs are, from the first on.
    integrated: frozenset[int] = frozenset()
    num_integrated: int = 0
    # Whether dropout layers drop.
    dropout: bool = False
    # Whether weights are drawn of a network that is linear in them.
    linearised: bool = False

    def is_local(self, info: LayerInfo) -> bool:
        """Whether a layer's pre-activations are drawn."""
        return info.index in self.local

    def floats_per_draw(self, structure: Structure) -> int:
        """Returns how many numbers one draw is made of."""
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
    """
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
    lasts = _last_layer_infos(structure)
    if not lasts or len(likelihoods) != 1 or not likelihoods[0].integrates_location:
        return Plan(local, dropout=dropout)
    integrated = frozenset(info.index for info in lasts)
    return Plan(
        local=local | integrated,
        integrated=integrated,
        num_integrated=likelihoods[0].num_integrated(lasts[0].num_outputs),
        dropout=dropout,
    )


def own_method(model: keras.Model, structure: Structure) -> str:
    """Returns the method of a model's default predictions: "linearised" or "auto".

    "linearised" if its posterior is that of the linearised network, unless the network
    is linear in all weights that are drawn.
    """
    is_average = hasattr(model, "mixture_weights")
    parts = [Structure.of(x) for x in model.models] if is_average else [structure]
    found = set()
    for part in parts:
        if not part.is_linear:
            inference = getattr(part.model, "inference", None)
            is_linearised = inference is not None and inference.linearised
            found.add("linearised" if is_linearised else "auto")
    if len(found) > 1:
        raise ValueError(
            "Some models of the average have the posterior of a linearised network, "
            "as Laplace approximations have, and others do not, so no method suits "
            'all. Average models of one kind, or choose `method="weight"` or '
            f'"linearised". Received: model={model.name!r}'
        )
    return found.pop() if found else "auto"


def _last_layer_infos(structure: Structure) -> list[LayerInfo]:
    """Returns the last layers, if the linear outputs of each are a vector per row.

    If those of one output are not, or one layer is the last of two outputs, there are
    none.
    """
    found = []
    for info in structure.layer_infos:
        linear = getattr(info.layer, "activation", None) is keras.activations.linear
        vectors = isinstance(info.layer, DenseVariational)
        is_last = any(info.layer is last for last in structure.lasts)
        if is_last and info.is_local and linear and vectors:
            found.append(info)
    return found if len(found) == len(structure.lasts) else []
