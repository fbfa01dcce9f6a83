"""The moments of the targets of neighbours in a random forest."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse
from scipy import special

# Of squares that may be 0.
TINY = 1e-300
_FOLDS, _TREES, _ROWS_PER_LEAF, _MOST_FEATURES_PER_SPLIT = 3, 50, 5, 30
# Of targets in standard units.
_LEAST_VARIANCE = 1e-8


@dataclass(frozen=True)
class Rows:
    """Targets [n] that were left out, with the moments of their neighbours' targets.

    A neighbour is a training row of a random forest in the same leaf of one of its
    trees (Meinshausen 2006); the forest did not see these targets. `share` is the sum
    of the squared weights of the neighbours, and `average` the mean of a target of
    which nothing is known, [n]. Of counts with exposures, both are rates times these.

    Some targets, the `masses`, have a probability of their own: of those of the
    neighbours, [n, masses]; then `inside` has the moments of the other neighbours.
    """

    targets: np.ndarray
    mean: np.ndarray
    variance: np.ndarray
    log_mean: np.ndarray
    log_variance: np.ndarray
    share: np.ndarray
    resolution: float | None
    average: np.ndarray
    masses: tuple[float, ...] = ()
    probabilities: np.ndarray | None = None
    inside: "Rows | None" = None


def with_neighbours(
    features: np.ndarray,
    targets: np.ndarray,
    resolution: float | None,
    seed: int,
    exposures: np.ndarray | None = None,
    masses: tuple[float, ...] = (),
) -> Rows:
    """Returns rows with the moments of neighbours among the rows of other folds."""
    # scikit-learn takes a second to import.
    from sklearn.ensemble import RandomForestRegressor

    size = np.ones(len(targets)) if exposures is None else exposures
    scores = normal_scores(targets / size)
    is_mass = targets[:, np.newaxis] == np.array(masses)
    logs = np.log(np.where(targets > 0.0, targets, 1.0))
    every = _Columns.of(targets, logs, np.ones(len(targets), bool))
    inside = _Columns.of(targets, logs, ~is_mass.any(axis=1))
    parts = [every.powers, inside.powers, is_mass, size[:, np.newaxis]]
    columns = np.concatenate(parts, axis=1)
    averages, share = np.empty_like(columns), np.empty(len(columns))
    folds = np.random.default_rng(seed).permutation(len(columns)) % _FOLDS
    for fold in range(_FOLDS):
        train, left_out = folds != fold, folds == fold
        forest = RandomForestRegressor(
            _TREES,
            min_samples_leaf=_ROWS_PER_LEAF,
            max_features=min(features.shape[1], _MOST_FEATURES_PER_SPLIT),
            random_state=seed,
        ).fit(features[train], scores[train], size[train])
        weights = _neighbour_weights(
            forest.apply(features[left_out]), forest.apply(features[train])
        )
        averages[left_out] = weights @ columns[train]
        share[left_out] = np.asarray(weights.power(2).sum(axis=1)).ravel()
    of_all, of_inside, probabilities, of_size = np.split(averages, [4, 8, -1], axis=1)
    moments = every.moments(of_all, share)
    if exposures is not None:
        moments["mean"] *= size / of_size[:, 0]
    average = targets.sum() / size.sum() * size
    of_rows: dict[str, Any] = {"resolution": resolution, "average": average}
    rows = Rows(targets, share=share, **moments, **of_rows)
    if not masses:
        return rows
    # Neighbours of which hardly any is inside say as little as a row more would.
    weight = 1.0 - probabilities.sum(axis=1) + share
    of_inside[:, 2:] += share[:, np.newaxis]
    of_inside, share = of_inside / weight[:, np.newaxis], share / weight
    moments = inside.moments(of_inside, share)
    others = Rows(targets, share=share, **moments, **of_rows)
    return replace(rows, masses=masses, probabilities=probabilities, inside=others)


@dataclass(frozen=True)
class _Columns:
    """Targets and their logs in units of some rows, and squares; else 0, [n, 4]."""

    powers: np.ndarray
    shift: np.ndarray
    scale: np.ndarray

    @classmethod
    def of(cls, targets: np.ndarray, logs: np.ndarray, rows: np.ndarray) -> "_Columns":
        values = np.stack([targets, logs], axis=1)
        shift = values[rows].mean(axis=0)
        scale = values[rows].std(axis=0) + TINY
        units = np.where(rows[:, np.newaxis], (values - shift) / scale, 0.0)
        return cls(np.append(units, np.square(units), axis=1), shift, scale)

    def moments(self, averages: np.ndarray, share: np.ndarray) -> dict[str, Any]:
        """Returns the moments of rows, [n] each, by the names of `Rows`."""
        first, second = averages[:, :2], averages[:, 2:]
        variance = (second - np.square(first)) / (1.0 - share[:, np.newaxis])
        mean = self.shift + self.scale * first
        variance = np.square(self.scale) * np.maximum(variance, _LEAST_VARIANCE)
        names = ("mean", "variance", "log_mean", "log_variance")
        both = (mean[:, 0], variance[:, 0], mean[:, 1], variance[:, 1])
        return dict(zip(names, both, strict=True))


def normal_scores(values: np.ndarray) -> np.ndarray:
    """Returns normal quantiles at the mean ranks of values, [n]."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - 0.5 * (counts - 1)
    return special.ndtri(ranks[places] / (len(values) + 1.0))


def _neighbour_weights(of_rows: np.ndarray, of_others: np.ndarray) -> Any:
    """Returns the weight of each of m other rows for each of n rows, sparse [n, m]."""
    from sklearn.preprocessing import OneHotEncoder

    leaves = OneHotEncoder().fit(of_others)
    others = leaves.transform(of_others)
    sizes = np.asarray(others.sum(axis=0)).ravel()
    per_leaf = scipy.sparse.diags_array(1.0 / (of_rows.shape[1] * sizes))
    return leaves.transform(of_rows) @ per_leaf @ others.T
