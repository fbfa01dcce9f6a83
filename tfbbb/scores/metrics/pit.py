"""The probability integral transform of targets."""

from dataclasses import dataclass

import numpy as np

from tfbbb.base.numbers import positive_integer
from tfbbb.base.types import ArrayLike
from tfbbb.prediction.result import Predictive
from tfbbb.prediction.target_scores import cdf_step
from tfbbb.scores.metrics.targets import checked_targets


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


def pit_values(prediction: Predictive, y: ArrayLike, *, seed: int = 0) -> np.ndarray:
    """Computes `F(y)`, the predictive distribution function at the target.

    For a calibrated prediction the values are uniform from 0 to 1 (Dawid 1984). For
    counts and ordered classes F is a step function: there each value is drawn uniformly
    from its step, `F(y - 1) + v (F(y) - F(y - 1))` with v uniform (Czado et al. 2009),
    so that the values are uniform again.

    Example:

    >>> import keras, tfbbb
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> prediction = tfbbb.BayesianModel(inputs, outputs).predictive([[1.0, 2.0]])
    >>> tfbbb.metrics.pit_values(prediction, prediction.quantile(0.3))
    array([[0.3]])

    Args:
        prediction: A `tfbbb.Predictive` of numbers, counts or ordered classes.
        y: Targets in raw units, [rows, k] (or [rows] for one target).
        seed: Seed of v.

    Returns:
        One value for each target, [rows, k].

    Raises:
        ValueError: The prediction is of classes without an order, or the targets do not
            fit the prediction.
    """
    targets = checked_targets(prediction, y, "ordered", "pit_values")
    below, up_to = (np.asarray(value) for value in cdf_step(prediction, targets))
    spread = np.random.default_rng(seed).uniform(size=up_to.shape)
    return below + spread * (up_to - below)


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

    Args:
        prediction: A `tfbbb.Predictive` of numbers, counts or ordered classes.
        y: Targets in raw units, [rows, k] (or [rows] for one target).
        bins: Number of bins.
        seed: Seed for counts and ordered classes: see `pit_values`.

    Raises:
        ValueError: The prediction is of classes without an order, the targets do not
            fit the prediction, or `bins` is not a positive integer.
    """
    positive_integer("bins", bins)
    values = pit_values(prediction, y, seed=seed)
    counts, edges = np.histogram(values, bins=bins, range=(0.0, 1.0))
    return PITHistogram(edges=edges, counts=counts)
