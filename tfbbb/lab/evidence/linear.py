"""The exact evidence of linear models with normal noise."""

import math

import numpy as np

from tfbbb.base.numbers import positive_number
from tfbbb.base.types import ArrayLike


def linear_log_evidence(
    x: ArrayLike,
    y: ArrayLike,
    *,
    noise_scale: float,
    prior_covariance: ArrayLike = 1.0,
    prior_mean: ArrayLike = 0.0,
) -> float:
    """Returns log p(y) of a linear model with a normal prior, in closed form.

        y = X w + noise,    w ~ N(m, S),    noise ~ N(0, s^2 I)
        log p(y) = log N(y; X m, s^2 I + X S X^T)

    It is computed in float64 by a QR decomposition, so that a small noise costs no
    digits.

    Example:

    >>> import numpy as np, tfbbb
    >>> x = np.linspace(-1.0, 1.0, 20)
    >>> y = 1.0 - 2.0 * x + 0.1 * np.cos(40 * x)
    >>> [
    ...     round(
    ...         tfbbb.lab.evidence.linear_log_evidence(
    ...             x[:, None] ** np.arange(degree + 1), y, noise_scale=0.1
    ...         ),
    ...         2,
    ...     )
    ...     for degree in range(4)
    ... ]
    [-1455.11, 13.27, 10.72, 8.67]

    Args:
        x: Design matrix X, [n, d]; a bias is a column of ones.
        y: Targets, [n] or [n, k]; each of k targets has weights of its own.
        noise_scale: Standard deviation s of the noise, positive.
        prior_covariance: S: one variance for all weights, variances [d], or a
            symmetric, positive definite matrix [d, d].
        prior_mean: m: a number or [d].

    Returns:
        log p(y) in nats, summed over the targets.

    Raises:
        ValueError: The shapes do not fit each other, a number is not finite, or the
            covariance or the noise is not positive.
    """
    design, targets = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if targets.ndim == 1:
        targets = targets[:, np.newaxis]
    if design.ndim != 2 or targets.ndim != 2 or len(design) != len(targets):
        raise ValueError(
            "`x` must be a matrix [n, d], and `y` targets [n] or [n, k] of its rows. "
            f"Received: x of shape {design.shape}, y of shape {np.shape(y)}"
        )
    if not (np.isfinite(design).all() and np.isfinite(targets).all()):
        raise ValueError(
            "`x` and `y` must be finite numbers; drop other rows first. Received: "
            f"{(~np.isfinite(design)).sum()} values of x and "
            f"{(~np.isfinite(targets)).sum()} of y that are not"
        )
    scale = positive_number("noise_scale", noise_scale)
    rows, size = design.shape
    root = _root(prior_covariance, size)
    try:
        mean = np.broadcast_to(np.asarray(prior_mean, np.float64), (size,))
    except ValueError:
        raise ValueError(
            f"`prior_mean` must be a number or {size} numbers. "
            f"Received: prior_mean of shape {np.shape(prior_mean)}"
        ) from None
    # In units of the noise: residuals r = A z + e with z, e standard normal.
    residuals = (targets - (design @ mean)[:, np.newaxis]) / scale
    factor = design @ root / scale
    if size <= rows:
        # min_z |r - A z|^2 + |z|^2 is r^T (I + A A^T)^-1 r, and |R|^2 = |I + A^T A|.
        stacked = np.concatenate([factor, np.eye(size)])
        orthogonal, triangle = np.linalg.qr(stacked)
        extended = np.concatenate([residuals, np.zeros((size, residuals.shape[1]))])
        left = extended - orthogonal @ (orthogonal.T @ extended)
        squares = np.square(left).sum()
        half_log_determinant = np.log(np.abs(np.diag(triangle))).sum()
    else:
        lower = np.linalg.cholesky(np.eye(rows) + factor @ factor.T)
        squares = np.square(np.linalg.solve(lower, residuals)).sum()
        half_log_determinant = np.log(np.diag(lower)).sum()
    normalizer = half_log_determinant + rows * math.log(scale * math.sqrt(2 * math.pi))
    return float(-0.5 * squares - residuals.shape[1] * normalizer)


def _root(covariance: ArrayLike, size: int) -> np.ndarray:
    """Returns L of the covariance L L^T, [size, size]."""
    given = np.asarray(covariance, np.float64)
    message = (
        "`prior_covariance` must be a positive variance, "
        f"{size} of them, or a symmetric, positive definite matrix [{size}, {size}]. "
    )
    if given.ndim < 2 and given.shape in ((), (1,), (size,)):
        if not (np.isfinite(given).all() and (given > 0.0).all()):
            raise ValueError(f"{message}Received: prior_covariance={covariance!r}")
        return np.diag(np.sqrt(np.broadcast_to(given, (size,))))
    if given.shape != (size, size) or not np.allclose(given, given.T):
        raise ValueError(f"{message}Received: an array of shape {given.shape}")
    try:
        return np.linalg.cholesky(given)
    except np.linalg.LinAlgError:
        least = np.linalg.eigvalsh(given)[0]
        raise ValueError(
            f"{message}Received: a matrix whose least eigenvalue is {least:.3g}"
        ) from None
