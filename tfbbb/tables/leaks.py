"""Checks for columns that teach a model nothing, or that flatter its figures."""

import hashlib
import shlex
from collections.abc import Mapping
from typing import Literal, NamedTuple

import numpy as np

from tfbbb.base.texts import shown_number
from tfbbb.tables.cells import Kind
from tfbbb.tables.column_words import (
    BIRTHS,
    EVENTS,
    PARTS_OF_YEARS,
    TIMES,
    YEARS,
    names_a_group,
    names_follow_up,
    naming,
    words,
)
from tfbbb.tables.notations.number import NumberNotation
from tfbbb.tables.parsed_column import ParsedColumn
from tfbbb.tables.values import drop_missing

# Fewer rows may agree by chance.
_FEWEST_ROWS = 20
_FEWEST_CERTAIN_ROWS = 50
# Rows that are looked at before all are.
_FIRST_ROWS = 5000
# What is kept of the features, which are compared with each other.
_KEPT_ROWS, _KEPT_COLUMNS = 20_000, 300
_YEARS = (1500, 2200)

# Of identifiers: the shares of missing and of distinct numbers.
_MOST_MISSING, _MOSTLY_DISTINCT = 0.1, 0.95
# Of as many independent draws from the range, so many pairs are expected to be equal;
# that none is has a probability of at most exp(-12).
_EXPECTED_PAIRS = 12.0
_STANDARD_ERRORS = 4.0
# The share of a counter that a table with an ordinary name for it must have.
_LEAST_DENSITY, _LEAST_DENSITY_IN_ORDER = 0.1, 0.5
# The share of rows that may be missing between row numbers, and before the first.
_GAPS, _MOST_SKIPPED = 0.1, 10.0

# Of the range of the target: what rounding in a file may change.
_ROUNDING = 1e-6
_TOO_GOOD = 0.999
_ROWS_PER_VALUE = 5
# Of sums: columns at most, and in all of them what rounding their decimals may change,
# in roundings and of the range of the target.
_MOST_TERMS_OF_SUM, _ROUNDINGS, _MOST_ROUNDING = 200, 10.0, 1e-3

# Of groups: how many, of how many rows, and with how many constant columns.
_FEWEST_NAMED_GROUPS, _FEWEST_GROUPS = 5, 20
_LEAST_ROWS_PER_GROUP, _SHARE_IN_GROUPS = 2, 0.8
_FEWEST_CONSTANT_COLUMNS = 2
# Over the values of a column in order, a column of two values that was computed from
# it changes once, or twice; that of a person changes often.
_MOST_CHANGES = 2
_FIRST_PAIRS = 300

# Of the comparison of the last rows with others: indicators of a column, terms of all,
# the year, week and day in seconds, and how much more error is too much.
_LEVELS, _MOST_TERMS = 20, 500
_CYCLES = (365.2425 * 86400, 7 * 86400, 86400)
_MORE_ERROR = 1.1


class Hint(NamedTuple):
    """What a check says: a reason to leave a column out, a remark, or a warning."""

    kind: Literal["reason", "remark", "warning"]
    text: str
    # How to keep a column although there is a reason against it.
    advice: str = ""


class FirstRows(NamedTuple):
    """The first rows of a column: numbers, seconds or places of texts, or NaN."""

    kind: Kind
    values: np.ndarray


# What a check of columns together says: the name of a column, and a sentence.
Warned = tuple[str, str] | None


class Leaks:
    """Examines one feature after the other, then all of them together."""

    def __init__(self, target: ParsedColumn | None = None) -> None:
        self.target = target
        self._seen: dict[bytes, str] = {}
        self._kept: dict[str, FirstRows] = {}

    def examine(self, column: ParsedColumn) -> list[Hint]:
        """Returns what the checks say of a feature; a reason stands alone."""
        checks = [_find_constant, find_identifier]
        if len(column.values) >= _FEWEST_ROWS:
            checks = [_find_constant, self._find_repetition, find_identifier]
            checks += [self._find_target] if self.target is not None else []
        hints: list[Hint] = []
        for check in checks:
            found = check(column)
            if found is not None and found.kind == "reason":
                return [found]
            hints += [] if found is None else [found]
        if len(column.values) >= _FEWEST_ROWS and len(self._kept) < _KEPT_COLUMNS:
            self._kept[column.name] = _first_rows(column)
        return hints

    def find_warnings(self, *, held_out_at_random: bool) -> dict[str, list[str]]:
        """Returns sentences on the examined features together, by column."""
        target = None if self.target is None else _first_rows(self.target)
        found = []
        if held_out_at_random:
            found = [find_time(self._kept, target), find_groups(self._kept)]
        if self.target is not None and target is not None:
            found += [
                _find_follow_up(self._kept, target, self.target.name),
                _find_sum(self._kept, self.target),
            ]
        warnings: dict[str, list[str]] = {}
        for name, text in filter(None, found):
            warnings.setdefault(name, []).append(text)
        return warnings

    def _find_repetition(self, column: ParsedColumn) -> Hint | None:
        """Finds an earlier column with the same values."""
        # Adding 0.0 turns -0.0 into 0.0. Codes of texts and numbers differ in meaning.
        digest = hashlib.sha256((column.numbers + 0.0).data).digest()
        digest += column.kind.encode()
        earlier = self._seen.setdefault(digest, column.name)
        if earlier == column.name:
            return None
        return Hint("reason", f"It tells the same of each row as column {earlier!r}.")

    def _find_target(self, column: ParsedColumn) -> Hint | None:
        """Finds a column that gives the target away."""
        assert self.target is not None
        if self.target.kind == "categorical":
            return _compare_classes(column, self.target)
        if column.kind == "categorical":
            return None
        return _compare_numbers(column, self.target)


def _find_constant(column: ParsedColumn) -> Hint | None:
    values = column.numbers
    if column.missing.any() or values.min() < values.max():
        return None
    said = "It has the same value in every row, so a model learns nothing from it."
    return Hint("reason", said)


def _first_rows(column: ParsedColumn) -> FirstRows:
    # A copy: a slice would hold the memory of the whole column.
    return FirstRows(column.kind, column.numbers[:_KEPT_ROWS].astype(np.float64))


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
    density = number / span
    rises, falls = bool((steps > 0).all()), bool((steps < 0).all())
    sequential = (rises or falls) and span <= (1 + _GAPS) * number
    differ = f"Its {number} whole numbers all differ"
    if distinct < number:
        differ = f"{distinct} of its {number} whole numbers differ"
    gradually = f"Its whole numbers {'grow' if rises else 'fall'} from row to row"
    useless = "like an identifier, so a model learns nothing from it."
    leave = "leave it out if it is one (--ignore)."
    if sequential and begins <= 1 + _GAPS * number and named != "measurement":
        return _identifies(column, "It numbers the rows.")
    if named == "identifier":
        return _identifies(column, f"{differ}, {useless}")
    if distinct < number or _YEARS[0] <= begins <= ordered[-1] <= _YEARS[1]:
        return None
    if named == "numbering" and rises:
        return _identifies(column, f"{gradually}, {useless}")
    counts = _is_part_of_counter(gaps, span)
    from_start = begins <= 1 + max(_GAPS * number, _MOST_SKIPPED / density)
    least = _LEAST_DENSITY_IN_ORDER if rises or falls else _LEAST_DENSITY
    is_dense = named == "other" and from_start and density >= least
    if counts and (named == "numbering" or is_dense):
        return _identifies(column, f"{differ} and count with gaps, {useless}")
    if sequential:
        text = f"It grows by one from row to row, like an identifier; {leave}"
        return Hint("remark", text)
    if rises or falls:
        meter = "like an identifier, a time or the reading of a meter; if it is an"
        return Hint(
            "remark", f"{gradually}, {meter} identifier, leave it out (--ignore)."
        )
    return Hint("remark", f"{differ}, like an identifier; {leave}") if counts else None


def _identifies(column: ParsedColumn, text: str) -> Hint:
    option = shlex.quote(f"{column.name}=number")
    keep = f"Name it in `features` (or say --column {option}) to keep it."
    return Hint("reason", text, keep)


def _whole_numbers(column: ParsedColumn) -> np.ndarray | None:
    """Returns the known numbers if they may identify rows."""
    notation, number = column.notation, len(column.values)
    has_unit = notation is not None and not (
        isinstance(notation, NumberNotation)
        and not (notation.currency or notation.unit or notation.percent)
    )
    if column.kind != "numeric" or number < _FEWEST_ROWS or has_unit:
        return None
    if not _may_identify(drop_missing(column.values[:_FIRST_ROWS])):
        return None
    values = drop_missing(column.values, column.missing)
    enough = len(values) >= max(_FEWEST_ROWS, (1 - _MOST_MISSING) * number)
    return values if enough and _may_identify(values) else None


def _may_identify(values: np.ndarray) -> bool:
    """Whether these are whole numbers from 0 on, most of which differ."""
    if not len(values) or values.min() < 0 or (values != np.floor(values)).any():
        return False
    return len(values) > _FIRST_ROWS or (
        len(np.unique(values)) >= _MOSTLY_DISTINCT * len(values)
    )


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
    if _is_affine(x, y) and column.kind == "numeric":
        said = (
            f"It is the target {target.name!r} in other units, or its copy, in "
            "each row, so it gives the target away."
        )
        if len(x) >= _FEWEST_CERTAIN_ROWS and not column.missing.any():
            return Hint("reason", said)
        return _gives_away(column, said)
    if _is_monotone(x[first], y[first]) and _is_monotone(x, y):
        said = f"It is a monotone function of the target {target.name!r}."
        return _gives_away(column, said)
    explained = float(_correlations(x[:, np.newaxis], y)[0] / np.std(y)) ** 2 / len(y)
    if explained <= _TOO_GOOD:
        return None
    said = f"It alone explains {100 * explained:.2f} % of the variance of the target"
    return _gives_away(column, f"{said} {target.name!r}.")


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


def _is_affine(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether y is a + b x in every row, up to rounding."""
    low, high = np.argmin(x), np.argmax(x)
    slope = (y[high] - y[low]) / (x[high] - x[low])
    away = np.abs(y[low] + slope * (x - x[low]) - y).max()
    return bool(slope) and bool(away <= _ROUNDING * (y.max() - y.min()))


def _is_monotone(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether y strictly rises, or strictly falls, with x in every row."""
    order = np.lexsort((y, x))
    dx, dy = np.diff(x[order]), np.diff(y[order])
    if (dy[dx == 0] != 0).any():
        return False
    steps = dy[dx > 0]
    return bool((steps > 0).all() or (steps < 0).all())


def find_time(
    columns: Mapping[str, FirstRows], target: FirstRows | None = None
) -> Warned:
    """Finds the column by whose time rows can be held out.

    With a target, a linear model must predict the last rows worse than others.
    """
    name, said = _find_time(columns)
    if not said:
        return None
    if _is_in_order(columns[name].values):
        said += ", and the rows are in its order"
    compared = ""
    if target is not None:
        ratio = _error_of_last_rows(name, columns, target)
        if ratio < _MORE_ERROR:
            return None
        compared = (
            f": those of a linear model have {shown_number(ratio, 2)} times the error "
            "in the last fifth of the rows"
        )
    return name, (
        f"{said}. Rows that are held out at random lie between training rows in time, "
        f"so the figures may be better than those of later rows{compared}; measure the "
        "last rows instead, with a validation by time "
        f"(--validation-time {shlex.quote(name)})."
    )


def _find_time(columns: Mapping[str, FirstRows]) -> tuple[str, str]:
    """Returns a column of dates, or of years beside months, and how it tells a time."""
    dates = [
        name
        for name, column in columns.items()
        if column.kind == "date"
        and not BIRTHS.intersection(words(name))
        and len(np.unique(drop_missing(column.values))) > 1
    ]
    if dates:
        in_order = (name for name in dates if _is_in_order(columns[name].values))
        return next(in_order, dates[0]), "It holds dates"
    # Such as `year_sold` and `month_sold`, beside `year_built`.
    parts = {
        frozenset(words(name)) - PARTS_OF_YEARS: name
        for name, column in reversed(list(columns.items()))
        if column.kind != "date" and PARTS_OF_YEARS.intersection(words(name))
    }
    for name, column in columns.items():
        part = parts.get(frozenset(words(name)) - YEARS)
        if part is not None and _holds_years(name, column):
            return name, f"With {part!r} it tells a time"
    return "", ""


def _holds_years(name: str, column: FirstRows) -> bool:
    if column.kind != "numeric" or not YEARS.intersection(words(name)):
        return False
    known = drop_missing(column.values)
    whole = bool((known == np.floor(known)).all())
    return whole and _YEARS[0] <= known.min() < known.max() <= _YEARS[1]


def _is_in_order(values: np.ndarray) -> bool:
    steps = np.diff(drop_missing(values))
    return bool(len(steps) and ((steps >= 0).all() or (steps <= 0).all()))


def _error_of_last_rows(
    name: str, columns: Mapping[str, FirstRows], target: FirstRows
) -> float:
    """Returns the error of a linear model in the last fifth over that in a random one.

    The model knows the calendar, and the level of the target in each twentieth of the
    rows, as a network would learn it.
    """
    times, y = columns[name].values, target.values
    if target.kind == "categorical":
        classes, sizes = np.unique(drop_missing(y), return_counts=True)
        y = (y == classes[sizes.argmax()]).astype(float)
    known = np.flatnonzero(~np.isnan(times) & ~np.isnan(y))
    order = known[np.argsort(times[known], kind="stable")]
    ranks = np.empty(len(times))
    ranks[order] = np.arange(len(order)) * _LEVELS // max(len(order), 1)
    parts = [_indicators(ranks), *map(_linear_terms, columns.values())]
    x = np.concatenate(parts, axis=1)[:, :_MOST_TERMS]
    number = len(order) // 5
    if not number:
        return np.inf
    errors = []
    for rows in (order, np.random.default_rng(0).permutation(order)):
        fitted, measured = rows[:-number], rows[-number:]
        centre = x[fitted].mean(axis=0)
        units, level = x[fitted] - centre, y[fitted].mean()
        weights = np.linalg.solve(
            units.T @ units + np.eye(x.shape[1]), units.T @ (y[fitted] - level)
        )
        predicted = level + (x[measured] - centre) @ weights
        errors.append(float(np.sqrt(np.mean(np.square(predicted - y[measured])))))
    return errors[0] / errors[1] if errors[1] else np.inf


def _linear_terms(column: FirstRows) -> np.ndarray:
    """Returns the terms of a column in a linear model, [n, terms]."""
    values = column.values
    if column.kind == "categorical":
        return _indicators(values)
    scale = np.nanstd(values) or 1.0
    terms = [(values - np.nanmean(values)) / scale]
    if column.kind == "date":
        for seconds in _CYCLES:
            angle = 2.0 * np.pi * values / seconds
            terms += [np.sin(angle), np.cos(angle)]
    return np.nan_to_num(np.stack(terms, axis=1))


def _indicators(codes: np.ndarray) -> np.ndarray:
    """Returns one column for each of the commonest codes, [n, codes]."""
    found, counts = np.unique(drop_missing(codes), return_counts=True)
    commonest = found[np.argsort(-counts, kind="stable")[:_LEVELS]]
    return (codes[:, np.newaxis] == commonest).astype(float)


def find_groups(columns: Mapping[str, FirstRows]) -> Warned:
    """Finds the column whose values group the rows.

    It has several rows for most of its values, and either its name says person, station
    or identifier, or two other columns at least are constant for each of its values.
    """
    found: list[tuple[tuple[bool, int, int], str, str]] = []
    for name, column in columns.items():
        codes = _group_codes(column)
        sizes = np.zeros(0) if codes is None else np.bincount(codes)
        named = names_a_group(name)
        fewest = _FEWEST_NAMED_GROUPS if named else _FEWEST_GROUPS
        if codes is None or len(sizes) < fewest:
            continue
        together = sizes[sizes > 1].sum()
        if len(codes) < _LEAST_ROWS_PER_GROUP * len(sizes) or (
            together < _SHARE_IN_GROUPS * len(codes)
        ):
            continue
        constant = _count_constant(name, codes, columns)
        if not named and constant < _FEWEST_CONSTANT_COLUMNS:
            continue
        mean = shown_number(len(codes) / len(sizes), 2)
        said = f"Each of its {len(sizes)} values has {mean} rows on average"
        if constant:
            others = "another column is" if constant == 1 else f"{constant} others are"
            said += f", in which {others} constant"
        found.append(((named, constant, -len(sizes)), name, said))
    if not found:
        return None
    _, name, said = max(found, key=lambda group: group[0])
    return name, (
        f"{said}, like a person or a station that was measured several times. If rows "
        "to predict have other values than these, the figures are too good; hold whole "
        "groups out with a validation by group "
        f"(--validation-group {shlex.quote(name)})."
    )


def _group_codes(column: FirstRows) -> np.ndarray | None:
    """Returns the number of each known row's value; None if it cannot be a group."""
    if column.kind == "date":
        return None
    values = drop_missing(column.values)
    if len(values) < max(_FEWEST_ROWS, 0.99 * len(column.values)):
        return None
    if any((x != np.floor(x)).any() for x in (values[:_FIRST_PAIRS], values)):
        return None
    codes: np.ndarray = np.unique(column.values, return_inverse=True)[1]
    return codes


def _count_constant(
    name: str, codes: np.ndarray, columns: Mapping[str, FirstRows]
) -> int:
    """Counts the other columns that are the same in all rows of each group."""
    order = np.argsort(codes, kind="stable")
    together = np.flatnonzero(codes[order][1:] == codes[order][:-1])
    pairs = np.stack([order[together], order[together + 1]])
    few = np.linspace(0, len(together) - 1, min(len(together), _FIRST_PAIRS))
    number, found = int(codes.max()) + 1, 0
    for other, (kind, values) in columns.items():
        if other == name or kind == "date":
            continue
        if not all(_are_equal(values, p) for p in (pairs[:, few.astype(int)], pairs)):
            continue
        _, counts = np.unique(values, return_counts=True)
        if not 2 <= len(counts) < number or _tells_a_range(values, codes):
            continue
        # Columns without regard to groups are expected to differ in many pairs.
        different = 1.0 - float(np.square(counts / len(values)).sum())
        found += len(together) * different >= _EXPECTED_PAIRS
    return found


def _tells_a_range(values: np.ndarray, codes: np.ndarray) -> bool:
    """Whether a column tells one of two ranges of the codes, such as `is_adult`."""
    of_groups = drop_missing(values[np.unique(codes, return_index=True)[1]])
    changes = np.count_nonzero(np.diff(of_groups))
    return bool(len(np.unique(of_groups)) == 2 and changes <= _MOST_CHANGES)


def _are_equal(values: np.ndarray, pairs: np.ndarray) -> bool:
    x, y = values[pairs]
    return bool(((x == y) | (np.isnan(x) & np.isnan(y))).all())


def _find_follow_up(
    columns: Mapping[str, FirstRows], target: FirstRows, name: str
) -> Warned:
    """Finds an event beside a target that is its time, or the time beside an event."""
    for other, column in columns.items():
        if _is_time(name, target) and _is_event(other, column):
            return other, (
                f"If it tells whether {name!r} ended with an event or with the "
                f"observation, {name!r} is only a least time in some rows, and "
                "predicted times are too short. There is no likelihood for such "
                "times: use a survival analysis, or predict whether the event "
                "comes within a time for which each row was observed."
            )
        if _is_event(name, target) and _is_time(other, column):
            return other, (
                f"If it is the time until {name!r} or the end of the observation, "
                f"it is not known before {name!r} is, and gives it away: leave it "
                f"out (--ignore {shlex.quote(other)}), and the rows that were "
                "observed for too short a time, too."
            )
    return None


def _is_time(name: str, column: FirstRows) -> bool:
    if column.kind != "numeric" or not names_follow_up(name, TIMES):
        return False
    known = drop_missing(column.values)
    return len(np.unique(known)) > 2 and bool((known >= 0).all())


def _is_event(name: str, column: FirstRows) -> bool:
    return names_follow_up(name, EVENTS) and (
        len(np.unique(drop_missing(column.values))) == 2
    )


def _find_sum(columns: Mapping[str, FirstRows], target: ParsedColumn) -> Warned:
    """Finds columns of numbers that add up to the target."""
    if target.kind == "categorical":
        return None
    first = target.numbers[:_KEPT_ROWS]
    numbers = {k: x.values for k, x in columns.items() if x.kind == "numeric"}
    terms = find_sum(numbers, first)
    if not terms:
        return None
    ordered = sorted(terms, key=lambda term: -term[0])
    shown = "".join(f" {'+' if sign > 0 else '-'} {name!r}" for sign, name in ordered)
    options = " ".join(f"--ignore {shlex.quote(name)}" for _, name in terms)
    in_part = len(first) < len(target.values)
    where = f"the first {_KEPT_ROWS} rows" if in_part else "each row"
    return terms[0][1], (
        f"The target {target.name!r} is{shown.removeprefix(' +')} in {where}; if they "
        f"are not known before the target is, leave them out ({options})."
    )


def find_sum(
    columns: Mapping[str, np.ndarray], target: np.ndarray
) -> tuple[tuple[int, str], ...]:
    """Returns the columns whose sum is the target, with the sign of each.

    Least squares fit the target by all columns. If the fit is exact in each row, up to
    the rounding of decimals, it gives up one column after the other for as long as it
    stays so.
    """
    names, rows = _choose_terms(columns, target)
    y = target[rows]
    if len(rows) < _FEWEST_ROWS or len(names) < 2 or y.min() == y.max():
        return ()
    x = np.stack([columns[name][rows] for name in names], axis=1)
    scaled, least = x / np.abs(x).max(axis=0), _ROUNDING * float(np.ptp(y))
    rounding = np.array([_half_of_last_decimal(numbers) for numbers in (*x.T, y)])
    most = min(_ROUNDINGS * rounding.sum(), _MOST_ROUNDING * np.ptp(y))

    def fit(places: list[int]) -> np.ndarray | None:
        """Returns the terms of some columns whose sum is y in each row, or None."""
        number = min(len(x), 2 * len(places) + _FEWEST_ROWS)
        some = np.linspace(0, len(x) - 1, number).astype(int)
        terms: np.ndarray = np.linalg.lstsq(scaled[some][:, places], y[some])[0]
        error = np.abs(scaled[:, places] @ terms - y).max()
        return terms if error <= max(least, most) else None

    # More rows than columns, so that no sum fits by chance.
    closest = np.argsort(-_correlations(x, y), kind="stable")
    left = [int(place) for place in closest[: len(rows) - _FEWEST_ROWS + 1]]
    terms = fit(left)
    if terms is None:
        return ()
    order = [left[place] for place in np.argsort(np.abs(terms), kind="stable")]
    none = [
        place for place, size in zip(left, terms, strict=True) if abs(size) <= least
    ]
    for given_up in (none, *([place] for place in order)):
        others = [place for place in left if place not in given_up]
        if 0 < len(others) < len(left) and fit(others) is not None:
            left = others
    left.sort()
    signs = np.rint(np.linalg.lstsq(x[:, left], y)[0])
    error = np.abs(x[:, left] @ signs - y).max()
    is_sum = len(left) > 1 and bool((np.abs(signs) == 1.0).all())
    if not is_sum or error > max(least, rounding[[*left, -1]].sum()):
        return ()
    return tuple((int(sign), names[p]) for p, sign in zip(left, signs, strict=True))


def _half_of_last_decimal(numbers: np.ndarray) -> float:
    """Returns what rounding changes at most; 0.0 for whole and for long numbers."""
    for decimals in range(4):
        scaled = numbers * 10.0**decimals
        if np.abs(scaled - np.rint(scaled)).max() < _ROUNDING:
            return 0.5 * 10.0**-decimals if decimals else 0.0
    return 0.0


def _choose_terms(
    columns: Mapping[str, np.ndarray], target: np.ndarray
) -> tuple[list[str], np.ndarray]:
    """Returns the columns with the fewest gaps, and the rows that are complete."""
    known = {name: ~np.isnan(values) for name, values in columns.items()}
    order = sorted(columns, key=lambda name: -int(known[name].sum()))
    chosen, complete = set(), ~np.isnan(target)
    for name in order[:_MOST_TERMS_OF_SUM]:
        both = complete & known[name]
        if 2 * both.sum() < complete.sum():
            break
        if both.any() and np.ptp(columns[name][both]) > 0:
            chosen.add(name)
            complete = both
    return [name for name in columns if name in chosen], np.flatnonzero(complete)


def _correlations(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    x, y = x - x.mean(axis=0), y - y.mean()
    sizes = np.linalg.norm(x, axis=0)
    return np.abs(y @ x) / np.where(sizes > 0, sizes, np.inf)
