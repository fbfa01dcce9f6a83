"""The calibration of quantiles and of the probabilities of classes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tfbbb.base.numbers import positive_integer
from tfbbb.base.types import ArrayLike
from tfbbb.prediction.levels import checked_levels
from tfbbb.prediction.result import Predictive
from tfbbb.prediction.target_scores import (
    ReliabilityDiagram,
    calibration_error_of_targets,
    cdf_step,
)
from tfbbb.scores.metrics.arguments import with_arguments
from tfbbb.scores.metrics.targets import checked_targets

LEVELS = tuple(np.linspace(0.05, 0.95, 19).round(2).tolist())


@dataclass(frozen=True)
class CalibrationCurve:
    """The share of targets below each quantile.

    Attributes:
        expected: Levels, [Q].
        observed: Shares of the targets, [Q]. For a calibrated prediction they equal
            `expected`, up to chance.
    """

    expected: np.ndarray
    observed: np.ndarray


@dataclass(frozen=True)
class PITHistogram:
    """The histogram of the probability integral transform.

    Attributes:
        edges: Edges of the bins, [bins + 1], from 0 to 1.
        counts: Number of values in each bin, [bins].
    """

    edges: np.ndarray
    counts: np.ndarray

    @property
    def density(self) -> np.ndarray:
        """Heights of the bars, [bins]: 1 each for a calibrated prediction."""
        return self.counts / (self.counts.sum() * np.diff(self.edges))


@with_arguments
def pit_values(prediction: Predictive, y: ArrayLike, *, seed: int = 0) -> np.ndarray:
    """Computes `F(y)`, the predictive distribution function at each target, [rows, k].

    For a calibrated prediction the values are uniform from 0 to 1 (Dawid 1984). For
    counts and grades F is a step function: there each value is drawn uniformly
    from its step, `F(y - 1) + v (F(y) - F(y - 1))` with v uniform (Czado et al. 2009),
    so that the values are uniform again.

    Example:

    >>> import keras, tfbbb
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> prediction = tfbbb.BayesianModel(inputs, outputs).predictive([[1.0, 2.0]])
    >>> tfbbb.metrics.pit_values(prediction, prediction.quantile(0.3))
    array([[0.3]])
    """
    targets = checked_targets(prediction, y, "ordered", "pit_values")
    below, up_to = (np.asarray(value) for value in cdf_step(prediction, targets))
    spread = np.random.default_rng(seed).uniform(size=up_to.shape)
    return below + spread * (up_to - below)


@with_arguments
def pit_histogram(
    prediction: Predictive, y: ArrayLike, *, bins: int = 10, seed: int = 0
) -> PITHistogram:
    """Counts the probability integral transform of targets in bins of equal width.

    A calibrated prediction has a flat histogram. Too small a variance gives a valley,
    too large a variance a hill, and a bias a slope (Gneiting et al. 2007). With n
    values, the expected count of each bin of a calibrated prediction is `n / bins`, and
    its standard deviation `sqrt(n (1 - 1 / bins) / bins)`. Several targets are counted
    together.

    Example:

    >>> import keras, tfbbb
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> prediction = tfbbb.BayesianModel(inputs, outputs).predictive([[1.0, 2.0]])
    >>> histogram = tfbbb.metrics.pit_histogram(
    ...     prediction, prediction.quantile(0.3), bins=4
    ... )
    >>> histogram.counts.tolist()
    [0, 1, 0, 0]
    """
    positive_integer("bins", bins)
    values = pit_values(prediction, y, seed=seed)
    counts, edges = np.histogram(values, bins=bins, range=(0.0, 1.0))
    return PITHistogram(edges=edges, counts=counts)


@with_arguments
def calibration_curve(
    prediction: Predictive,
    y: ArrayLike,
    levels: Sequence[float] | None = None,
    *,
    seed: int = 0,
    sample_weight: ArrayLike = None,
) -> CalibrationCurve:
    """Computes the share of targets below each quantile (Kuleshov et al. 2018).

    `observed_q = mean(1{F(y) <= expected_q})`, over rows and targets. For a calibrated
    prediction of n targets the standard deviation of the observed share is
    `sqrt(level (1 - level) / n)`.

    Example:

    >>> import keras, tfbbb
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> prediction = tfbbb.BayesianModel(inputs, outputs).predictive([[1.0, 2.0]])
    >>> tfbbb.metrics.calibration_curve(
    ...     prediction, prediction.quantile(0.3), [0.25, 0.5]
    ... )
    CalibrationCurve(expected=array([0.25, 0.5 ]), observed=array([0., 1.]))
    """
    expected = checked_levels(LEVELS if levels is None else levels)
    by_row = pit_values(prediction, y, seed=seed)
    values = by_row.reshape(-1)
    order = np.argsort(values)
    below = np.searchsorted(values[order], expected, side="right")
    observed = below / len(values)
    if sample_weight is not None:
        per_row = values.size // len(by_row)
        weights = np.repeat(np.asarray(sample_weight, np.float64), per_row)[order]
        observed = np.append(0.0, np.cumsum(weights))[below] / weights.sum()
    return CalibrationCurve(expected=expected, observed=observed)


@with_arguments
def calibration_error(
    prediction: Predictive,
    y: ArrayLike,
    levels: Sequence[float] | None = None,
    *,
    seed: int = 0,
    sample_weight: ArrayLike = None,
) -> float:
    """Computes the mean over levels of `(expected - observed)^2`.

    This is the calibration error of Kuleshov et al. (2018, eq. 9) with the weight 1/Q
    for each of Q levels. For a calibrated prediction of n targets its expectation is
    not 0 but the mean of `level (1 - level) / n`, 0.175 / n for the default levels.

    Example:

    >>> import keras, tfbbb
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> prediction = tfbbb.BayesianModel(inputs, outputs).predictive([[1.0, 2.0]])
    >>> tfbbb.metrics.calibration_error(prediction, prediction.mean, [0.2, 0.6])
    0.1
    """
    curve = calibration_curve(
        prediction, y, levels, seed=seed, sample_weight=sample_weight
    )
    return float(np.mean((curve.expected - curve.observed) ** 2))


@with_arguments
def reliability_diagram(
    prediction: Predictive, y: ArrayLike, *, bins: int = 15
) -> ReliabilityDiagram:
    """Computes accuracy against confidence (DeGroot and Fienberg 1983).

    Example:

    >>> import keras, tfbbb
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(3)(inputs)
    >>> model = tfbbb.BayesianModel(inputs, outputs, likelihood="categorical")
    >>> prediction = model.predictive([[1.0, 2.0], [3.0, 4.0]])
    >>> tfbbb.metrics.reliability_diagram(prediction, [0, 2], bins=1).counts
    array([2])
    """
    positive_integer("bins", bins)
    targets = checked_targets(prediction, y, "classes", "reliability_diagram")
    return ReliabilityDiagram.of(prediction, targets, bins)


@with_arguments
def expected_calibration_error(
    prediction: Predictive,
    y: ArrayLike,
    *,
    bins: int = 15,
    sample_weight: ArrayLike = None,
) -> float:
    """Computes `sum_b (n_b / n) |accuracy_b - confidence_b|` (Naeini et al. 2015).

    The bins b of the probability of the predicted class have equal width (Guo et al.
    2017). The error is biased: for a calibrated prediction its expectation is not 0 but
    close to `sum_b sqrt(2 n_b c_b (1 - c_b) / pi) / n` for bins of confidence c_b, so
    compare predictions on the same number of rows. The error is not proper: predicting
    the shares of the classes for every row has the error 0.

    Example:

    >>> import keras, tfbbb
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(2)(inputs)
    >>> model = tfbbb.BayesianModel(inputs, outputs, likelihood="categorical")
    >>> prediction = model.predictive([[1.0, 2.0]])
    >>> right = prediction.probabilities.argmax(axis=1)
    >>> error = tfbbb.metrics.expected_calibration_error(prediction, right)
    >>> bool(error == 1.0 - prediction.probabilities.max())
    True
    """
    positive_integer("bins", bins)
    targets = checked_targets(prediction, y, "classes", "expected_calibration_error")
    weights = np.ones(len(targets))
    if sample_weight is not None:
        weights = np.asarray(sample_weight, np.float64)
    return calibration_error_of_targets(prediction, targets, weights, bins)
