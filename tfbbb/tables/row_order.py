"""Finds an order of the rows in time, and groups of rows that belong together.

Rows that are held out at random then have neighbours among the training rows, and the
figures of a model are better than those of later rows and of other groups.
"""

import shlex
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from tfbbb.base.texts import shown_number
from tfbbb.tables.cells import Kind
from tfbbb.tables.identifiers import naming, words

_FEWEST_ROWS = 20
_YEARS = (1500, 2200)
_BIRTHS = frozenset(
    (
        *("birth", "birthdate", "birthday", "dateofbirth", "born", "dob", "geburt"),
        *("geburtsdatum",),
    )
)
_NAMES_OF_YEARS = frozenset((*("year", "yr", "yyyy", "jahr", "annee", "año", "ano"),))
_NAMES_OF_PARTS = frozenset(
    (
        *("month", "mo", "mon", "mm", "mnth", "monat", "mois", "mes", "quarter", "qtr"),
        *("week", "day", "dd", "dy", "tag", "jour", "dia"),
    )
)
_NAMES_OF_GROUPS = frozenset(
    (
        *("subject", "subjid", "subjectid", "patient", "patientid"),
        *("person", "personid", "participant", "respondent", "user", "userid"),
        *("customer", "client", "member", "employee", "worker", "student", "pupil"),
        *("child", "teacher", "school", "hospital", "doctor", "physician", "station"),
        *("site", "sensor", "device", "machine", "plot", "farm", "household", "family"),
        *("firm", "company", "store", "shop", "player", "team", "driver", "animal"),
        *("cow", "pig", "rat", "mouse", "mice", "bird", "fish", "tree", "plant"),
        *("batch", "speaker", "author", "individual", "proband"),
    )
)
_LABELS = frozenset(("name", "no", "nr", "nbr", "num", "number", "code", "key"))
_FEWEST_NAMED_GROUPS, _FEWEST_GROUPS = 5, 20
_LEAST_ROWS_PER_GROUP = 2
_SHARE_IN_GROUPS = 0.8
_FEWEST_CONSTANT_COLUMNS = 2
# Over the values of a column in order, a column of two values that was computed from
# it changes once, or twice; that of a person changes often.
_MOST_CHANGES = 2
# Of columns without regard to groups, so many pairs of rows are expected to differ.
_EXPECTED_PAIRS = 12.0
_FIRST_PAIRS = 300
# Of the comparison of the last rows with others: indicators of a column, terms of all,
# the year, week and day in seconds, and how much more error is too much.
_LEVELS, _MOST_TERMS = 20, 500
_CYCLES = (365.2425 * 86400, 7 * 86400, 86400)
_MORE_ERROR = 1.1


class FirstRows(NamedTuple):
    """The first rows of a feature.

    Attributes:
        kind: Kind of the column.
        values: Numbers, seconds or places of texts [n], NaN for missing.
    """

    kind: Kind
    values: np.ndarray


def find_time(
    columns: Mapping[str, FirstRows], target: FirstRows | None = None
) -> tuple[str, str] | None:
    """Returns the column by whose time rows can be held out, and a sentence.

    It is a column of dates, or one of years beside one of months, weeks or days. Of
    several columns of dates it is the one in whose order the rows are. With a target,
    a linear model must predict the last rows worse than rows drawn at random.
    """
    found = _find_time(columns)
    if found is None:
        return None
    name, said = found
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


def _find_time(columns: Mapping[str, FirstRows]) -> tuple[str, str] | None:
    dates = [
        name
        for name, column in columns.items()
        if column.kind == "date" and not _BIRTHS.intersection(words(name))
    ]
    dates.sort(key=lambda name: not _is_in_order(columns[name].values))
    for name in dates:
        if _varies(columns[name].values):
            return name, _say_time(name, "It holds dates", columns)
    # Such as `year_sold` and `month_sold`, beside `year_built`.
    parts = {
        frozenset(words(name)) - _NAMES_OF_PARTS: name
        for name, column in reversed(list(columns.items()))
        if column.kind != "date" and _NAMES_OF_PARTS.intersection(words(name))
    }
    for name, column in columns.items():
        part = parts.get(frozenset(words(name)) - _NAMES_OF_YEARS)
        if part is not None and _holds_years(name, column):
            return name, _say_time(name, f"With {part!r} it tells a time", columns)
    return None


def _say_time(name: str, said: str, columns: Mapping[str, FirstRows]) -> str:
    order = ""
    if _is_in_order(columns[name].values):
        order = ", and the rows are in its order"
    return f"{said}{order}"


def _error_of_last_rows(
    name: str, columns: Mapping[str, FirstRows], target: FirstRows
) -> float:
    """Returns the error of a linear model in the last fifth over that in a random one.

    The model knows the calendar, and the level of the target in each twentieth of the
    rows, as a network would learn it.
    """
    times, y = columns[name].values, target.values
    if target.kind == "categorical":
        classes, counts = np.unique(y[~np.isnan(y)], return_counts=True)
        y = (y == classes[counts.argmax()]).astype(float)
    known = np.flatnonzero(~np.isnan(times) & ~np.isnan(y))
    order = known[np.argsort(times[known], kind="stable")]
    ranks = np.empty(len(times))
    ranks[order] = np.arange(len(order)) * _LEVELS // max(len(order), 1)
    parts = [_indicators(ranks)] + [
        _linear_terms(column) for column in columns.values()
    ]
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
    found, counts = np.unique(codes[~np.isnan(codes)], return_counts=True)
    commonest = found[np.argsort(-counts, kind="stable")[:_LEVELS]]
    return (codes[:, np.newaxis] == commonest).astype(float)


def _holds_years(name: str, column: FirstRows) -> bool:
    if column.kind != "numeric" or not _NAMES_OF_YEARS.intersection(words(name)):
        return False
    known = column.values[~np.isnan(column.values)]
    whole = bool((known == np.floor(known)).all())
    return whole and _YEARS[0] <= known.min() < known.max() <= _YEARS[1]


def _varies(values: np.ndarray) -> bool:
    known = values[~np.isnan(values)]
    return bool(len(known) and known.min() < known.max())


def _is_in_order(values: np.ndarray) -> bool:
    steps = np.diff(values[~np.isnan(values)])
    return bool(len(steps) and ((steps >= 0).all() or (steps <= 0).all()))


def find_groups(columns: Mapping[str, FirstRows]) -> tuple[str, str] | None:
    """Returns the column whose values group the rows, and a sentence.

    It is a column with several rows for most of its values: one whose name says person,
    station or identifier, or one for each of whose values two other columns at least
    are constant.
    """
    best: tuple[bool, int, int, str, str] | None = None
    for name, column in columns.items():
        codes = _group_codes(column)
        if codes is None:
            continue
        sizes = np.bincount(codes)
        named = _names_a_group(name)
        fewest = _FEWEST_NAMED_GROUPS if named else _FEWEST_GROUPS
        together = sizes[sizes > 1].sum()
        if len(sizes) < fewest or len(codes) < _LEAST_ROWS_PER_GROUP * len(sizes):
            continue
        if together < _SHARE_IN_GROUPS * len(codes):
            continue
        constant = _count_constant(name, codes, columns)
        if not named and constant < _FEWEST_CONSTANT_COLUMNS:
            continue
        mean = shown_number(len(codes) / len(sizes), 2)
        said = f"Each of its {len(sizes)} values has {mean} rows on average"
        if constant:
            others = "another column is" if constant == 1 else f"{constant} others are"
            said += f", in which {others} constant"
        rank = (named, constant, -len(sizes), name, said)
        if best is None or rank[:3] > best[:3]:
            best = rank
    if best is None:
        return None
    *_, name, said = best
    return name, (
        f"{said}, like a person or a station that was measured several times. If rows "
        "to predict have other values than these, the figures are too good; hold whole "
        "groups out with a validation by group "
        f"(--validation-group {shlex.quote(name)})."
    )


def _names_a_group(name: str) -> bool:
    """Whether a name is that of an identifier, or of persons or places and no more."""
    found = words(name)
    if not found or naming(name) == "identifier":
        return bool(found)
    return found[0] in _NAMES_OF_GROUPS and _LABELS.issuperset(found[1:])


def _group_codes(column: FirstRows) -> np.ndarray | None:
    """Returns the number of each known row's value; None if it cannot be a group."""
    if column.kind == "date":
        return None
    values = column.values[~np.isnan(column.values)]
    if len(values) < max(_FEWEST_ROWS, 0.99 * len(column.values)):
        return None
    first = values[:_FIRST_PAIRS]
    if (first != np.floor(first)).any() or (values != np.floor(values)).any():
        return None
    codes: np.ndarray = np.unique(column.values, return_inverse=True)[1]
    return codes


def _count_constant(
    name: str, codes: np.ndarray, columns: Mapping[str, FirstRows]
) -> int:
    """Counts the other columns that are the same in all rows of each group."""
    order = np.argsort(codes, kind="stable")
    together = np.flatnonzero(codes[order][1:] == codes[order][:-1])
    before, after = order[together], order[together + 1]
    few = np.linspace(0, len(before) - 1, min(len(before), _FIRST_PAIRS)).astype(int)
    number, found = int(codes.max()) + 1, 0
    for other, column in columns.items():
        values = column.values
        if other == name or column.kind == "date":
            continue
        if not _equal(values, before[few], after[few]):
            continue
        if not _equal(values, before, after):
            continue
        _, counts = np.unique(values, return_counts=True)
        if not 2 <= len(counts) < number or _tells_a_range(values, codes):
            continue
        different = 1.0 - float(np.square(counts / len(values)).sum())
        found += len(before) * different >= _EXPECTED_PAIRS
    return found


def _tells_a_range(values: np.ndarray, codes: np.ndarray) -> bool:
    """Whether a column tells one of two ranges of the codes, such as `is_adult`."""
    of_groups = values[np.unique(codes, return_index=True)[1]]
    of_groups = of_groups[~np.isnan(of_groups)]
    changes = np.count_nonzero(np.diff(of_groups))
    return bool(len(np.unique(of_groups)) == 2 and changes <= _MOST_CHANGES)


def _equal(values: np.ndarray, before: np.ndarray, after: np.ndarray) -> bool:
    x, y = values[before], values[after]
    return bool(((x == y) | (np.isnan(x) & np.isnan(y))).all())
