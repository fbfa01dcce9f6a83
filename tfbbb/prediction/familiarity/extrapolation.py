"""The further variance of predictions of rows beyond the training rows."""

import base64
import copy
import functools
from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
import tensorflow as tf

from tfbbb.base.types import ArrayLike, Config, Structure, Tensor
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.prediction.compiled import fast_call, in_parts, traced
from tfbbb.prediction.familiarity.beyond import compare_beyond, outside_ranges
from tfbbb.prediction.familiarity.familiarity import Familiarity, by_parts
from tfbbb.prediction.familiarity.left_out_blocks import LEAST_BLOCK_ROWS, fit_blocks

# The familiarity of rows, [n], and the further deviations of their locations, [n, k].
Compared = tuple[tf.Tensor, tf.Tensor]
# 90 % of normal numbers are within so many deviations.
_REACH = 1.645
# Of a factor by which 90 % intervals of rows with missing cells are wider.
_LARGEST_LOG = 5.0


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
        self._locations: Any = np.asarray(locations, np.float32)
        self._most = self._locations.std(axis=0)
        if self.slopes.shape != (width, num_targets):
            raise ValueError(
                "`slopes` must have a row for each column of the training rows and a "
                f"column for each amplitude. Received: shape {self.slopes.shape} for "
                f"{width} columns and {num_targets} amplitudes"
            )
        if self._locations.shape != (familiarity.num_rows, num_targets):
            raise ValueError(
                "`locations` must have a row for each of the familiarity and a column "
                f"for each amplitude. Received: shape {self._locations.shape} for "
                f"{familiarity.num_rows} rows and {num_targets} amplitudes"
            )

    @classmethod
    def fit(
        cls,
        familiarity: Familiarity,
        likelihood: Likelihood,
        y: ArrayLike,
        *,
        changes: np.ndarray | None = None,
        seed: int = 0,
    ) -> Self | None:
        """Finds the amplitudes on blocks of the training rows.

        Args:
            familiarity: The familiarity, as its `fit` returned it for the training
                rows.
            likelihood: The likelihood of the targets, adapted to them.
            y: The targets of the training rows, in raw units.
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
        locations = likelihood.locations(y[familiarity.places])
        if locations is None:
            return None
        found = None
        if familiarity.num_rows >= LEAST_BLOCK_ROWS:
            found = fit_blocks(familiarity, locations, seed)
        if found is None or not (found.amplitudes.any() or found.slopes.any()):
            if changes is None:
                return None
            amplitudes, slopes, trial = np.zeros(locations.shape[1]), None, None
        else:
            amplitudes, slopes = found.amplitudes, found.slopes
            trial = found.describe(most=np.std(locations, axis=0))
        units = likelihood.log_units(np.ones(locations.shape[1], np.float32))
        return cls(
            familiarity,
            locations,
            amplitudes,
            slopes,
            trial,
            changes,
            log_units=np.asarray(units),
        )

    def stddev(self, inputs: Structure) -> tf.Tensor:
        """Returns the further deviation of the locations of rows, float32 [n, k].

        Args:
            inputs: Inputs of the rows.
        """
        return self.compare(inputs)[1]

    def compare(self, inputs: Structure) -> Compared:
        """Returns familiarity [n] and further deviation [n, k] of rows, float32.

        Args:
            inputs: Inputs of the rows.
        """
        encoded = self._encode(inputs)
        if tf.executing_eagerly():
            found, deviations = in_parts(self._compare_compiled, encoded)
            return found, deviations
        return self._compare(encoded)

    def in_parts(self, inputs: Structure) -> Compared:
        """Returns the same within a graph, in bounded memory for any number of rows."""
        encoded = self._encode(inputs)

        def together(rows: Tensor) -> tf.Tensor:
            found, deviations = self._compare(rows)
            return tf.concat([found[:, tf.newaxis], deviations], axis=1)

        both = by_parts(together, encoded, [1 + len(self.amplitudes)])
        return both[:, 0], both[:, 1:]

    def _encode(self, inputs: Structure) -> tf.Tensor:
        """Returns rows as they are compared, and then which cells are missing."""
        return self.familiarity.encode(inputs, missing=self.changes is not None)

    @functools.cached_property
    def _compare_compiled(self) -> Callable[[Tensor], list[tf.Tensor]]:
        width = self.familiarity.representatives.shape[1]
        width += 0 if self.changes is None else self.changes.shape[1]
        spec = tf.TensorSpec([None, width], tf.float32)
        return fast_call(traced(self._compare, spec))

    def _compare(self, rows: Tensor) -> Compared:
        locations = tf.convert_to_tensor(self._locations)
        missing = None
        if self.changes is not None:
            width = self.changes.shape[1]
            rows, missing = rows[:, :-width], rows[:, -width:]
        found, deviation = compare_beyond(self.familiarity, locations, rows, missing)
        variance = tf.square(tf.minimum(self.amplitudes * deviation, self._most))
        outside = outside_ranges(self.familiarity, rows)
        variance += tf.matmul(outside, np.square(self.slopes))
        if missing is not None:
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

    def in_variables(self, familiarity: Familiarity) -> Self:
        """Returns a copy for functions to be saved.

        Args:
            familiarity: The familiarity as its `in_variables` returned it.
        """
        copied = self.of_familiarity(familiarity)
        copied._locations = tf.Variable(self._locations, trainable=False)
        return copied

    def get_config(self) -> Config:
        """Returns everything but the familiarity, which its model saves."""
        return {
            "locations": base64.b64encode(self._locations.tobytes()).decode(),
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
        # Earlier versions know of no changes.
        return cls(
            familiarity,
            locations,
            config["amplitudes"],
            config["slopes"],
            config["trial"],
            config.get("changes"),
            config.get("log_units", 0.0),
        )

    def __repr__(self) -> str:
        # Of each target.
        amplitudes, largest_slopes = (
            values.astype(np.float64).round(3).tolist()
            for values in (self.amplitudes, self.slopes.max(axis=0))
        )
        return f"<Extrapolation {amplitudes=}, {largest_slopes=}>"
