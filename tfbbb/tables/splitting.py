"""Random splits into training and test rows, and into folds."""

import numpy as np
import numpy.typing as npt


def split(
    num_rows: int,
    fraction: float,
    *,
    seed: int,
    stratify: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
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
        groups: Group of each row `[n]`. If given, all rows of a group are on the same
            side, and the test rows are `fraction` of the rows, or fewer if no further
            group fits, but at least one group. With `stratify` a group counts as one
            of its rarest class.

    Returns:
        Indices of the training rows and of the test rows, each in random order. There
        are no test rows if each class has one row, or one group.

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
    generator = np.random.default_rng(seed)
    order = generator.permutation(num_rows)
    classes = np.zeros(num_rows, int)
    if stratify is not None:
        classes = _codes(stratify, num_rows, "stratify", "class")
    if groups is not None:
        codes = _codes(groups, num_rows, "groups", "group")
        test = _choose_groups(codes, classes, fraction, generator)[codes]
    else:
        test = np.zeros(num_rows, dtype=bool)
        for index, count in enumerate(_count_test_rows(np.bincount(classes), fraction)):
            test[order[classes[order] == index][:count]] = True
    return order[~test[order]], order[test[order]]


def draw_folds(
    groups: npt.ArrayLike,
    num_folds: int,
    *,
    generator: np.random.Generator,
    stratify: npt.ArrayLike | None = None,
) -> np.ndarray:
    """Divides rows at random into folds of whole groups, of about equal size."""
    codes = np.unique(groups, return_inverse=True)[1]
    classes = np.zeros_like(codes)
    if stratify is not None:
        classes = np.unique(stratify, return_inverse=True)[1]
    counts = np.zeros((codes.max() + 1, classes.max() + 1), np.float32)
    np.add.at(counts, (codes, classes), 1)
    sizes, shares = counts.sum(axis=1), counts / counts.sum(axis=0)
    order = generator.permutation(len(counts))
    order = order[np.argsort(-sizes[order], kind="stable")]
    filled, rows = np.zeros((num_folds, counts.shape[1])), np.zeros(num_folds)
    fold_of = np.empty(len(counts), np.int32)
    # The fold with the smallest share of the rows of the group's classes.
    for group in order:
        fold = np.lexsort((rows, filled @ counts[group]))[0]
        fold_of[group] = fold
        filled[fold] += shares[group]
        rows[fold] += sizes[group]
    return fold_of[codes]


def _codes(
    labels: npt.ArrayLike, num_rows: int, argument: str, content: str
) -> np.ndarray:
    """Returns labels as numbers from 0, `[n]`."""
    labels = np.asarray(labels)
    if labels.shape != (num_rows,):
        raise ValueError(
            f"`{argument}` must hold one {content} per row. "
            f"Received: {argument} of shape {labels.shape}, num_rows={num_rows}"
        )
    return np.unique(labels, return_inverse=True)[1]


def _choose_groups(
    groups: np.ndarray,
    classes: np.ndarray,
    fraction: float,
    generator: np.random.Generator,
) -> np.ndarray:
    """Returns which groups are test groups, by their numbers."""
    sizes = np.bincount(groups)
    # The place of a class in the order from rare to common.
    ranks = np.argsort(np.argsort(np.bincount(classes), kind="stable"))
    rarest = np.full(len(sizes), len(ranks))
    np.minimum.at(rarest, groups, ranks[classes])
    order = generator.permutation(len(sizes))
    order = order[np.argsort(rarest[order], kind="stable")]
    ends = np.cumsum(np.bincount(rarest))[:-1]
    test = np.zeros(len(sizes), dtype=bool)
    for members in np.split(order, ends):
        test[members[_fill(sizes[members], fraction)]] = True
    return test


def _fill(sizes: np.ndarray, fraction: float) -> list[int]:
    """Returns places of sizes that fit into a fraction of their sum, never all."""
    if len(sizes) < 2:
        return []
    space, taken = round(fraction * int(sizes.sum())), []
    for place, size in enumerate(sizes.tolist()):
        if size <= space:
            taken.append(place)
            space -= size
    taken = taken or [int(np.argmin(sizes))]
    return taken[: len(sizes) - 1]


def _count_test_rows(sizes: np.ndarray, fraction: float) -> np.ndarray:
    """Counts test rows per class, by largest remainder, within `[1, size - 1]`."""
    exact = fraction * sizes
    counts = np.floor(exact).astype(int)
    rest = round(fraction * int(sizes.sum())) - int(counts.sum())
    # A stable sort: ties go to the first class.
    counts[np.argsort(counts - exact, kind="stable")[:rest]] += 1
    return np.clip(counts, np.minimum(1, sizes - 1), sizes - 1)
