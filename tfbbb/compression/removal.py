"""How a layer holds a weight that has been removed."""

from typing import TYPE_CHECKING

import numpy as np

from tfbbb.compression.weightwise_divergence import has_independent_normals

if TYPE_CHECKING:
    from tfbbb.variational_weight import VariationalWeight

# exp(-60)^2 is exactly 0 in single precision, while -60 itself leaves gradients and
# divergences finite, which log(0) would not.
_LOG_SCALE = -60.0


def is_removed(weight: "VariationalWeight") -> np.ndarray:
    """Returns which weights are exactly 0 under q: mean 0 and variance 0."""
    return (np.asarray(weight.mean) == 0.0) & (np.asarray(weight.variance) == 0.0)


def check_removable(name: str, weight: "VariationalWeight") -> None:
    """Refuses a weight tensor whose weights cannot be removed one by one.

    Raises:
        ValueError: Where q is not a product of normals.
    """
    if not has_independent_normals(weight):
        raise ValueError(
            "Weights can be removed one by one only where each has a mean and a "
            "variance of its own: train with `posterior='mean_field_normal'`. "
            f"Received: {name} with posterior={weight.posterior!r}"
        )


def remove(weight: "VariationalWeight", which: np.ndarray) -> None:
    """Makes the weights `which`, a mask of the mean's shape, exactly 0 under q."""
    for name, value in (("mean", 0.0), ("log_scale", _LOG_SCALE)):
        variable = weight.variables[name]
        variable.assign(np.where(which, np.float32(value), variable.numpy()))
