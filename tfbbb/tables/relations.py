"""Finds columns from which a model learns nothing, or which give the target away."""

import hashlib

import numpy as np

from tfbbb.tables.parsed_column import ParsedColumn

# Fewer rows may agree by chance.
_FEWEST_ROWS = 20
_FEWEST_CERTAIN_ROWS = 50
# Rows that are compared before all are.
_FIRST_ROWS = 5000
# Of the range of the target: what rounding in a file may change.
_ROUNDING = 1e-6
_TOO_GOOD = 0.999
_ROWS_PER_VALUE = 5
# The share of rows that may be missing between row numbers.
_GAPS = 0.1
_YEARS = (1500, 2200)

_CONSTANT = "It has the same value in every row, so a model learns nothing from it."


class Relations:
    """Compares each feature with the row numbers, the target and earlier features.

    Call `examine` for one column after the other; the object remembers a digest of
    each.

    Args:
        target: The values of the target; None to compare with no target.
    """

    def __init__(self, target: ParsedColumn | None = None):
        self._target = target
        self._seen: dict[bytes, str] = {}

    def examine(self, column: ParsedColumn) -> tuple[str | None, tuple[str, ...]]:
        """Examines a feature.

        Returns:
            Why the column is certainly useless or a copy of the target, if it is, and
            remarks on what it may be.
        """
        values = column.numbers
        if not column.missing.any() and values.min() == values.max():
            return _CONSTANT, ()
        if len(values) < _FEWEST_ROWS:
            return None, ()
        digest = hashlib.blake2b((values + 0.0).tobytes(), digest_size=16).digest()
        # The codes of texts and numbers differ in meaning.
        digest += column.kind.encode()
        earlier = self._seen.setdefault(digest, column.name)
        if earlier != column.name:
            return f"It tells the same of each row as column {earlier!r}.", ()
        if column.kind == "numeric" and _are_row_numbers(values):
            first = values[0]
            if first <= 1 + _GAPS * len(values):
                return "It numbers the rows.", ()
            if not _YEARS[0] <= first <= values[-1] <= _YEARS[1]:
                return None, ("It grows by one from row to row, like an identifier.",)
        if self._target is None:
            return None, ()
        if self._target.kind == "categorical":
            return _compare_classes(column, self._target)
        if column.kind != "categorical":
            return _compare_numbers(column, self._target)
        return None, ()


def _compare_numbers(
    column: ParsedColumn, target: ParsedColumn
) -> tuple[str | None, tuple[str, ...]]:
    known = ~np.isnan(column.numbers)
    x, y = column.numbers[known], target.values[known]
    first = slice(0, _FIRST_ROWS)
    if len(np.unique(x[first])) < _FEWEST_ROWS or y.min() == y.max():
        return None, ()
    correlation = _correlation(x, y)
    if _is_affine(x, y) and column.kind == "numeric":
        remark = (
            f"It is the target {target.name!r} in other units, or its copy, in "
            "each row, so it gives the target away."
        )
        if len(x) >= _FEWEST_CERTAIN_ROWS and known.all():
            return remark, ()
        return None, (remark,)
    if _is_monotone(x[first], y[first]) and _is_monotone(x, y):
        return None, (
            f"It is a monotone function of the target {target.name!r}; if it is "
            "not known before the target is, leave it out.",
        )
    if correlation**2 > _TOO_GOOD:
        return None, (
            f"It alone explains {100 * correlation**2:.2f} % of the variance of "
            f"the target {target.name!r}; if it is not known before the target "
            "is, leave it out.",
        )
    return None, ()


def _compare_classes(
    column: ParsedColumn, target: ParsedColumn
) -> tuple[str | None, tuple[str, ...]]:
    known = ~np.isnan(column.numbers)
    _, codes = np.unique(column.numbers[known], return_inverse=True)
    classes = target.values[known]
    if not len(codes) or _ROWS_PER_VALUE * (codes.max() + 1) > len(codes):
        return None, ()
    number = int(classes.max()) + 1
    pairs = np.unique(codes * number + classes)
    if len(pairs) > codes.max() + 1:
        return None, ()
    one_to_one = len(np.unique(pairs % number)) == len(pairs)
    if one_to_one and len(codes) >= _FEWEST_CERTAIN_ROWS and known.all():
        return f"It is a copy of the target {target.name!r}.", ()
    return None, (
        f"It determines the target {target.name!r} in each row; if it is not "
        "known before the target is, leave it out.",
    )


def _are_row_numbers(values: np.ndarray) -> bool:
    """Whether whole numbers from 0 on grow by one, but for a few rows left out."""
    if not (values[0] >= 0 and (values == np.floor(values)).all()):
        return False
    span = values[-1] - values[0] + 1
    return bool((np.diff(values) >= 1).all() and span <= (1 + _GAPS) * len(values))


def _correlation(x: np.ndarray, y: np.ndarray) -> float:
    x, y = x - x.mean(), y - y.mean()
    scale = float(np.sqrt((x @ x) * (y @ y)))
    return float(x @ y) / scale if 0 < scale < np.inf else 0.0


def _is_affine(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether y is a + b x in every row, up to rounding."""
    low, high = np.argmin(x), np.argmax(x)
    slope = (y[high] - y[low]) / (x[high] - x[low])
    if slope == 0:
        return False
    error = np.abs(y[low] + slope * (x - x[low]) - y).max()
    return bool(error <= _ROUNDING * (y.max() - y.min()))


def _is_monotone(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether y strictly rises, or strictly falls, with x in every row."""
    order = np.lexsort((y, x))
    dx, dy = np.diff(x[order]), np.diff(y[order])
    if (dy[dx == 0] != 0).any():
        return False
    steps = dy[dx > 0]
    return bool((steps > 0).all() or (steps < 0).all())
