"""Scores with a number for each row, and the table of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tensorflow as tf

from tfbbb.base.numbers import positive_integer
from tfbbb.base.types import ArrayLike
from tfbbb.prediction.levels import checked_level, checked_levels
from tfbbb.prediction.result import Predictive
from tfbbb.prediction.target_scores import (
    binned_confidences,
    brier_of_targets,
    cdf_step,
    crps_of_targets,
    has_steps,
    in_intervals,
)
from tfbbb.scores.metrics.arguments import with_arguments
from tfbbb.scores.metrics.calibration import LEVELS
from tfbbb.scores.metrics.targets import Scored, checked_targets


@dataclass(frozen=True)
class RowScore:
    """How a function and a Keras metric compute the same score.

    Attributes:
        rows: From prediction, targets and options, one or several numbers for each
            row, place or target.
        scored: The predictions for which the score is defined.
        finish: From the mean of these numbers, the score.
        options: The function that checks each option, of None its default.
        shape: From the options, the shape of the numbers of one target.
        is_joint: Whether the places of a row have one score together.
    """

    rows: Callable[..., Any]
    scored: Scored
    finish: Callable[[Any], Any] = tf.identity
    options: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)
    shape: Callable[..., tuple[int, ...]] = lambda **options: ()
    is_joint: bool = False

    def checked(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Returns valid options, with defaults for those that are not given."""
        unknown = sorted(options.keys() - self.options.keys())
        if unknown:
            raise ValueError(
                f"The options of this score are {sorted(self.options)}. "
                f"Received: {unknown}"
            )
        return {name: check(options.get(name)) for name, check in self.options.items()}


def _likelihoods(prediction: Predictive, targets: ArrayLike) -> tf.Tensor:
    return -summed_over_places(tf.convert_to_tensor(prediction.log_prob(targets)))


def summed_over_places(values: tf.Tensor) -> tf.Tensor:
    """Returns the sums over all axes but the first, [rows]."""
    return tf.reduce_sum(values, axis=list(range(1, len(values.shape))))


def _squared_errors(prediction: Predictive, targets: ArrayLike) -> tf.Tensor:
    return tf.square(tf.cast(prediction.mean, tf.float64) - targets)


def _covered(prediction: Predictive, targets: ArrayLike, level: float) -> tf.Tensor:
    return tf.cast(in_intervals(prediction, targets, [level])[:, 0], tf.float64)


def _widths(prediction: Predictive, _: ArrayLike, level: float) -> tf.Tensor:
    if not getattr(prediction, "central_intervals", True):
        # Conformal intervals do not lie between quantiles.
        lower, upper = prediction.interval(level)
        return tf.cast(upper - lower, tf.float64)
    ends = prediction.quantile([0.5 - level / 2.0, 0.5 + level / 2.0])
    return tf.cast(ends[:, 1] - ends[:, 0], tf.float64)


def _excess_below_levels(
    prediction: Predictive, targets: ArrayLike, levels: list[float]
) -> tf.Tensor:
    """Returns 1 for targets below a quantile, less its level, [rows, ..., k, Q].

    Of the step of F at an integer, the share below the level counts.
    """
    below, up_to = (part[..., tf.newaxis] for part in cdf_step(prediction, targets))
    level = tf.constant(levels, tf.float64)
    if has_steps(prediction):
        share = tf.math.divide_no_nan(level - below, up_to - below)
        share = tf.where(level >= up_to, tf.ones_like(share), share)
        return tf.clip_by_value(share, 0.0, 1.0) - level
    return tf.cast(up_to <= level, tf.float64) - level


def _excess_in_bins(prediction: Predictive, targets: ArrayLike, bins: int) -> tf.Tensor:
    """Returns 1 for right predictions, less their confidence, [rows, ..., bins]."""
    index, confidence, right = binned_confidences(prediction, targets, bins)
    excess = (right - confidence)[..., tf.newaxis]
    return excess * tf.one_hot(index, bins, dtype=tf.float64)


_OF_INTERVALS = {"level": lambda x: checked_level(0.9 if x is None else x)}
SCORES = {
    "brier_score": RowScore(brier_of_targets, "classes"),
    "calibration_error": RowScore(
        _excess_below_levels,
        "ordered",
        lambda mean: tf.reduce_mean(mean**2),
        {"levels": lambda x: checked_levels(LEVELS if x is None else x).tolist()},
        lambda levels: (len(levels),),
    ),
    "crps": RowScore(crps_of_targets, "ordered"),
    "expected_calibration_error": RowScore(
        _excess_in_bins,
        "classes",
        lambda mean: tf.reduce_sum(tf.abs(mean)),
        {"bins": lambda x: positive_integer("bins", 15 if x is None else x)},
        lambda bins: (bins,),
    ),
    "interval_coverage": RowScore(_covered, "ordered", options=_OF_INTERVALS),
    "interval_width": RowScore(_widths, "ordered", options=_OF_INTERVALS),
    "negative_log_likelihood": RowScore(_likelihoods, "any", is_joint=True),
    "root_mean_squared_error": RowScore(_squared_errors, "numbers", tf.sqrt),
}


@with_arguments
def brier_score(prediction: Predictive, y: ArrayLike, *, per_row: bool = False) -> Any:
    """Computes the mean squared error of class probabilities (Brier 1950).

    For one row of C > 2 classes it is `sum_c (p_c - 1{y = c})^2`, from 0 to 2. For two
    classes it is half of that sum, `(p_1 - 1{y = 1})^2`, from 0 to 1. Scikit-learn's
    `brier_score_loss` computes the same. The score is proper; lower is better.

    Example:

    >>> import keras, tfbbb
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(3)(inputs)
    >>> model = tfbbb.BayesianModel(inputs, outputs, likelihood="categorical")
    >>> prediction = model.predictive([[1.0, 2.0], [3.0, 4.0]])
    >>> tfbbb.metrics.brier_score(prediction, [0, 2], per_row=True).shape
    (2,)
    """
    return _score("brier_score", prediction, y, per_row)


@with_arguments
def crps(prediction: Predictive, y: ArrayLike, *, per_row: bool = False) -> Any:
    """Computes `integral (F(z) - 1{z >= y})^2 dz`, in units of y.

    F is the predictive distribution function of a target (Matheson and Winkler 1976;
    Gneiting and Raftery 2007). The score is proper; lower is better. For a prediction
    without spread it is the absolute error.

    Between quantiles at 117 levels, and one more node at the target, `Phi^-1(F)` is
    taken as linear, which gives the integral a closed form. The error is at most 2e-6
    standard deviations for a Normal. For a mixture of normals of similar widths it is
    at most 5e-4 and mostly 3e-5 of the mixture's standard deviation, and for components
    far apart 0.5 % of the gap. For counts the score is the sum over integers
    `sum_z (F(z) - 1{z >= y})^2`; more than 256 integers are summed in blocks of one F
    each. For grades this is the ranked probability score (Epstein 1969).

    Example:

    >>> import keras, tfbbb
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> prediction = tfbbb.BayesianModel(inputs, outputs).predictive([[1.0, 2.0]])
    >>> near = tfbbb.metrics.crps(prediction, prediction.mean)
    >>> near < tfbbb.metrics.crps(prediction, prediction.mean + 1.0)
    True
    """
    return _score("crps", prediction, y, per_row)


@with_arguments
def interval_coverage(
    prediction: Predictive, y: ArrayLike, level: float = 0.9, *, per_row: bool = False
) -> Any:
    """Computes the share of targets within their central predictive interval.

    For a calibrated prediction of n rows the coverage is `level`, with a standard
    deviation of `sqrt(level (1 - level) / n)`. Coverage does not depend on the width of
    the intervals: report it together with `interval_width`. Intervals of counts and
    grades have at least the probability `level`, and more if a single value
    has a high probability.

    Example:

    >>> import keras, tfbbb
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> prediction = tfbbb.BayesianModel(inputs, outputs).predictive([[1.0, 2.0]])
    >>> tfbbb.metrics.interval_coverage(prediction, prediction.mean, level=0.5)
    1.0
    """
    level = checked_level(level)
    return _score("interval_coverage", prediction, y, per_row, level=level)


@with_arguments
def interval_width(
    prediction: Predictive, level: float = 0.9, *, per_row: bool = False
) -> Any:
    """Computes the mean width of central predictive intervals, in units of y.

    Among predictions with the right `interval_coverage`, narrower intervals are better
    (Gneiting et al. 2007). For counts and grades the width is the difference
    of the last and the first value of the interval, 0 for a single value.

    Example:

    >>> import keras, tfbbb
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> prediction = tfbbb.BayesianModel(inputs, outputs).predictive([[1.0, 2.0]])
    >>> narrow = tfbbb.metrics.interval_width(prediction, level=0.5)
    >>> narrow < tfbbb.metrics.interval_width(prediction, level=0.9)
    True
    """
    widths = _widths(prediction, None, checked_level(level))
    return _average("interval_width", widths, per_row, prediction)


@with_arguments
def negative_log_likelihood(
    prediction: Predictive, y: ArrayLike, *, per_row: bool = False
) -> Any:
    """Computes `-log p(y | x, data)`, the logarithmic score (Good 1952), in nats.

    The density is the joint density of all targets (and places) of a row. The score is
    proper. Lower is better among predictions in the same unit; a change of units shifts
    the score.

    Example:

    >>> import keras, tfbbb
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(3)(inputs)
    >>> model = tfbbb.BayesianModel(inputs, outputs, likelihood="categorical")
    >>> prediction = model.predictive([[0.0, 0.0]])  # logits of 0, but for the biases
    >>> score = tfbbb.metrics.negative_log_likelihood(prediction, [1])
    >>> rows = tfbbb.metrics.negative_log_likelihood(prediction, [1], per_row=True)
    >>> rows.shape, score == float(rows.mean())
    ((1,), True)
    """
    return _score("negative_log_likelihood", prediction, y, per_row)


@with_arguments
def root_mean_squared_error(
    prediction: Predictive, y: ArrayLike, *, per_row: bool = False
) -> Any:
    """Computes `sqrt(mean((E[y] - y)^2))` over rows and targets, in units of y.

    Example:

    >>> import keras, tfbbb
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> prediction = tfbbb.BayesianModel(inputs, outputs).predictive([[1.0, 2.0]])
    >>> tfbbb.metrics.root_mean_squared_error(prediction, prediction.mean + 3.0)
    3.0
    """
    return _score("root_mean_squared_error", prediction, y, per_row)


def _score(
    name: str, prediction: Predictive, y: ArrayLike, per_row: bool, **options: float
) -> Any:
    score = SCORES[name]
    targets = checked_targets(prediction, y, score.scored, name, by_place=True)
    rows = score.rows(prediction, targets, **options)
    return _average(name, rows, per_row, prediction)


def _average(name: str, rows: ArrayLike, per_row: bool, prediction: Predictive) -> Any:
    """Returns scores as an array, or their mean as a number, without masked places."""
    rows, finish = np.asarray(rows), SCORES[name].finish
    if per_row:
        return np.asarray(finish(rows))
    mask = getattr(prediction, "mask", None)
    of_places = mask is not None and rows.ndim >= mask.ndim
    return float(finish((rows[mask] if of_places else rows).mean()))
