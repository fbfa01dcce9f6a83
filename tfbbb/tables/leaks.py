"""Checks for columns that teach a model nothing, or that flatter its figures."""

import hashlib
import shlex
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from tfbbb.base.texts import listed, shown_number
from tfbbb.tables.cells import Kind
from tfbbb.tables.column_words import (
    BIRTHS,
    EVENTS,
    TIMES,
    names_a_group,
    names_follow_up,
    naming,
    words,
)
from tfbbb.tables.parsed_column import ParsedColumn
from tfbbb.tables.values import drop_missing

# Fewer rows may agree by chance. The first rows are looked at before all are, and those
# of so many columns are kept and compared with each other.
_FEWEST_ROWS, _FEWEST_CERTAIN_ROWS = 20, 50
_FIRST_ROWS, _KEPT_ROWS, _KEPT_COLUMNS = 5000, 20_000, 300
_YEARS = (1500, 2200)

# Of identifiers: the shares of missing and of distinct numbers, the density in a
# counter that an ordinary name needs, also of rows in order, and the share of rows that
# may be missing between row numbers and before the first.
_MOST_MISSING, _MOSTLY_DISTINCT = 0.1, 0.95
_LEAST_DENSITY, _LEAST_DENSITY_IN_ORDER = 0.1, 0.5
_GAPS, _MOST_SKIPPED = 0.1, 10.0
# Of as many independent draws from the range, so many pairs are expected to be equal;
# that none is has a probability of at most exp(-12).
_EXPECTED_PAIRS, _STANDARD_ERRORS = 12.0, 4.0

# Of the range of the target, what rounding in a file may change; the correlation of
# ranks that is too good; rows for each value that tells a class; columns of a sum.
_ROUNDING, _TOO_GOOD, _ROWS_PER_VALUE, _MOST_TERMS_OF_SUM = 1e-6, 0.999, 5, 200
_MOST_ROUNDED = 0.01

# Of groups: how many, of how many rows, and the share of the rows that are in one.
_FEWEST_GROUPS, _LEAST_ROWS_PER_GROUP, _SHARE_IN_GROUPS = 5, 2, 0.8
# The year, week and day in seconds, and how much more than by chance a target changes.
_CYCLES = np.array([365.2425 * 86400, 7 * 86400, 86400])
_TWENTIETHS, _FEWEST_IN_TIME, _MOST_CHANGE = 20, 100, 3.0


class Hint(NamedTuple):
    """A reason to leave a column out, with how to keep it, a remark, or a warning."""

    kind: Literal["reason", "remark", "warning"]
    text: str
    advice: str = ""


class FirstRows(NamedTuple):
    """The first rows of a column: numbers, seconds or places of texts, or NaN."""

    kind: Kind
    values: np.ndarray

    @classmethod
    def of(cls, column: ParsedColumn) -> "FirstRows":
        # A copy: a slice would hold the memory of the whole column.
        return cls(column.kind, column.numbers[:_KEPT_ROWS].astype(np.float64))

    @property
    def distinct(self) -> np.ndarray:
        """The distinct known values in order."""
        return np.unique(drop_missing(self.values))


Columns = Mapping[str, FirstRows]
# What a check of columns together says: the name of a column, and a sentence.
Warned = tuple[str, str] | None


class Leaks:
    """Examines one feature after the other, then all of them together."""

    def __init__(self, targets: Sequence[ParsedColumn] = ()) -> None:
        self.targets = targets
        self._seen: dict[bytes, str] = {}
        self._kept: dict[str, FirstRows] = {}

    def examine(self, column: ParsedColumn) -> list[Hint]:
        """Returns what the checks say of a feature; a reason stands alone."""
        has_rows = len(column.values) >= _FEWEST_ROWS
        checks = (
            (_find_constant, True),
            (self._find_repetition, has_rows),
            (find_identifier, True),
            (self._find_target, has_rows),
        )
        hints: list[Hint] = []
        for check, applies in checks:
            found = check(column) if applies else None
            if found is not None and found.kind == "reason":
                return [found]
            hints += [] if found is None else [found]
        if has_rows and len(self._kept) < _KEPT_COLUMNS:
            self._kept[column.name] = FirstRows.of(column)
        return hints

    def find_warnings(self, *, held_out_at_random: bool) -> dict[str, list[str]]:
        """Returns sentences on the examined features together, by column."""
        kept, found = self._kept, list[Warned]()
        if held_out_at_random:
            first = FirstRows.of(self.targets[0]) if self.targets else None
            found = [find_time(kept, first), find_groups(kept)]
        for target in self.targets:
            found += [_find_follow_up(kept, target), _find_sum(kept, target)]
        warnings: dict[str, list[str]] = {}
        for name, text in filter(None, found):
            warnings.setdefault(name, []).append(text)
        return warnings

    def _find_repetition(self, column: ParsedColumn) -> Hint | None:
        """Finds an earlier column with the same values."""
        # Adding 0.0 turns -0.0 into 0.0. Codes of texts and numbers differ in meaning.
        digest = hashlib.sha256((column.numbers + 0.0).data).digest()
        earlier = self._seen.setdefault(digest + column.kind.encode(), column.name)
        if earlier == column.name:
            return None
        return Hint("reason", f"It tells the same of each row as column {earlier!r}.")

    def _find_target(self, column: ParsedColumn) -> Hint | None:
        """Finds a column that gives the target away."""
        for target in self.targets:
            found = None
            if target.kind == "categorical":
                found = _compare_classes(column, target)
            elif column.kind != "categorical":
                found = _compare_numbers(column, target)
            if found is not None:
                return found
        return None


def _find_constant(column: ParsedColumn) -> Hint | None:
    values = column.numbers
    if column.missing.any() or values.min() < values.max():
        return None
    said = "It has the same value in every row, so a model learns nothing from it."
    return Hint("reason", said)


def find_identifier(column: ParsedColumn) -> Hint | None:
    """Finds out whether a column of numbers identifies the rows.

    A name such as `house_id` needs whole numbers most of which differ. A name such as
    `number` needs numbers that also grow from row to row or are part of a counter. Any
    other name needs a tenth of a counter that begins at 0 or 1: whole numbers so dense
    that measurements among them would repeat, and, in the order of the rows, at least
    half of it. What grows or counts in another way may be a time or a meter, so it is
    kept with a remark.
    """
    values = _whole_numbers(column)
    if values is None:
        return None
    ordered = np.sort(values)
    gaps, steps = np.diff(ordered), np.diff(values)
    number, distinct = len(values), 1 + int(np.count_nonzero(gaps))
    if distinct < _MOSTLY_DISTINCT * number:
        return None
    named, begins = naming(column.name), float(ordered[0])
    span = float(ordered[-1] - ordered[0]) + 1.0
    rises, falls = bool((steps > 0).all()), bool((steps < 0).all())
    sequential = (rises or falls) and span <= (1 + _GAPS) * number
    counts = _is_part_of_counter(gaps, span)
    least = _LEAST_DENSITY_IN_ORDER if rises or falls else _LEAST_DENSITY
    most_skipped = max(_GAPS * number, _MOST_SKIPPED * span / number)
    is_dense = number >= least * span and begins <= 1 + most_skipped
    differ = f"{distinct} of its {number} whole numbers differ"
    if distinct == number:
        differ = f"Its {number} whole numbers all differ"
    gradually = f"Its whole numbers {'grow' if rises else 'fall'} from row to row"
    reason = ""
    if sequential and begins <= 1 + _GAPS * number and named != "measurement":
        reason = "It numbers the rows."
    elif named == "identifier":
        reason = differ
    elif distinct < number or _YEARS[0] <= begins <= ordered[-1] <= _YEARS[1]:
        return None
    elif named == "numbering" and rises:
        reason = gradually
    elif counts and (named == "numbering" or (named == "other" and is_dense)):
        reason = f"{differ} and count with gaps"
    if reason:
        if not reason.endswith("."):
            reason += ", like an identifier, so a model learns nothing from it."
        option = shlex.quote(f"{column.name}=number")
        keep = f"Name it in `features` (or say --column {option}) to keep it."
        return Hint("reason", reason, keep)
    if not (rises or falls or counts):
        return None
    said = gradually if rises or falls else differ
    meter = ", a time or the reading of a meter" if rises or falls else ""
    end = "; if it is an identifier, leave it out (--ignore)."
    return Hint("remark", f"{said}, like an identifier{meter}{end}")


def _whole_numbers(column: ParsedColumn) -> np.ndarray | None:
    """Returns the known numbers if they are whole, from 0 on, and may all differ."""
    if column.kind != "numeric" or (column.notation and column.notation.needs_text):
        return None
    values = drop_missing(column.values, column.missing)
    fewest = max(_FEWEST_ROWS, (1 - _MOST_MISSING) * len(column.values))
    if len(values) < fewest or values.min() < 0 or (values != np.floor(values)).any():
        return None
    first = values[:_FIRST_ROWS]
    return values if len(np.unique(first)) >= _MOSTLY_DISTINCT * len(first) else None


def _is_part_of_counter(gaps: np.ndarray, span: float) -> bool:
    """Whether distinct whole numbers look like rows drawn from a counter.

    Measurements in the range would repeat (the problem of birthdays), and of a random
    part the share of gaps of 1 is that of the numbers that are there, or more.
    """
    number = len(gaps) + 1
    density = number / span
    if number * density / 2 < _EXPECTED_PAIRS:
        return False
    error = np.sqrt(max(density * (1 - density), 0.0) / len(gaps))
    return bool(np.mean(gaps == 1) >= density - _STANDARD_ERRORS * error)


def _compare_numbers(column: ParsedColumn, target: ParsedColumn) -> Hint | None:
    x = drop_missing(column.numbers, column.missing)
    y = drop_missing(target.values, column.missing)
    first = slice(0, _FIRST_ROWS)
    if len(np.unique(x[first])) < _FEWEST_ROWS or y.min() == y.max():
        return None
    low, high = np.argmin(x), np.argmax(x)
    slope = (y[high] - y[low]) / (x[high] - x[low])
    away = np.abs(y[low] + slope * (x - x[low]) - y).max()
    if column.kind == "numeric" and slope and away <= _ROUNDING * np.ptp(y):
        said = (
            f"It is the target {target.name!r} in other units, or its copy, in "
            "each row, so it gives the target away."
        )
        if len(x) >= _FEWEST_CERTAIN_ROWS and not column.missing.any():
            return Hint("reason", said)
        return _gives_away(column, said)
    if not all(_have_one_order(x[rows], y[rows]) for rows in (first, slice(None))):
        return None
    said = f"It alone tells the order of the target {target.name!r} in nearly all rows."
    return _gives_away(column, said)


def _have_one_order(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether the ranks of two columns, one of which may fall, agree nearly."""
    ranks, others = (np.unique(values, return_inverse=True)[1] for values in (x, y))
    return bool(abs(np.corrcoef(ranks, others)[0, 1]) > _TOO_GOOD)


def _compare_classes(column: ParsedColumn, target: ParsedColumn) -> Hint | None:
    known = ~np.isnan(column.numbers)
    _, codes = np.unique(column.numbers[known], return_inverse=True)
    classes = target.values[known]
    if not len(codes) or _ROWS_PER_VALUE * (codes.max() + 1) > len(codes):
        return None
    number = int(classes.max()) + 1
    pairs = np.unique(codes * number + classes)
    if len(pairs) > codes.max() + 1:
        return None
    one_to_one = len(np.unique(pairs % number)) == len(pairs)
    if one_to_one and len(codes) >= _FEWEST_CERTAIN_ROWS and known.all():
        return Hint("reason", f"It is a copy of the target {target.name!r}.")
    return _gives_away(column, f"It determines the target {target.name!r} in each row.")


def _gives_away(column: ParsedColumn, said: str) -> Hint:
    return Hint(
        "warning",
        f"{said} If it is not known before the target is, leave it out "
        f"(--ignore {shlex.quote(column.name)}).",
    )


def find_time(columns: Columns, target: FirstRows | None = None) -> Warned:
    """Finds the column of dates with which the target changes, those in order first."""
    dates = {
        name: column
        for name, column in columns.items()
        if column.kind == "date" and BIRTHS.isdisjoint(words(name))
        if len(column.distinct) > 1
    }
    in_order = [name for name, column in dates.items() if _is_in_order(column)]
    name = next(iter([*in_order, *dates]), None)
    if name is None:
        return None
    said, changes = "It holds dates", ""
    if in_order:
        said += ", and the rows are in its order"
    if target is not None:
        ratio = _change_in_time(columns[name].values, target.values)
        if ratio < _MOST_CHANGE:
            return None
        changes = (
            f", as the target changes {shown_number(ratio, 2)} times as much between "
            "twentieths of the time as by chance"
        )
    return name, (
        f"{said}. Rows that are held out at random lie between training rows in time, "
        f"so the figures may be better than those of later rows{changes}; measure the "
        "last rows instead, with a validation by time "
        f"(--validation-time {shlex.quote(name)})."
    )


def _is_in_order(column: FirstRows) -> bool:
    steps = np.diff(drop_missing(column.values))
    return bool(len(steps) and ((steps >= 0).all() or (steps <= 0).all()))


def _change_in_time(times: np.ndarray, y: np.ndarray) -> float:
    """Returns the F statistic of twentieths of the time, without yearly cycles."""
    known = np.flatnonzero(~np.isnan(times) & ~np.isnan(y))
    order = known[np.argsort(times[known], kind="stable")]
    if len(order) < _FEWEST_IN_TIME:
        return 0.0
    angles = 2.0 * np.pi * times[order, np.newaxis] / _CYCLES
    cycles = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    cycles -= cycles.mean(axis=0)
    left = y[order] - y[order].mean()
    left -= cycles @ np.linalg.lstsq(cycles, left)[0]
    parts = np.array_split(left, _TWENTIETHS)
    between = sum(len(part) * np.mean(part) ** 2 for part in parts)
    within = np.square(left).sum() - between
    degrees = (len(left) - _TWENTIETHS) / (_TWENTIETHS - 1)
    return float(degrees * between / within) if within > 0.0 else np.inf


def find_groups(columns: Columns) -> Warned:
    """Finds the column named after persons or stations with several rows for each."""
    found: list[tuple[int, str, int]] = []
    for name, column in columns.items():
        known = drop_missing(column.values)
        few = len(known) < max(_FEWEST_ROWS, 0.99 * len(column.values))
        if few or column.kind == "date" or not names_a_group(name):
            continue
        _, sizes = np.unique(column.values, return_counts=True)
        if (
            (known == np.floor(known)).all()
            and len(sizes) >= _FEWEST_GROUPS
            and len(column.values) >= _LEAST_ROWS_PER_GROUP * len(sizes)
            and sizes[sizes > 1].sum() >= _SHARE_IN_GROUPS * len(column.values)
        ):
            found.append((len(sizes), name, len(column.values)))
    if not found:
        return None
    groups, name, rows = min(found, key=lambda group: group[0])
    return name, (
        f"Each of its {groups} values has {shown_number(rows / groups, 2)} rows on "
        "average, like a person or a station that was measured several times. If rows "
        "to predict have other values than these, the figures are too good; hold whole "
        "groups out with a validation by group "
        f"(--validation-group {shlex.quote(name)})."
    )


def _find_follow_up(columns: Columns, of: ParsedColumn) -> Warned:
    """Finds an event beside a target that is its time, or the time beside an event."""
    name, target = of.name, FirstRows.of(of)
    for other, column in columns.items():
        if _is_time(name, target) and _is_event(other, column):
            return other, (
                f"If it tells whether {name!r} ended with an event or with the "
                f"observation, {name!r} is only a least time in some rows, and "
                "predicted times are too short: name it as the event "
                f"(--event {shlex.quote(other)})."
            )
        if _is_event(name, target) and _is_time(other, column):
            return other, (
                f"If it is the time until {name!r} or the end of the observation, it "
                f"gives {name!r} away: leave it out (--ignore {shlex.quote(other)}), "
                "and the rows that were observed for too short a time, too."
            )
    return None


def _is_time(name: str, column: FirstRows) -> bool:
    named = column.kind == "numeric" and names_follow_up(name, TIMES)
    return named and len(column.distinct) > 2 and bool(column.distinct[0] >= 0)


def _is_event(name: str, column: FirstRows) -> bool:
    return names_follow_up(name, EVENTS) and len(column.distinct) == 2


def _find_sum(columns: Columns, target: ParsedColumn) -> Warned:
    """Finds columns of numbers of which the target is a sum or a linear function."""
    if target.kind == "categorical":
        return None
    first = target.numbers[:_KEPT_ROWS]
    numbers = {k: x.values for k, x in columns.items() if x.kind == "numeric"}
    terms = find_sum(numbers, first)
    if not terms:
        return None
    names = [name for _, name in terms]
    shown = f" a linear function of {listed([*map(repr, names)])}"
    if all(abs(factor) == 1 for factor, _ in terms):
        ordered = sorted(terms, key=lambda term: -term[0])
        signed = (f" {'+' if sign > 0 else '-'} {name!r}" for sign, name in ordered)
        shown = "".join(signed).removeprefix(" +")
    options = " ".join(f"--ignore {shlex.quote(name)}" for name in names)
    in_part = len(first) < len(target.values)
    where = f"the first {_KEPT_ROWS} rows" if in_part else "each row"
    return names[0], (
        f"The target {target.name!r} is{shown} in {where}; if they "
        f"are not known before the target is, leave them out ({options})."
    )


def find_sum(
    columns: Mapping[str, np.ndarray], target: np.ndarray
) -> tuple[tuple[float, str], ...]:
    """Returns the columns whose sum is the target, with the factor of each.

    Least squares fit the target by all columns. If the fit is exact in each row, up to
    the rounding of decimals, it gives up one column after the other for as long as it
    stays so. Factors other than 1 and -1 need a fit that is exact up to the rounding of
    the target, which must be small beside its range.
    """
    known = {name: ~np.isnan(values) for name, values in columns.items()}
    names: list[str] = []
    complete = ~np.isnan(target)
    for name in sorted(columns, key=lambda name: -int(known[name].sum())):
        both = complete & known[name]
        if 2 * both.sum() < complete.sum() or len(names) == _MOST_TERMS_OF_SUM:
            break
        if both.any() and np.ptp(columns[name][both]) > 0:
            names.append(name)
            complete = both
    names, y = [name for name in columns if name in names], target[complete]
    if len(y) < _FEWEST_ROWS or len(names) < 2 or y.min() == y.max():
        return ()
    # The last column is that of the intercept.
    given = [columns[name][complete] for name in names]
    x = np.stack([*given, np.ones(len(y))], axis=1)
    sizes, least = np.abs(x).max(axis=0), _ROUNDING * float(np.ptp(y))
    rounding = np.array([_half_of_last_decimal(numbers) for numbers in (*x.T, y)])

    def fit(places: list[int]) -> np.ndarray | None:
        """Returns the factors of columns whose sum is y in each row, or None."""
        number = min(len(x), 2 * len(places) + _FEWEST_ROWS)
        some = np.linspace(0, len(x) - 1, number).astype(int)
        scaled = x[:, [*places, -1]] / sizes[[*places, -1]]
        terms = np.linalg.lstsq(scaled[some], y[some])[0]
        error = np.abs(scaled @ terms - y).max()
        is_exact = error <= max(least, rounding[[*places, -1]].sum())
        return terms[:-1] if is_exact else None

    # More rows than columns, so that no sum fits by chance.
    closest = np.argsort(-_correlations(x[:, :-1], y), kind="stable")
    left = [int(place) for place in closest[: len(y) - _FEWEST_ROWS + 1]]
    terms = fit(left)
    if terms is None:
        return ()
    for place in [left[i] for i in np.argsort(np.abs(terms), kind="stable")]:
        others = [other for other in left if other != place]
        if others and fit(others) is not None:
            left = others
    left.sort()
    if len(left) < 2:
        return ()
    factors = np.linalg.lstsq(x[:, [*left, -1]], y)[0]
    signs = np.rint(factors[:-1])
    error = np.abs(x[:, left] @ signs - y).max()
    is_sum = bool((np.abs(signs) == 1.0).all())
    if not is_sum or error > max(least, rounding[[*left, -1]].sum()):
        signs, error = factors[:-1], np.abs(x[:, [*left, -1]] @ factors - y).max()
        if error > min(max(least, rounding[-1]), _MOST_ROUNDED * np.ptp(y)):
            return ()
    return tuple((float(sign), names[p]) for p, sign in zip(left, signs, strict=True))


def _half_of_last_decimal(numbers: np.ndarray) -> float:
    """Returns what rounding changes at most; 0.0 for whole and for long numbers."""
    for decimals in range(4):
        scaled = numbers * 10.0**decimals
        if np.abs(scaled - np.rint(scaled)).max() < _ROUNDING:
            return 0.5 * 10.0**-decimals if decimals else 0.0
    return 0.0


def _correlations(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    x, y = x - x.mean(axis=0), y - y.mean()
    sizes = np.linalg.norm(x, axis=0)
    return np.abs(y @ x) / np.where(sizes > 0, sizes, np.inf)
