"""Finds columns from which a model learns nothing, or which give the target away."""

import hashlib
import shlex
from typing import NamedTuple

import numpy as np

from tfbbb.tables.follow_up import find_follow_up
from tfbbb.tables.identifiers import examine_numbers
from tfbbb.tables.parsed_column import ParsedColumn
from tfbbb.tables.row_order import FirstRows, find_groups, find_time
from tfbbb.tables.sums import find_sum
from tfbbb.tables.values import drop_missing

# Fewer rows may agree by chance.
_FEWEST_ROWS = 20
_FEWEST_CERTAIN_ROWS = 50
# Rows that are compared before all are.
_FIRST_ROWS = 5000
# Of the range of the target: what rounding in a file may change.
_ROUNDING = 1e-6
_TOO_GOOD = 0.999
_ROWS_PER_VALUE = 5
# What is kept of the features, which are compared with each other.
_KEPT_ROWS, _KEPT_COLUMNS = 20_000, 300

_CONSTANT = "It has the same value in every row, so a model learns nothing from it."


class Examination(NamedTuple):
    """What is said about a feature.

    Attributes:
        reason: Why the column is certainly useless or a copy of the target, if it is.
        remarks: Sentences on what the column may be, such as an identifier.
        warnings: Why figures may flatter a model that reads it.
        advice: How to keep a column although there is a reason against it, if a user
            may want to.
    """

    reason: str | None = None
    remarks: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    advice: str = ""


class Relations:
    """Compares each feature with the row numbers, the target and other features.

    Call `examine` for one column after the other, then `find_warnings`; the object
    remembers a digest and the first rows of each.
    """

    def __init__(self, target: ParsedColumn | None = None):
        self._target = target
        self._seen: dict[bytes, str] = {}
        self._first_rows: dict[str, FirstRows] = {}

    def examine(self, column: ParsedColumn) -> Examination:
        """Examines a feature."""
        values = column.numbers
        if not column.missing.any() and values.min() == values.max():
            return Examination(_CONSTANT)
        if len(values) < _FEWEST_ROWS:
            return Examination()
        # Adding 0.0 turns -0.0 into 0.0.
        digest = hashlib.sha256((values + 0.0).data).digest()
        # The codes of texts and numbers differ in meaning.
        digest += column.kind.encode()
        earlier = self._seen.setdefault(digest, column.name)
        if earlier != column.name:
            return Examination(f"It tells the same of each row as column {earlier!r}.")
        identifier = examine_numbers(column)
        if identifier.reason is not None:
            option = shlex.quote(f"{column.name}=number")
            return Examination(
                identifier.reason,
                advice=f"Name it in `features` (or say --column {option}) to keep it.",
            )
        found = self._compare_with_target(column)
        if identifier.remark is not None and found.reason is None:
            found = found._replace(remarks=(identifier.remark, *found.remarks))
        if found.reason is None and len(self._first_rows) < _KEPT_COLUMNS:
            # A copy: a slice would hold the memory of the whole column.
            first = values[:_KEPT_ROWS].astype(np.float64)
            self._first_rows[column.name] = FirstRows(column.kind, first)
        return found

    def find_warnings(self, *, held_out_at_random: bool) -> dict[str, list[str]]:
        """Returns sentences on the examined features together, by column.

        They tell of an order in time, of groups of rows, of times until an event, and
        of columns that add up to the target: one of each kind at most.
        """
        found: dict[str, list[str]] = {}
        if held_out_at_random:
            warnings = (
                find_time(self._first_rows, self._first_targets),
                find_groups(self._first_rows),
            )
            for warning in warnings:
                if warning is not None:
                    found.setdefault(warning[0], []).append(warning[1])
        target, targets = self._target, self._first_targets
        if target is None or targets is None:
            return found
        follow_up = find_follow_up(self._first_rows, targets, target.name)
        if follow_up is not None:
            found.setdefault(follow_up[0], []).append(follow_up[1])
        if target.kind == "categorical":
            return found
        numbers = {
            name: column.values
            for name, column in self._first_rows.items()
            if column.kind == "numeric"
        }
        first = target.numbers[:_KEPT_ROWS]
        terms = find_sum(numbers, first)
        if terms:
            said = _say_sum(target.name, terms, len(first) < len(target.values))
            found.setdefault(terms[0][1], []).append(said)
        return found

    @property
    def _first_targets(self) -> FirstRows | None:
        if self._target is None:
            return None
        first = self._target.numbers[:_KEPT_ROWS]
        return FirstRows(self._target.kind, first.astype(np.float64))

    def _compare_with_target(self, column: ParsedColumn) -> Examination:
        if self._target is None:
            return Examination()
        if self._target.kind == "categorical":
            return _compare_classes(column, self._target)
        if column.kind != "categorical":
            return _compare_numbers(column, self._target)
        return Examination()


def _say_sum(target: str, terms: tuple[tuple[int, str], ...], in_part: bool) -> str:
    shown = ""
    for sign, name in sorted(terms, key=lambda term: -term[0]):
        shown += f" {'+' if sign > 0 else '-'} {name!r}"
    options = " ".join(f"--ignore {shlex.quote(name)}" for _, name in terms)
    where = f"the first {_KEPT_ROWS} rows" if in_part else "each row"
    return (
        f"The target {target!r} is{shown.removeprefix(' +')} in {where}; if they are "
        f"not known before the target is, leave them out ({options})."
    )


def _compare_numbers(column: ParsedColumn, target: ParsedColumn) -> Examination:
    x = drop_missing(column.numbers, column.missing)
    y = drop_missing(target.values, column.missing)
    first = slice(0, _FIRST_ROWS)
    if len(np.unique(x[first])) < _FEWEST_ROWS or y.min() == y.max():
        return Examination()
    if _is_affine(x, y) and column.kind == "numeric":
        remark = (
            f"It is the target {target.name!r} in other units, or its copy, in "
            "each row, so it gives the target away."
        )
        if len(x) >= _FEWEST_CERTAIN_ROWS and not column.missing.any():
            return Examination(remark)
        return Examination(warnings=(f"{remark} {_leave_out(column)}",))
    if _is_monotone(x[first], y[first]) and _is_monotone(x, y):
        return Examination(
            warnings=(
                f"It is a monotone function of the target {target.name!r}. "
                f"{_leave_out(column)}",
            )
        )
    explained = _explained_variance(x, y)
    if explained > _TOO_GOOD:
        return Examination(
            warnings=(
                f"It alone explains {100 * explained:.2f} % of the variance of "
                f"the target {target.name!r}. {_leave_out(column)}",
            )
        )
    return Examination()


def _compare_classes(column: ParsedColumn, target: ParsedColumn) -> Examination:
    known = ~np.isnan(column.numbers)
    _, codes = np.unique(column.numbers[known], return_inverse=True)
    classes = target.values[known]
    if not len(codes) or _ROWS_PER_VALUE * (codes.max() + 1) > len(codes):
        return Examination()
    number = int(classes.max()) + 1
    pairs = np.unique(codes * number + classes)
    if len(pairs) > codes.max() + 1:
        return Examination()
    one_to_one = len(np.unique(pairs % number)) == len(pairs)
    if one_to_one and len(codes) >= _FEWEST_CERTAIN_ROWS and known.all():
        return Examination(f"It is a copy of the target {target.name!r}.")
    return Examination(
        warnings=(
            f"It determines the target {target.name!r} in each row. "
            f"{_leave_out(column)}",
        )
    )


def _leave_out(column: ParsedColumn) -> str:
    return (
        "If it is not known before the target is, leave it out "
        f"(--ignore {shlex.quote(column.name)})."
    )


def _explained_variance(x: np.ndarray, y: np.ndarray) -> float:
    """Returns the share of the variance of y that a + b x explains.

    Returns 0.0 if the first rows show that the share is not `_TOO_GOOD`: no line leaves
    less of them unexplained than the line that fits them best.
    """
    share, spread = _fit_line(x[:_FIRST_ROWS], y[:_FIRST_ROWS])
    if (1 - share) * spread > (1 - _TOO_GOOD) * np.square(y - y.mean()).sum():
        return 0.0
    return _fit_line(x, y)[0]


def _fit_line(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Returns the explained share of the sum of squares of y, and this sum."""
    x, y = x - x.mean(), y - y.mean()
    spread = float(y @ y)
    scale = float(np.sqrt(float(x @ x) * spread))
    return ((float(x @ y) / scale) ** 2 if 0 < scale < np.inf else 0.0), spread


def _is_affine(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether y is a + b x in every row, up to rounding."""
    low, high = np.argmin(x), np.argmax(x)
    slope = (y[high] - y[low]) / (x[high] - x[low])
    rounding = _ROUNDING * (y.max() - y.min())
    return bool(slope) and all(
        np.abs(y[low] + slope * (x[rows] - x[low]) - y[rows]).max() <= rounding
        for rows in (slice(_FIRST_ROWS), slice(None))
    )


def _is_monotone(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether y strictly rises, or strictly falls, with x in every row."""
    order = np.lexsort((y, x))
    dx, dy = np.diff(x[order]), np.diff(y[order])
    if (dy[dx == 0] != 0).any():
        return False
    steps = dy[dx > 0]
    return bool((steps > 0).all() or (steps < 0).all())
