"""A normal posterior of all weights of some tensors, by its Cholesky factor."""

from collections.abc import Sequence

import numpy as np

from tfbbb.bayes.posteriors import JointNormal
from tfbbb.bayes.variational_weight import VariationalWeight


def set_scale_tril(
    weights: Sequence[VariationalWeight], scale_tril: np.ndarray
) -> None:
    """Sets the covariance `L L^T` of the weights of some tensors together.

    Args:
        weights: One weight whose posterior is `FullCovarianceNormal`, or several whose
            posteriors are `JointNormal`.
        scale_tril: L, lower triangular, [D, D], in the order of the weights.
    """
    first = 0
    for weight in weights:
        variables = weight.variables
        if isinstance(weight.posterior, JointNormal):
            variables["factor"].assign(scale_tril[first : first + weight.size])
            variables["first"].assign(float(first))
            first += weight.size
            continue
        scales = np.diagonal(scale_tril)
        variables["log_scale"].assign(np.log(scales))
        if len(scales) > 1:
            import tensorflow_probability as tfp

            lower = np.tril((scale_tril / scales[:, np.newaxis])[1:, :-1])
            correlations = tfp.math.fill_triangular_inverse(lower)
            variables["correlations"].assign(correlations)
