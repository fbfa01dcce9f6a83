"""How wrong a model is about blocks of rows that it did not see."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.optimize
from scipy import stats

from tfbbb.base.types import Config
from tfbbb.prediction.familiarity.beyond import compare_beyond, outside_ranges
from tfbbb.prediction.familiarity.familiarity import LEAST_ROWS, Familiarity

# So that rows remain to learn from, and to leave out beside the block.
LEAST_BLOCK_ROWS = 3 * LEAST_ROWS
_NUM_BLOCKS, _SHARE_OF_BLOCK = 8, 0.25
_LEAST_SHARE, _LARGEST_SHARE = 0.05, 0.6
# Of rows that are left out beside a block.
_SHARE_OF_OTHERS, _FEWEST_OTHERS = 0.1, 10
_MOST_ROWS, _MOST_ROWS_OF_BLOCK = 1000, 400
_TREES, _ROWS_PER_LEAF = 100, 2
_DEGREES_OF_FREEDOM = 6.0
# A column of this importance, in units of the mean of all, has the largest slope.
_IMPORTANT = 0.5
# Logarithms of amplitudes. The least is as good as 0.
_BOUNDS = (-6.0, 2.5)
_ZERO = 0.01
# The scale of normal errors is their median, divided by this.
_MEDIAN_OF_NORMAL = 0.6745


@dataclass(frozen=True)
class LeftOutRows:
    """Errors of rows in blocks that were left out, n rows of k targets.

    Attributes:
        errors: The errors, [n, k].
        scales: The scale of the errors of other rows left out, [n, k].
        deviations: The deviation of an extrapolation of amplitude 1, [n, k].
        outside: The variance of numbers outside their ranges for slopes of 1, [n, p].
        amplitudes: The amplitudes that suit them best, [k].
        slopes: The slopes, [p, k].
        num_blocks: Number of blocks.
    """

    errors: np.ndarray
    scales: np.ndarray
    deviations: np.ndarray
    outside: np.ndarray
    amplitudes: np.ndarray
    slopes: np.ndarray
    num_blocks: int

    def describe(self, most: np.ndarray) -> Config:
        """Returns the coverage of 90 % intervals without and with the amplitudes.

        Args:
            most: The largest deviation of each target, [k].
        """
        reach = stats.t.ppf(0.95, _DEGREES_OF_FREEDOM)
        deviations = np.minimum(self.amplitudes * self.deviations, most)
        variance = np.square(deviations) + self.outside @ np.square(self.slopes)
        widened = np.sqrt(np.square(self.scales) + variance)
        inside = np.abs(self.errors) <= reach * self.scales
        covered = np.abs(self.errors) <= reach * widened
        return {
            "blocks": self.num_blocks,
            "rows": len(self.errors),
            "coverage_90_without": float(inside.mean()),
            "coverage_90": float(covered.mean()),
        }


def fit_blocks(
    familiarity: Familiarity, locations: np.ndarray, seed: int
) -> LeftOutRows | None:
    """Leaves out blocks of rows, and finds amplitudes and slopes for their errors.

    Args:
        familiarity: The familiarity, with at least 60 representatives.
        locations: Their targets as locations, [n, k].
        seed: Seed of blocks and forests.
    """
    generator = np.random.default_rng(seed)
    rows = familiarity.representatives
    if len(rows) > _MOST_ROWS:
        chosen = generator.choice(len(rows), _MOST_ROWS, replace=False)
        rows, locations = rows[chosen], locations[chosen]
    found, importances = [], []
    for block in _blocks(rows, generator):
        left_out = np.flatnonzero(block)[:_MOST_ROWS_OF_BLOCK]
        rest = generator.permutation(np.flatnonzero(~block))
        num_others = max(_FEWEST_OTHERS, int(_SHARE_OF_OTHERS * len(rest)))
        others, known = rest[:num_others], rest[num_others:]
        if len(known) < LEAST_ROWS:
            continue
        places = np.concatenate([left_out, others])
        predicted, importance = _predicted(
            rows[known], locations[known], rows[places], seed
        )
        of_block, of_others = np.split(locations[places] - predicted, [len(left_out)])
        typical = np.median(np.abs(of_others), axis=0) / _MEDIAN_OF_NORMAL
        of_known = Familiarity(familiarity.encoding, rows[known], None)
        known_locations = locations[known].astype(np.float32)
        _, deviations = compare_beyond(of_known, known_locations, rows[left_out])
        outside = outside_ranges(of_known, rows[left_out])
        scales = np.broadcast_to(typical, of_block.shape)
        found.append((of_block, scales, deviations.numpy(), outside.numpy()))
        importances.append(importance)
    if not found:
        return None
    errors, all_scales, all_deviations, all_outside = (
        np.concatenate(parts) for parts in zip(*found, strict=True)
    )
    # Of columns, without those that say which numbers are missing.
    importance = np.mean(importances, axis=0)[: all_outside.shape[1]]
    slopes = _slopes(importance, locations, all_scales)
    by_target = zip(errors.T, all_scales.T, all_deviations.T, strict=True)
    amplitudes = np.array([_best_amplitude(*of_target) for of_target in by_target])
    return LeftOutRows(
        errors,
        all_scales,
        all_deviations,
        all_outside,
        amplitudes,
        slopes,
        num_blocks=len(found),
    )


def _slopes(
    importances: np.ndarray, locations: np.ndarray, scales: np.ndarray
) -> np.ndarray:
    """Returns the slope of each target by each column, [p, k].

    Args:
        importances: The importance of each column, [p]; their sum is at most 1.
        locations: The locations of targets, [m, k].
        scales: The scale of errors of rows among the others, [n, k].
    """
    unexplained = np.square(scales).mean(axis=0)
    explained = np.maximum(locations.var(axis=0) - unexplained, 0.0)
    relative = importances * len(importances) / _IMPORTANT
    return np.sqrt(np.outer(np.minimum(relative, 1.0), explained))


def _predicted(
    rows: np.ndarray, locations: np.ndarray, others: np.ndarray, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the locations of other rows, [n, k], and the importance of columns, [p].

    Forests predict them.
    """
    from sklearn.ensemble import ExtraTreesRegressor

    forest = ExtraTreesRegressor(
        _TREES, min_samples_leaf=_ROWS_PER_LEAF, random_state=seed
    )
    # One column as a vector, without a warning of scikit-learn.
    forest.fit(rows, locations if locations.shape[1] > 1 else locations[:, 0])
    predicted: np.ndarray = forest.predict(others).reshape(len(others), -1)
    return predicted, forest.feature_importances_


def _blocks(rows: np.ndarray, generator: np.random.Generator) -> Iterator[np.ndarray]:
    """Yields which rows are in a block: a quarter of the values of a column, [n].

    Equal values stay together. Columns are drawn at random.
    """
    varied = np.flatnonzero(np.ptp(rows, axis=0) > 0.0)
    found = 0
    for _ in range(4 * _NUM_BLOCKS if len(varied) else 0):
        column = rows[:, generator.choice(varied)]
        # In random order within equal values.
        order = np.lexsort([generator.random(len(column)), column])
        first = generator.uniform(0.0, 1.0 - _SHARE_OF_BLOCK) * len(order)
        last = first + _SHARE_OF_BLOCK * len(order)
        block = np.isin(column, column[order[int(first) : int(last)]])
        if _LEAST_SHARE < block.mean() < _LARGEST_SHARE:
            yield block
            found += 1
        if found == _NUM_BLOCKS:
            return


def _best_amplitude(
    errors: np.ndarray, scales: np.ndarray, deviations: np.ndarray
) -> float:
    """Returns the amplitude that gives the errors the greatest likelihood, or 0."""
    least = 1e-6 * (np.abs(errors).max() or 1.0)
    scales = np.maximum(scales, least)

    def loss(log_amplitude: float) -> float:
        widened = np.hypot(scales, np.exp(log_amplitude) * deviations)
        log_densities = stats.t.logpdf(errors / widened, _DEGREES_OF_FREEDOM)
        return float(np.mean(np.log(widened) - log_densities))

    found = scipy.optimize.minimize_scalar(loss, bounds=_BOUNDS, method="bounded")
    amplitude = float(np.exp(found.x))
    return amplitude if amplitude > _ZERO else 0.0
