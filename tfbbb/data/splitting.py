"""Random split into training and test rows."""

import numpy as np
import numpy.typing as npt


def split(
    num_rows: int,
    fraction: float,
    *,
    seed: int,
    stratify: npt.ArrayLike | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Splits rows at random into training and test rows.

    Args:
        num_rows: Number of rows `n`, at least 2.
        fraction: Fraction of test rows, between 0 and 1. Each side gets at least one
            row.
        seed: Seed; the same seed gives the same split.
        stratify: Class of each row `[n]`. If given, each class is split in the same
            proportion: a class of two or more rows has rows on both sides, a class of
            one row only in training.

    Returns:
        Indices of the training rows and of the test rows, each in random order.

    Raises:
        ValueError: An argument is out of range.

    Example:
    >>> train, test = split(10, 0.2, seed=0)
    >>> len(train), len(test)
    (8, 2)
    """
    if num_rows < 2:
        raise ValueError(
            f"A split needs at least 2 rows. Received: num_rows={num_rows}"
        )
    if not 0 < fraction < 1:
        raise ValueError(
            f"`fraction` must be between 0 and 1. Received: fraction={fraction}"
        )
    order = np.random.default_rng(seed).permutation(num_rows)
    if stratify is None:
        (count,) = _count_test_rows(np.array([num_rows]), fraction)
        return order[count:], order[:count]
    labels = np.asarray(stratify)
    if labels.shape != (num_rows,):
        raise ValueError(
            "`stratify` must hold one class per row. "
            f"Received: stratify of shape {labels.shape}, num_rows={num_rows}"
        )
    _, classes, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    test = np.zeros(num_rows, dtype=bool)
    for index, count in enumerate(_count_test_rows(sizes, fraction)):
        members = order[classes[order] == index]
        test[members[:count]] = True
    return order[~test[order]], order[test[order]]


def _count_test_rows(sizes: np.ndarray, fraction: float) -> np.ndarray:
    """Counts test rows per class, by largest remainder, within `[1, size - 1]`."""
    exact = fraction * sizes
    counts = np.floor(exact).astype(int)
    rest = round(fraction * int(sizes.sum())) - int(counts.sum())
    # A stable sort: ties go to the first class.
    counts[np.argsort(counts - exact, kind="stable")[:rest]] += 1
    return np.clip(counts, np.minimum(1, sizes - 1), sizes - 1)
