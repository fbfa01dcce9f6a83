"""Coverage of 90 % intervals over any 500 rows of feedback while the rows drift.

    tfbbb benchmark drifts [--methods version,adaptive,dtaci]

A Bayesian linear model predicts 3000 rows of each of six streams, as its version of
before the drift does (`version`), with intervals that follow what came true
(`adaptive`), and with those of Gibbs and Candes (2024) to the level (`dtaci`).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from program import add_names_option, argument_parser, run
from records import RecordFile
from timing import markdown_table

from tfbbb.lab.adaptive_intervals import (
    LEVELS,
    AdaptiveIntervals,
    adapt_intervals,
    half_lengths,
    interval_scores,
)

NUM_ROWS, WINDOW, SEEDS = 3000, 500, 5
_LEVEL = 0.9
_TRAIN, _FEATURES, _NOISE = 400, 3, 0.5
_START = NUM_ROWS // 3
# Targets of the rows, what drifts, and the mean and standard deviation of predictions.
Stream = tuple[np.ndarray, np.ndarray, np.ndarray]
# From the row's place and noise of standard deviation 1 to the noise that comes, in the
# standard deviations of the noise of the training.
Drift = Callable[[np.ndarray, np.ndarray], np.ndarray]

DRIFTS: Mapping[str, Drift] = {
    "none": lambda place, noise: noise,
    "level": lambda place, noise: noise + 2.0 * (place >= _START),
    "scale": lambda place, noise: noise * np.where(place >= _START, 2.5, 1.0),
    "slow": lambda place, noise: (
        noise * (1.0 + 1.5 * place / NUM_ROWS) + 3.0 * place / NUM_ROWS
    ),
    # It comes, and goes again.
    "sudden": lambda place, noise: np.where(
        (place >= _START) & (place < 2 * _START), 2.0 * noise + 2.0, noise
    ),
    "seasonal": lambda place, noise: (
        noise * (1.0 + 0.5 * np.sin(2.0 * np.pi * place / 1000.0))
        + 1.5 * np.sin(2.0 * np.pi * place / 500.0)
    ),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures the streams, and prints the table of coverages."""
    parser = argument_parser(__doc__)
    add_names_option(parser, "methods", METHODS)
    options = parser.parse_args(arguments)
    run(__file__, options, lambda found: measure(found, options), report)


def measure(measured: RecordFile, options: Any) -> None:
    """Adds the records that the file lacks."""
    for name in DRIFTS:
        for seed in range(1 if options.smoke else SEEDS):
            for method in options.methods:
                key = {"drift": name, "method": method, "split": seed}
                measured.measure(key, _figures(name, method, seed), seed=seed)


def stream(name: str, seed: int) -> Stream:
    """Returns the rows of a drift, with the predictions of a model from before it.

    The weights of a linear model have the prior N(0, 1), and the noise is known, so the
    posterior and the predictive normals are exact.
    """
    generator = np.random.default_rng(seed)
    weights = generator.normal(size=_FEATURES)
    x, more = (generator.normal(size=(n, _FEATURES)) for n in (_TRAIN, NUM_ROWS))
    y = x @ weights + _NOISE * generator.normal(size=_TRAIN)
    covariance = np.linalg.inv(np.eye(_FEATURES) + x.T @ x / _NOISE**2)
    mean = covariance @ x.T @ y / _NOISE**2
    variance = np.einsum("ni,ij,nj->n", more, covariance, more) + _NOISE**2
    noise = DRIFTS[name](np.arange(NUM_ROWS), generator.normal(size=NUM_ROWS))
    return more @ weights + _NOISE * noise, more @ mean, np.sqrt(variance)


def version(targets: np.ndarray, mean: np.ndarray, stddev: np.ndarray) -> np.ndarray:
    """Returns the intervals of the model alone, [rows, 2]."""
    del targets
    reach = _quantile(0.5 + _LEVEL / 2.0) * stddev
    return np.stack([mean - reach, mean + reach], axis=1)


def adaptive(targets: np.ndarray, mean: np.ndarray, stddev: np.ndarray) -> np.ndarray:
    """Returns intervals that are adapted after each row, [rows, 2]."""
    reach = np.array([_quantile(0.5 + level / 2.0) for level in LEVELS])
    lower = mean[:, np.newaxis, np.newaxis] - np.outer(stddev, reach)[..., np.newaxis]
    upper = 2.0 * mean[:, np.newaxis, np.newaxis] - lower
    scores = interval_scores(targets[:, np.newaxis], lower, upper, discrete=False)
    halves = half_lengths(lower, upper, discrete=False)
    ends, found, place = AdaptiveIntervals.start(), [], LEVELS.index(_LEVEL)
    for row in range(len(targets)):
        below, above = (bound[row : row + 1, [place]] for bound in (lower, upper))
        adapted = adapt_intervals(
            below,
            above,
            ends.at([_LEVEL]),
            [_LEVEL],
            discrete=False,
            widest=ends.widest_at([_LEVEL]),
        )
        found.append([bound.item() for bound in adapted])
        ends = ends.update(scores[row : row + 1], halves[row : row + 1])
    return np.array(found)


def dtaci(targets: np.ndarray, mean: np.ndarray, stddev: np.ndarray) -> np.ndarray:
    """Returns intervals of the level that DtACI adapts, [rows, 2].

    Algorithm 1 of Gibbs and Candes (2024), with their step sizes, for windows of 500
    rows. A level of 1 or more has an infinite interval.
    """
    alpha, rows = 1.0 - _LEVEL, float(WINDOW)
    steps = 0.001 * 2.0 ** np.arange(8)
    spread = (1.0 - alpha) ** 2 * alpha**3 + alpha**2 * (1.0 - alpha) ** 3
    eta = math.sqrt(3.0 / rows * (math.log(len(steps) * rows) + 2.0) / spread)
    levels, weights = np.full(len(steps), alpha), np.full(len(steps), 1 / len(steps))
    found = []
    for y, centre, scale in zip(targets, mean, stddev, strict=True):
        level = float(weights @ levels)
        reach = scale * (
            math.inf if level <= 0.0 else _quantile(1.0 - min(level, 1.0) / 2.0)
        )
        found.append([centre - reach, centre + reach])
        # The largest miscoverage whose interval holds y.
        beta = math.erfc(abs(y - centre) / scale / math.sqrt(2.0))
        losses = alpha * (beta - levels) - np.minimum(0.0, beta - levels)
        weights = weights * np.exp(-eta * losses)
        weights = weights / weights.sum()
        share = 1.0 / (2.0 * rows)
        weights = (1.0 - share) * weights + share / len(steps)
        levels = levels + steps * (alpha - (beta < levels))
    return np.array(found)


METHODS = {"version": version, "adaptive": adaptive, "dtaci": dtaci}


def _figures(name: str, method: str, seed: int) -> Callable[[], dict[str, Any]]:
    def figures() -> dict[str, Any]:
        targets, mean, stddev = stream(name, seed)
        lower, upper = METHODS[method](targets, mean, stddev).T
        before = version(targets, mean, stddev)
        covered = (lower <= targets) & (targets <= upper)
        ratio = (upper - lower) / (before[:, 1] - before[:, 0])
        sums = np.concatenate([[0], np.cumsum(covered)])
        windows = (sums[WINDOW:] - sums[:-WINDOW]) / WINDOW
        finite = np.isfinite(ratio)
        return {
            "coverage": float(covered.mean()),
            "least": float(windows.min()),
            "greatest": float(windows.max()),
            "width": float(ratio[finite].mean()),
            "infinite": float(1.0 - finite.mean()),
        }

    return figures


def report(measured: RecordFile) -> str:
    """Returns the coverages by drift and method, and the widths."""
    rows = []
    for name in DRIFTS:
        cells = []
        for method in METHODS:
            found = measured.select(drift=name, method=method)
            if found:
                least = 100 * min(record["least"] for record in found)
                greatest = 100 * max(record["greatest"] for record in found)
                width = np.mean([record["width"] for record in found])
                infinite = 100 * np.mean([record["infinite"] for record in found])
                cells.append(
                    f"{least:.1f}–{greatest:.1f} ({width:.2f}, {infinite:.1f} %)"
                )
        rows.append([name, *cells])
    table = markdown_table(["drift", *METHODS], rows)
    return (
        f"{table}\n\nThe least and the greatest coverage of any {WINDOW} rows, the "
        "worst of five seeds; the width over that of the version, and the share of "
        "intervals that are infinite."
    )


def _quantile(level: float) -> float:
    """Returns a quantile of the standard normal distribution."""
    from scipy.special import ndtri

    return float(ndtri(level))


if __name__ == "__main__":
    main()
