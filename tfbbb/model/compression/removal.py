"""The representation of removed weights in a layer."""

from typing import TYPE_CHECKING

import numpy as np

from tfbbb.model.compression.weightwise_divergence import has_independent_normals

if TYPE_CHECKING:
    from tfbbb.bayes.variational_weight import VariationalWeight

# The variables of a removed weight. exp(-60)^2 is exactly 0 in single precision. Unlike
# log(0), -60 keeps gradients and divergences finite.
REMOVED = {"mean": 0.0, "log_scale": -60.0}


def is_removed(weight: "VariationalWeight") -> np.ndarray:
    """Returns a mask of the weights with mean 0 and variance 0 under q."""
    return (np.asarray(weight.mean) == 0.0) & (np.asarray(weight.variance) == 0.0)


def check_removable(name: str, weight: "VariationalWeight") -> None:
    """Checks that the weights of a tensor can be removed one by one."""
    if not has_independent_normals(weight):
        raise ValueError(
            "Weights can be removed one by one only if each has its own mean and "
            "variance: train with `posterior='mean_field_normal'`. "
            f"Received: {name} with posterior={weight.posterior!r}"
        )


def remove(weight: "VariationalWeight", which: np.ndarray) -> None:
    """Sets the weights of a mask of the mean's shape to exactly 0 under q."""
    for name, value in REMOVED.items():
        variable = weight.variables[name]
        variable.assign(np.where(which, np.float32(value), variable.numpy()))
