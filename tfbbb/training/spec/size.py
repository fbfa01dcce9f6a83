"""How many numbers a network may have to learn."""

from collections.abc import Sequence

from tfbbb.families.posteriors import MAX_COVARIANCE
from tfbbb.training.spec.layers import DenseLayer

# With a gradient and two moments of Adam beside each, 320 MB.
MAX_PARAMETERS = 20_000_000


def check_size(layers: Sequence[DenseLayer], num_features: int, members: int) -> None:
    """Raises ValueError for more numbers to learn than there may be.

    Args:
        layers: The dense layers, complete, the outputs' included.
        num_features: Number of features of a row.
        members: Number of posteriors.
    """
    total, inputs = 0, num_features
    for layer in layers:
        posterior = layer.posterior
        assert posterior is not None
        kernel = (inputs, layer.units)
        size = posterior.covariance_size(kernel)
        if size > MAX_COVARIANCE:
            raise ValueError(
                f"the posterior '{posterior.name}' would need a covariance of {size} × "
                f"{size}, more than {MAX_COVARIANCE} × {MAX_COVARIANCE}; take fewer "
                "units or 'low_rank_normal'"
            )
        total += posterior.num_parameters(kernel)
        inputs = layer.units
    if total * members > MAX_PARAMETERS:
        raise ValueError(
            f"the posterior of this network has {total * members} parameters, more "
            f"than the {MAX_PARAMETERS} there may be; take fewer units, layers or "
            "members, or a smaller posterior"
        )
