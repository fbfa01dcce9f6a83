"""The noise of a normal likelihood with the same noise for all rows."""

import numpy as np

from tfbbb.bayes.likelihoods import Likelihood, Normal
from tfbbb.bayes.likelihoods.regression import SMALLEST_NOISE


def check_normal(likelihood: Likelihood, method: str) -> None:
    """Raises ValueError unless the noise is normal and the same for all rows."""
    if (
        not isinstance(likelihood, Normal)
        or likelihood.heteroscedastic
        or likelihood.known_scale
        or likelihood.resolution is not None
    ):
        raise ValueError(
            f"{method} takes the likelihood `Normal()` or `Normal(scale=...)`, with "
            "the same noise for all rows and without `resolution`; use `fit` for "
            f"others. Received: likelihood={likelihood!r}"
        )


def noise_of(likelihood: Normal) -> np.ndarray:
    """Returns the noise in units of the targets' standard deviations, [k], float64."""
    if likelihood.scale is not None:
        scale = np.asarray(likelihood.target_scale, np.float64)
        return likelihood.scale / scale
    return np.logaddexp(0.0, np.asarray(likelihood.raw_noise, float)) + SMALLEST_NOISE


def set_noise(likelihood: Normal, noise: np.ndarray) -> None:
    """Sets the learned noise, in units of the targets' standard deviations, [k]."""
    softplus = np.maximum(noise - SMALLEST_NOISE, 1e-30)
    likelihood.raw_noise.assign(softplus + np.log(-np.expm1(-softplus)))
