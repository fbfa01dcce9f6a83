"""How many numbers a network may have to learn."""

from collections.abc import Sequence

from tfbbb.training.spec.layers import DenseLayer
from tfbbb.training.spec.part import NamedPart
from tfbbb.training.spec.posteriors import (
    LowRankNormalPosterior,
    MatrixNormalPosterior,
)

# With a gradient and two moments of Adam beside each, 320 MB.
MAX_PARAMETERS = 20_000_000
# The largest matrix whose Cholesky factor the posteriors take.
MAX_COVARIANCE = 4096


def check_size(layers: Sequence[DenseLayer], num_features: int, members: int) -> None:
    """Raises ValueError for more numbers to learn than there may be.

    Args:
        layers: The dense layers, complete, the outputs' included.
        num_features: Number of features of a row.
        members: Number of posteriors.
    """
    total, inputs = 0, num_features
    for layer in layers:
        assert layer.posterior is not None
        total += _parameters(layer.posterior, inputs, layer.units)
        inputs = layer.units
    if total * members > MAX_PARAMETERS:
        raise ValueError(
            f"the posterior of this network has {total * members} parameters, more "
            f"than the {MAX_PARAMETERS} there may be; take fewer units, layers or "
            "members, or a smaller posterior"
        )


def _parameters(posterior: NamedPart, inputs: int, units: int) -> int:
    weights = inputs * units
    if posterior.name == "full_covariance_normal":
        _check_covariance(posterior, weights)
        return weights * (weights + 3) // 2
    if isinstance(posterior, MatrixNormalPosterior):
        if posterior.covariance == "diagonal":
            return weights + inputs + units
        _check_covariance(posterior, max(inputs, units))
        return weights + (inputs * (inputs + 1) + units * (units + 1)) // 2
    if isinstance(posterior, LowRankNormalPosterior):
        return weights * (2 + posterior.rank)
    if posterior.name == "mean_field_normal":
        return 2 * weights
    return weights


def _check_covariance(posterior: NamedPart, size: int) -> None:
    if size > MAX_COVARIANCE:
        raise ValueError(
            f"the posterior '{posterior.name}' would need a covariance of {size} × "
            f"{size}, more than {MAX_COVARIANCE} × {MAX_COVARIANCE}; take fewer units "
            "or 'low_rank_normal'"
        )
