"""Rows selected by their scores, one by one or together."""

import numpy as np

from tfbbb.base.numbers import int32
from tfbbb.base.types import ArrayLike
from tfbbb.lab.acquisition.scores import bald
from tfbbb.prediction.result import Predictive
from tfbbb.prediction.target_scores import is_of_classes

# The least share of a row's variance that is noise: a label of no noise would tell an
# infinite amount.
_LEAST_NOISE = 1e-6
# Of a row: one that tells less has a finite noise, too.
_LEAST_INFORMATION = 1e-12


def select(scores: ArrayLike, n: int, seed: int = 0) -> np.ndarray:
    """Returns the n rows of the largest scores, largest first.

    Rows of equal scores come in random order.

    Example:

    >>> import tfbbb
    >>> tfbbb.lab.acquisition.select([0.1, 0.7, 0.3], 2)
    array([1, 2])

    Args:
        scores: A score for each row, [rows].
        n: Number of rows to select.
        seed: Seed of the order of equal scores.

    Returns:
        Indices of rows, [n].

    Raises:
        ValueError: There are fewer than n rows, or a score is not a number.
    """
    values = np.asarray(scores, np.float64)
    if values.ndim != 1 or np.isnan(values).any():
        raise ValueError(
            "`scores` must be one number for each row. "
            f"Received: shape={values.shape}, {int(np.isnan(values).sum())} NaN"
        )
    _check_number(n, len(values))
    order = np.random.default_rng(int32("seed", seed) % 2**32).permutation(len(values))
    return order[np.argsort(-values[order], kind="stable")][:n]


def select_batch(
    prediction: Predictive, n: int, num_samples: int = 256, seed: int = 0
) -> np.ndarray:
    """Returns n rows whose labels together tell most, most informative first.

    The n rows of the largest `bald` may all tell the same. This takes one row after
    another, each with the most information beyond the rows before it. Targets have the
    covariance of drawn functions, C, plus the noise of each row, a diagonal D; of
    normal targets with these covariances, a batch b tells

        I(y_b; w) = log det(C_bb + D_bb) / 2 - log det(D_bb) / 2

    Each of several targets, or the one-hot code of each class, counts as if alone. The
    noise of numbers is their aleatoric variance. That of classes is such that a row
    alone tells its mutual information, `bald`: probabilities near 0 or 1 have little
    variance of both kinds, and their ratio would take rows of which all but a few draws
    are certain for the most informative ones. The
    greedy batch has at least 1 - 1/e of the information of the best one, because I is
    submodular (Nemhauser et al. 1978; batches: Kirsch et al. 2019).

    Example:

    >>> import keras, numpy as np, tfbbb
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> model = tfbbb.BayesianModel(inputs, outputs)
    >>> rows = np.array([[900.0, 0.0], [900.0, 0.0], [0.0, 800.0]])
    >>> 2 in tfbbb.lab.acquisition.select_batch(model.predictive(rows), 2)
    True

    Args:
        prediction: A `tfbbb.Predictive` of rows without labels.
        n: Number of rows to select.
        num_samples: Number of functions that are drawn; the rank of C is less.
        seed: Seed of the functions.

    Returns:
        Indices of rows, [n].

    Raises:
        ValueError: There are fewer than n rows, or fewer than two functions.
    """
    rows = len(prediction)
    _check_number(n, rows)
    int32("num_samples", num_samples, least=2)
    functions = prediction.joint_sample(num_samples, seed).astype(np.float64)
    functions = functions.reshape(num_samples, rows, -1)
    # [targets, samples, rows], whose products over samples are covariances.
    deviations = np.moveaxis(functions - functions.mean(axis=0), 2, 0)
    deviations /= np.sqrt(num_samples - 1)
    variances = np.square(deviations).sum(axis=1)
    if is_of_classes(prediction):
        told = np.expm1(2.0 * bald(prediction) / len(deviations))
        noise = variances / np.maximum(told, _LEAST_INFORMATION)
    else:
        noise = np.asarray(prediction.aleatoric, np.float64).reshape(rows, -1).T
    noise = np.maximum(noise, _LEAST_NOISE * variances)
    noise = np.maximum(noise, np.finfo(np.float64).tiny)
    chosen: list[int] = []
    for _ in range(n):
        variances = np.square(deviations).sum(axis=1)
        gains = 0.5 * np.log1p(variances / noise).sum(axis=0)
        gains[chosen] = -np.inf
        row = int(np.argmax(gains))
        chosen.append(row)
        deviations = _given_label(deviations, noise, row)
    return np.array(chosen)


def _given_label(deviations: np.ndarray, noise: np.ndarray, row: int) -> np.ndarray:
    """Returns deviations whose products are covariances given the label of a row.

    The covariance given a label, C - c c^T / (variance + noise), is A^T (I - b d d^T)^2
    A for the deviations A, the column d of the row, and the b below.

    Args:
        deviations: [targets, samples, rows].
        noise: Variance of the noise, [targets, rows].
        row: The row that is labelled.
    """
    column = deviations[:, :, row]
    variance = np.square(column).sum(axis=1)
    total = variance + noise[:, row]
    factor = 1.0 / (total + np.sqrt(total * noise[:, row]))
    products = np.einsum("ts,tsr->tr", column, deviations)
    return deviations - (
        factor[:, np.newaxis, np.newaxis]
        * column[:, :, np.newaxis]
        * products[:, np.newaxis, :]
    )


def _check_number(n: int, rows: int) -> None:
    if not 0 <= int32("n", n, least=1) <= rows:
        raise ValueError(
            "There are fewer rows to select from than asked for. "
            f"Received: n={n}, {rows} rows"
        )
