"""The divergence of each weight, where the families are independent normals."""

from typing import TYPE_CHECKING

import numpy as np
import tensorflow as tf

from tfbbb.divergences import closed_form_of

if TYPE_CHECKING:
    from tfbbb.layers.variational_weight import VariationalWeight


def weightwise_divergence(weight: "VariationalWeight") -> np.ndarray | None:
    """Returns KL(q_i || p_i) of each weight in nats, where q and p are normals.

    A closed form gives only the sum over the weights. For `p_i = N(m_i, s_i^2)`,
    whatever its m and s are made of, the sum's derivatives in the means are

        slope_i = (mean_i - m_i) / s_i^2,   curvature_i = 1 / s_i^2

    from which, with `r_i = variance_i / s_i^2`,

        KL_i = (r_i + slope_i^2 / curvature_i - 1 - log r_i) / 2

    These add up to the closed form only where p is such a normal, and so tell it.

    Returns:
        An array of the weight's shape (with members [members, *shape]); None where the
        weights are not independent normals under both q and p.
    """
    closed_form = closed_form_of(weight)
    mean = weight.variables.get("mean")
    if closed_form is None or mean is None or not weight.posterior.factorised:
        return None
    with tf.GradientTape() as second:
        second.watch(mean.value)
        with tf.GradientTape() as first:
            first.watch(mean.value)
            total = tf.reduce_sum(closed_form(weight))
        slope = first.gradient(total, mean.value)
    curvature = None if slope is None else second.gradient(slope, mean.value)
    if curvature is None:
        return None
    slope, curvature, variance = (
        np.asarray(value, np.float64) for value in (slope, curvature, weight.variance)
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = variance * curvature
        divergence = 0.5 * (ratio + slope**2 / curvature - 1.0 - np.log(ratio))
    # The total is float32.
    adds_up = np.isclose(divergence.sum(), total, rtol=1e-3, atol=1e-5 * ratio.size)
    return divergence if adds_up else None
