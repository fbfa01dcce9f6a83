"""The further variance of predictions of rows beyond the training rows."""

import base64
import copy
import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

import numpy as np
import scipy.optimize
import tensorflow as tf
from scipy import stats

from tfbbb.base.types import ArrayLike, Config, Structure, Tensor
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.prediction.compiled import compiled_if_repeated, in_parts, traced
from tfbbb.prediction.familiarity import LEAST_ROWS, Familiarity

# Amplitudes, slopes and the trial of an `Extrapolation`, as blocks of rows say them.
Fitted = tuple[np.ndarray, np.ndarray | None, Config | None]
# The familiarity of rows, [n], and the further deviations of their locations, [n, k].
Compared = tuple[tf.Tensor, tf.Tensor]
# 90 % of normal numbers are within so many deviations.
_REACH = 1.645
# Of a factor by which 90 % intervals of rows with missing cells are wider.
_LARGEST_LOG = 5.0
# So that rows remain to learn from, and to leave out beside a block.
_LEAST_BLOCK_ROWS = 3 * LEAST_ROWS
_NUM_BLOCKS, _SHARE_OF_BLOCK = 8, 0.25
_LEAST_SHARE, _LARGEST_SHARE = 0.05, 0.6
# Of rows that are left out beside a block.
_SHARE_OF_OTHERS, _FEWEST_OTHERS = 0.1, 10
_MOST_ROWS, _MOST_ROWS_OF_BLOCK = 1000, 400
_TREES, _ROWS_PER_LEAF = 40, 2
_DEGREES_OF_FREEDOM = 6.0
# A column of this importance, in units of the mean of all, has the largest slope.
_IMPORTANT = 0.5
# Logarithms of amplitudes. The least is as good as 0.
_BOUNDS, _ZERO = (-6.0, 2.5), 0.01
# The scale of normal errors is their median, divided by this.
_MEDIAN_OF_NORMAL = 0.6745


class Extrapolation:
    """Widens the predictions of rows that lie beyond the training rows.

    The posterior of a network is nearly as sure between and beyond its training rows as
    among them. So the location f of the likelihood, an output of the network, gets a
    further normal variance, which counts as epistemic:

        Var[f(x)] = min((amplitude * spread(x))^2 * log(max(1, exceedance(x))), s^2)
                    + sum_j slope_j^2 (r_j(x) + r_j(x)^2) + |C m(x)|^2

    `spread` is the standard deviation of the targets of the 20 nearest training rows,
    as locations. `exceedance` says how far the row is beyond the training rows, by the
    gap of a number or the distance to its neighbours, in units of what 99 % of training
    rows do not exceed, each left out of the others: see `tfbbb.Familiarity`. Up to 1,
    the prediction stays as it is. `s` is the standard deviation of all targets, as a
    prior has it.

    `r_j` is how far number j lies outside the range of the training rows, in units of
    that range. There, the location may leave the prediction like a Brownian motion
    of unknown slope, with no bound.

    `m_j` is 1 if cell j of the row is missing, else 0. The network puts a mean in its
    place: over the training rows, this changes the location by c, and `C' C` is the
    mean of `c c'`, so that the variance is that of the changes of all missing cells.
    Missing cells do not count in `exceedance`. On the scale of `log y`, what they add
    has the quantile of 5 % that a normal number of this variance has.

    The amplitude says how much the target may change where no row tells. `fit` finds it
    on blocks of rows: a quarter of the rows in order of a column is left out, random
    forests (extremely randomised trees, Geurts et al. 2006) learn the rest, and the
    amplitude maximises the likelihood of their errors within the block, under Student t
    noise of the scale that their errors have on other rows left out. The same forests
    say how much of the variance of the targets the columns explain, and the importance
    I_j of each: `slope_j^2 = (explained variance) min(1, 2 p I_j)` for p columns.

    All rows of one draw share its standard normal number, times the deviation of each.
    The mean of a target does not change. Of a likelihood with a location on the scale
    of `log y`, a deviation of d there multiplies y by `1 + d / (1 + |d|)`, whose mean
    is 1: exp(d) would let few draws own the mean.

    Example:

    >>> import keras, numpy as np, tfbbb
    >>> x = np.random.default_rng(0).uniform(-1.0, 1.0, size=(300, 1))
    >>> y = np.sin(3.0 * x)
    >>> inputs = keras.Input((1,))
    >>> model = tfbbb.BayesianModel(inputs, tfbbb.layers.DenseVariational(1)(inputs))
    >>> model.likelihood.adapt(y)
    >>> rows = [[0.0], [5.0]]
    >>> before = model.predictive(rows).stddev
    >>> model.familiarity = tfbbb.Familiarity.fit(x)
    >>> model.extrapolation = tfbbb.Extrapolation.fit(
    ...     model.familiarity, model.likelihood, y
    ... )
    >>> (model.predictive(rows).stddev > 1.02 * before).ravel()
    array([False,  True])

    Args:
        familiarity: The familiarity of rows.
        locations: The targets of the rows that represent the training rows, as
            locations in the units of the network, [n, k].
        amplitudes: The amplitude of each target, [k].
        slopes: The slope of each target by each column outside its range, [p, k]; 0 by
            default.
        trial: What `fit` found on blocks, as plain JSON values; None without it.
        changes: C of each target, [r, p, k]; None if no cell may be missing.
        log_units: A unit of the locations on the scale of `log y`, [k]; 0 if they are
            on another.
    """

    def __init__(
        self,
        familiarity: Familiarity,
        locations: ArrayLike,
        amplitudes: ArrayLike,
        slopes: ArrayLike | None = None,
        trial: Config | None = None,
        changes: ArrayLike | None = None,
        log_units: ArrayLike = 0.0,
    ) -> None:
        self.familiarity = familiarity
        self.amplitudes = np.asarray(amplitudes, np.float32)
        width, num_targets = len(familiarity.encoding.is_text), len(self.amplitudes)
        if slopes is None:
            slopes = np.zeros((width, num_targets))
        self.slopes = np.asarray(slopes, np.float32)
        self.trial = trial
        self.changes = None if changes is None else np.asarray(changes, np.float32)
        self._reach = np.float32(_REACH) * np.asarray(log_units, np.float32)
        locations = np.asarray(locations, np.float32)
        self._locations = tf.constant(locations)
        self._most = locations.std(axis=0)
        for name, given, shape in (
            ("slopes", self.slopes, (width, num_targets)),
            ("locations", locations, (familiarity.num_rows, num_targets)),
        ):
            if given.shape != shape:
                raise ValueError(
                    f"`{name}` must have the shape {shape}: `slopes` a row for each "
                    "column of the training rows, `locations` one for each row of the "
                    "familiarity, and both a column for each amplitude. Received: "
                    f"shape {given.shape}"
                )

    @classmethod
    def fit(
        cls,
        familiarity: Familiarity,
        likelihood: Likelihood,
        y: ArrayLike,
        *,
        exposures: ArrayLike = None,
        changes: np.ndarray | None = None,
        seed: int = 0,
    ) -> Self | None:
        """Finds the amplitudes on blocks of the training rows.

        Args:
            familiarity: The familiarity, as its `fit` returned it for the training
                rows.
            likelihood: The likelihood of the targets, adapted to them.
            y: The targets of the training rows, in raw units.
            exposures: Their exposures, of a likelihood with `exposure=True`.
            changes: What missing cells change, as for the class; None if none may be.
            seed: Seed of blocks and forests.

        Returns:
            The extrapolation; None if the likelihood has no location (classes,
            mixtures, shares), or, without `changes`, if there are fewer than 60 rows,
            no column can be divided, or the columns explain nothing.

        Raises:
            ValueError: The familiarity was loaded from a file or copied with its model,
                or is of another number of rows.
        """
        if familiarity.places is None:
            raise ValueError(
                "A familiarity from a file or of a copied model does not know which "
                "training rows it has. Fit it again to them, `Familiarity.fit(x)`, and "
                f"set `model.familiarity`. Received: {familiarity!r}"
            )
        y = np.atleast_1d(np.asarray(y))
        if len(y) != familiarity.num_training_rows:
            raise ValueError(
                "`y` must have the targets of the rows that the familiarity was fitted "
                f"to. Received: {len(y)} targets for {familiarity.num_training_rows} "
                "rows"
            )
        if exposures is not None:
            exposures = np.asarray(exposures)[familiarity.places]
        locations = likelihood.locations(y[familiarity.places], exposures)
        if locations is None:
            return None
        fitted = _fit_blocks(familiarity, locations, seed)
        if fitted is None:
            if changes is None:
                return None
            fitted = np.zeros(locations.shape[1]), None, None
        amplitudes, slopes, trial = fitted
        units = likelihood.log_units(np.ones(locations.shape[1], np.float32))
        return cls(
            familiarity,
            locations,
            amplitudes,
            slopes,
            trial,
            changes,
            np.asarray(units),
        )

    def stddev(self, inputs: Structure) -> tf.Tensor:
        """Returns the further deviation of the locations of rows, float32 [n, k]."""
        return self.compare(inputs)[1]

    def compare(self, inputs: Structure) -> Compared:
        """Returns familiarity [n] and further deviation [n, k] of rows, float32."""
        values = self.familiarity.values(inputs)
        if tf.executing_eagerly():
            found, deviations = in_parts(self._compare_compiled, values)
            return found, deviations
        return self._compare(values)

    @functools.cached_property
    def _compare_compiled(self) -> Callable[[Tensor], list[tf.Tensor]]:
        spec = tf.TensorSpec([None, len(self.slopes)], tf.float64)
        return compiled_if_repeated(
            self._compare,
            lambda: traced(self._compare, spec),
            self.familiarity.numbers_compared,
        )

    def _compare(self, values: Tensor) -> Compared:
        familiarity = self.familiarity
        rows = familiarity.encoding.encode(values)
        places = familiarity.nearest(rows, LEAST_ROWS)
        found, exceedance = familiarity.compare(rows, places)
        missing = rows[:, len(self.slopes) :]
        if self.changes is not None:
            # A missing cell has the value of the nearest row, so it is not farther.
            nearest = tf.gather(familiarity.rows, places[:, 0])
            is_missing = tf.concat([missing, missing], axis=1) > 0.0
            filled = tf.where(is_missing, nearest, rows)
            near = familiarity.nearest(filled, LEAST_ROWS)
            _, exceedance = familiarity.compare(filled, near)
        deviation = _deviation_beyond(exceedance, tf.gather(self._locations, places))
        variance = tf.square(tf.minimum(self.amplitudes * deviation, self._most))
        outside = familiarity.outside_ranges(rows)
        variance += tf.matmul(outside, np.square(self.slopes))
        if self.changes is not None:
            variance += tf.square(self._deviation_of_missing(missing))
        return found, tf.sqrt(variance)

    def _deviation_of_missing(self, missing: Tensor) -> tf.Tensor:
        """Returns the deviation of rows of missing cells [n, p], [n, k]."""
        assert self.changes is not None
        number, width, num_targets = self.changes.shape
        by_cell = self.changes.swapaxes(0, 1).reshape(width, number * num_targets)
        changes = tf.reshape(tf.matmul(missing, by_cell), [-1, number, num_targets])
        deviation = tf.sqrt(tf.reduce_sum(tf.square(changes), axis=1))
        # A deviation of -d divides y by 1 + d, not by exp(d).
        reach = tf.minimum(self._reach * deviation, _LARGEST_LOG)
        factor = tf.math.divide_no_nan(tf.math.expm1(reach), self._reach)
        return tf.where(self._reach > 0.0, factor, deviation)

    def of_familiarity(self, familiarity: Familiarity) -> Self:
        """Returns a copy with the familiarity of a model, of the same rows."""
        copied = copy.copy(self)
        copied.familiarity = familiarity
        vars(copied).pop("_compare_compiled", None)
        return copied

    def get_config(self) -> Config:
        """Returns everything but the familiarity, which its model saves."""
        return {
            "locations": base64.b64encode(self._locations.numpy().tobytes()).decode(),
            "amplitudes": self.amplitudes.tolist(),
            "slopes": self.slopes.tolist(),
            "trial": self.trial,
            "changes": None if self.changes is None else self.changes.tolist(),
            "log_units": (self._reach / np.float32(_REACH)).tolist(),
        }

    @classmethod
    def from_config(cls, config: Mapping[str, Any], familiarity: Familiarity) -> Self:
        """Returns the extrapolation of a config, with the familiarity of its model."""
        values = np.frombuffer(base64.b64decode(config["locations"]), np.float32)
        locations = values.reshape(-1, len(config["amplitudes"]))
        return cls(familiarity, **{**config, "locations": locations})

    def __repr__(self) -> str:
        # Of each target.
        amplitudes, largest_slopes = (
            values.astype(np.float64).round(3).tolist()
            for values in (self.amplitudes, self.slopes.max(axis=0))
        )
        return f"<Extrapolation {amplitudes=}, {largest_slopes=}>"


def _deviation_beyond(exceedance: Tensor, locations: Tensor) -> tf.Tensor:
    """Returns `spread sqrt(log(max(1, exceedance)))`, [n, k].

    The spread is that of the locations of the nearest rows, [n, m, k].
    """
    growth = tf.sqrt(tf.math.log(tf.maximum(exceedance, 1.0)))
    return tf.math.reduce_std(locations, axis=1) * growth[:, tf.newaxis]


def _fit_blocks(
    familiarity: Familiarity, locations: np.ndarray, seed: int
) -> Fitted | None:
    """Leaves out blocks of rows, and finds amplitudes and slopes for their errors.

    It returns None if rows are too few, or if the columns explain nothing.
    """
    from sklearn.ensemble import ExtraTreesRegressor

    generator = np.random.default_rng(seed)
    rows, most = familiarity.rows.numpy(), np.std(locations, axis=0)
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
        forest = ExtraTreesRegressor(
            _TREES, min_samples_leaf=_ROWS_PER_LEAF, random_state=seed
        )
        # One column as a vector, without a warning of scikit-learn.
        forest.fit(
            rows[known],
            np.squeeze(locations[known], axis=-1)
            if locations.shape[1] == 1
            else locations[known],
        )
        predicted = forest.predict(rows[places]).reshape(len(places), -1)
        of_block, of_others = np.split(locations[places] - predicted, [len(left_out)])
        typical = np.median(np.abs(of_others), axis=0) / _MEDIAN_OF_NORMAL
        of_known = Familiarity(familiarity.encoding, rows[known])
        near = of_known.nearest(rows[left_out], LEAST_ROWS).numpy()
        _, exceedance = of_known.compare(rows[left_out], near)
        known_locations = locations[known].astype(np.float32)
        deviations = _deviation_beyond(exceedance, known_locations[near])
        outside = of_known.outside_ranges(rows[left_out])
        scales = np.broadcast_to(typical, of_block.shape)
        found.append((of_block, scales, deviations.numpy(), outside.numpy()))
        importances.append(forest.feature_importances_)
    if not found:
        return None
    errors, scales, deviations, outside = (
        np.concatenate(parts) for parts in zip(*found, strict=True)
    )
    # Of columns, without those that say which cells are missing.
    importance = np.mean(importances, axis=0)[: outside.shape[1]]
    explained = locations.var(axis=0) - np.square(scales).mean(axis=0)
    relative = np.minimum(importance * len(importance) / _IMPORTANT, 1.0)
    slopes = np.sqrt(np.outer(relative, np.maximum(explained, 0.0)))
    by_target = zip(errors.T, scales.T, deviations.T, strict=True)
    amplitudes = np.array([_best_amplitude(*of_target) for of_target in by_target])
    if not (amplitudes.any() or slopes.any()):
        return None
    deviations = np.minimum(amplitudes * deviations, most)
    variance = np.square(deviations) + outside @ np.square(slopes)
    widened = np.sqrt(np.square(scales) + variance)
    reach = stats.t.ppf(0.95, _DEGREES_OF_FREEDOM)
    trial = {
        "blocks": len(found),
        "coverage_90_without": float((np.abs(errors) <= reach * scales).mean()),
        "coverage_90": float((np.abs(errors) <= reach * widened).mean()),
    }
    return amplitudes, slopes, trial


def _blocks(rows: np.ndarray, generator: np.random.Generator) -> Iterator[np.ndarray]:
    """Yields which rows are in a block: a quarter of the values of a column, [n].

    Equal values stay together. Columns are drawn at random.
    """
    varied = np.flatnonzero(np.ptp(rows, axis=0) > 0.0)
    if len(rows) < _LEAST_BLOCK_ROWS:
        return
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
