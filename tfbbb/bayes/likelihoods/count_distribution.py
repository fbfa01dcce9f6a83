"""Poisson and negative binomial distributions, exact for any mean and concentration.

Both are one family: Poisson counts whose rate is gamma distributed with mean mu and
concentration r. The variance of a count is mu + mu^2 / r. `concentration=None` is the
limit for r to infinity, the Poisson distribution.

Of tensors, this module does not use TensorFlow's incomplete gamma and beta functions,
which have no correct digit for parameters above 10^6; SciPy's have all of them.
"""

from __future__ import annotations

from collections.abc import Callable

from tfbbb.base import array_ops as ops
from tfbbb.base.lazy import np
from tfbbb.base.types import Tensor
from tfbbb.bayes.posteriors.posterior import HALF_LOG_2PI

# exp(-36) is the precision of doubles.
_NEGLIGIBLE = 36.0
# In the worst tails, 44 nodes have a relative error of 1e-13, and 32 nodes 1e-10.
_TAIL_NODES = 44
_NODES_AT_ONCE = 11

Function = Callable[[Tensor], Tensor]


def log_mass(
    counts: Tensor,
    mean: Tensor,
    log_mean: Tensor,
    concentration: Tensor | None = None,
) -> Tensor:
    """Returns log p(counts), without differences of large log gamma functions.

    With Stirling's correction d(x) = log x! - log(sqrt(2 pi x) (x / e)^x), the log mass
    of y > 0 is the negative of a deviance D and small terms (Loader 2000):

        d(y + r) - d(y) - d(r) - log(2 pi y (1 + y / r)) / 2 - D,
        D = r log((r + mu) / (r + y)) + y log(y (r + mu) / (mu (r + y)))
    """
    positive = counts > 0.0
    y = ops.where(positive, counts, ops.ones_like(counts))
    log_odds = ops.log(y) - log_mean
    if concentration is None:
        none = -mean
        share = ops.ones_like(y)
    else:
        none = -concentration * ops.log1p(mean / concentration)
        share = concentration / (concentration + y)
        log_totals = _log_ratio(
            (mean - y) / (concentration + y),
            ops.log(concentration + mean) - ops.log(concentration + y),
        )
        log_odds += log_totals
    # If y / mu is far from 1, the ratio and its derivatives may overflow.
    near = ops.abs(y - mean) * share <= 0.5 * ops.maximum(mean, 1e-20)
    log_odds = _log_ratio((y - mean) / ops.where(near, mean, y) * share, log_odds, near)
    some = -y * log_odds - stirling_correction(y) - 0.5 * ops.log(y) - HALF_LOG_2PI
    if concentration is None:
        some += y - mean
    else:
        some += (
            stirling_correction(concentration + y)
            - stirling_correction(concentration)
            - 0.5 * ops.log1p(y / concentration)
            - concentration * log_totals
        )
    return ops.where(positive, some, none)


def cumulative(
    counts: Tensor,
    mean: Tensor,
    log_mean: Tensor,
    concentration: Tensor | None = None,
) -> Tensor:
    """Returns P(y <= counts) of counts >= 0, in float64, to about 1e-13.

    Its derivative by s = log mu is -g(s), the density of a log gamma or logistic beta
    variable:

        P(y <= n) = int_{log mu}^inf g(s) ds,  g(s) = p(n; s) (r + n) mu / (r + mu),

    and log g is concave. g falls on one side of log mu: the integral over that tail is
    computed by Gauss-Legendre quadrature, up to the point where g is negligible. The
    right tail falls like exp(-r s), too slowly for r < 1: there a recurrence gives it
    from the tail of r + 1.
    """
    if not ops.is_tensor(mean):
        return _cumulative_of_arrays(counts, mean, concentration)
    mass = ops.exp(log_mass(counts, mean, log_mean, concentration))
    left_rate = counts + 1.0
    if concentration is None:
        at_mean, added = mass * mean, 0.0
        slope, curvature = left_rate - mean, left_rate
        inverse_right_rate = ops.zeros_like(left_rate)
        log_fall = _poisson_fall(left_rate, mean)
    else:
        total = concentration + mean
        q, p = mean / total, concentration / total
        at_mean = mass * (concentration + counts) * q
        few = concentration < 1.0
        rise = (concentration + counts + 1.0) / concentration * p
        added = ops.where(few, at_mean / concentration, 0.0)
        at_mean *= ops.where(few, rise, 1.0)
        right_rate = ops.where(few, concentration + 1.0, concentration)
        both = right_rate + left_rate
        slope, curvature = left_rate - both * q, right_rate / both * left_rate
        inverse_right_rate = 1.0 / right_rate
        log_fall = _negative_binomial_fall(left_rate, right_rate, q, p)
    right = slope <= 0.0
    half = 0.5 * _NEGLIGIBLE * ops.where(right, inverse_right_rate, 1.0 / left_rate)
    length = half + ops.sqrt(ops.square(half) + 2.0 * _NEGLIGIBLE / curvature)
    length = ops.minimum(length, _NEGLIGIBLE / ops.maximum(ops.abs(slope), 1e-300))
    step = 0.5 * ops.where(right, length, -length)[..., ops.newaxis]

    def height(nodes: np.ndarray) -> Tensor:
        return ops.exp(log_fall(step * (nodes + 1.0)))

    nodes, weights = np.polynomial.legendre.leggauss(_TAIL_NODES)
    tail = 0.5 * length * at_mean * _sum(height, nodes, weights)
    return ops.clip_by_value(ops.where(right, tail, 1.0 - tail) + added, 0.0, 1.0)


def _cumulative_of_arrays(
    counts: np.ndarray, mean: np.ndarray, concentration: np.ndarray | None
) -> np.ndarray:
    """Returns the same by the incomplete functions of SciPy, which are exact."""
    from scipy import special

    if concentration is None:
        return special.gammaincc(counts + 1.0, mean)
    return special.betainc(
        concentration, counts + 1.0, concentration / (concentration + mean)
    )


def _poisson_fall(left_rate: Tensor, mean: Tensor) -> Function:
    left_rate, mean = left_rate[..., ops.newaxis], mean[..., ops.newaxis]
    return lambda t: left_rate * t - mean * ops.expm1(t)


def _negative_binomial_fall(
    left_rate: Tensor, right_rate: Tensor, q: Tensor, p: Tensor
) -> Function:
    both = (right_rate + left_rate)[..., ops.newaxis]
    # Two forms of one function: each cancels where the other does not.
    by_right = right_rate < left_rate
    rate = ops.where(by_right, -right_rate, left_rate)[..., ops.newaxis]
    part = ops.where(by_right, p, q)[..., ops.newaxis]
    sign = ops.sign(rate)
    return lambda t: rate * t - both * ops.log1p(part * ops.expm1(sign * t))


def _log_ratio(excess: Tensor, direct: Tensor, near: Tensor | None = None) -> Tensor:
    """Returns log(1 + excess): by `log1p` if near 0, else as given in `direct`."""
    if near is None:
        near = ops.abs(excess) <= 0.5
    return ops.where(near, ops.log1p(ops.where(near, excess, 0.0)), direct)


def _sum(height: Function, nodes: np.ndarray, weights: np.ndarray) -> Tensor:
    """Returns the weighted sum of heights over nodes, the last axis of heights.

    Evaluates a few nodes at a time, to balance memory and the number of calls.
    """
    parts = -(-len(nodes) // _NODES_AT_ONCE)
    return sum(
        [
            ops.reduce_sum(weight * height(some), axis=-1)
            for some, weight in zip(
                np.array_split(nodes, parts),
                np.array_split(weights, parts),
                strict=True,
            )
        ]
    )


# For larger x, the correction has a series that is exact in double precision.
_LARGE = 8.0


def stirling_correction(x: Tensor) -> Tensor:
    """Returns log G(x + 1) - log(sqrt(2 pi x) (x / e)^x), for x > 0."""
    large = x >= _LARGE
    few, many = ops.minimum(x, _LARGE), ops.maximum(x, _LARGE)
    direct = ops.lgamma(few + 1.0) - (few + 0.5) * ops.log(few) + few
    series = ops.log_gamma_correction(many)
    return ops.where(large, series, direct - HALF_LOG_2PI)
