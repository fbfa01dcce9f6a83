"""Tells whole numbers that identify rows from whole numbers that measure something."""

import re
from typing import Literal, NamedTuple

import numpy as np

from tfbbb.tables.notations.number import NumberNotation
from tfbbb.tables.parsed_column import ParsedColumn

_FEWEST_ROWS = 20
# Rows that are looked at before all are.
_FIRST_ROWS = 5000
_MOST_MISSING = 0.1
_MOSTLY_DISTINCT = 0.95
# Of as many independent draws from the range, so many pairs are expected to be equal;
# that none is has a probability of at most exp(-12).
_EXPECTED_PAIRS = 12.0
_STANDARD_ERRORS = 4.0
# The share of a counter that a table with an ordinary name for it must have.
_LEAST_DENSITY, _LEAST_DENSITY_IN_ORDER = 0.1, 0.5
# The share of rows that may be missing between row numbers, and before the first.
_GAPS = 0.1
_MOST_SKIPPED = 10.0
_YEARS = (1500, 2200)

_WORDS = re.compile(r"[^\W\d_]+|\d+|[#№]")
_NEXT_WORD = re.compile(r"(?<=[a-zß-ÿ])(?=[A-Z])")
_NAMES_OF_IDENTIFIERS = frozenset(
    (
        *("id", "ids", "idx", "uid", "uuid", "guid", "identifier", "pid", "sid", "gid"),
        *("fid", "rowid", "rownames", "rowname", "rownum", "rownumber", "userid"),
        *("caseid", "subjectid", "patientid", "recordid", "customerid", "personid"),
        *("studentid", "memberid", "objectid", "respid", "sno", "seqn", "subjid"),
        *("idno", "idnr", "idnum", "docno", "caseno", "regno", "respno"),
    )
)
_WHOLE_NAMES_OF_IDENTIFIERS = frozenset(
    ("index", "unnamed 0", "row names", "row name", "row number", "row num", "#", "№")
)
_NAMES_OF_NUMBERINGS = frozenset(
    (
        *("no", "nr", "num", "number", "nummer", "numero", "serial", "seq", "sequence"),
        *("row", "rows", "record", "obs", "observation", "case", "sample", "subject"),
        *("patient", "participant", "respondent", "key", "code", "index", "unnamed"),
        *("entry", "item", "line", "ref", "reference", "lfd", "counter", "account"),
        *("ticket", "order", "invoice", "transaction", "customer", "client", "user"),
        *("#", "№"),
    )
)
_NO_NUMBERINGS = frozenset(("of", "per", "total", "count", "mean", "average"))
_NAMES_OF_MEASUREMENTS = frozenset(
    (
        *("year", "years", "yr", "jahr", "annee", "ano", "month", "week", "day"),
        *("days", "date", "time", "hour", "hours", "minute", "minutes", "second"),
        *("seconds", "timestamp", "t", "age", "ages", "rank", "ranking", "ranks"),
        *("position", "pos", "place", "depth", "distance", "km", "mile", "miles"),
        *("mileage", "odometer", "dose", "level", "step", "steps", "epoch", "lag"),
        *("temperature", "temp", "size", "weight", "length", "height", "width"),
        *("cycle", "cycles", "duration", "altitude", "elevation", "price", "cost"),
        *("salary", "income", "population", "area"),
    )
)

Naming = Literal["identifier", "numbering", "measurement", "other"]


class Finding(NamedTuple):
    """What a column of numbers looks like.

    Attributes:
        reason: Why it certainly identifies rows; None if it may measure something.
        remark: What is suspicious about it, if it may.
    """

    reason: str | None = None
    remark: str | None = None


def words(name: str) -> list[str]:
    """Returns the words of a column's name in small letters.

    Example:

    >>> words("PassengerId"), words("customer_ID"), words("Unnamed: 0")
    (['passenger', 'id'], ['customer', 'id'], ['unnamed', '0'])
    """
    return _WORDS.findall(_NEXT_WORD.sub(" ", name).lower())


def naming(name: str) -> Naming:
    """Says what a column holds by its name alone.

    Example:

    >>> [naming(name) for name in ("house_id", "house no", "no_of_rooms", "age")]
    ['identifier', 'numbering', 'other', 'measurement']
    """
    found = words(name)
    if not found:
        return "numbering"
    ends = {found[0], found[-1]}
    if ends & _NAMES_OF_IDENTIFIERS or " ".join(found) in _WHOLE_NAMES_OF_IDENTIFIERS:
        return "identifier"
    if _NAMES_OF_MEASUREMENTS.intersection(found):
        return "measurement"
    if _NO_NUMBERINGS.intersection(found):
        return "other"
    # R names a column of row names X.
    if found[-1] in _NAMES_OF_NUMBERINGS or found[0] == "unnamed" or name == "X":
        return "numbering"
    return "other"


def examine_numbers(column: ParsedColumn) -> Finding:
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
        return Finding()
    ordered = np.sort(values)
    gaps = np.diff(ordered)
    number, distinct = len(values), 1 + int(np.count_nonzero(gaps))
    if distinct < _MOSTLY_DISTINCT * number:
        return Finding()
    named = naming(column.name)
    differ = f"Its {number} whole numbers all differ"
    if distinct < number:
        differ = f"{distinct} of its {number} whole numbers differ"
    steps = np.diff(values)
    grows = bool((steps > 0).all() or (steps < 0).all())
    span = float(ordered[-1] - ordered[0]) + 1.0
    begins = float(ordered[0])
    sequential = grows and span <= (1 + _GAPS) * number
    if sequential and begins <= 1 + _GAPS * number and named != "measurement":
        return Finding("It numbers the rows.")
    useless = "like an identifier, so a model learns nothing from it."
    if named == "identifier":
        return Finding(f"{differ}, {useless}")
    if distinct < number:
        return Finding()
    counts = _is_part_of_counter(gaps, span)
    density = number / span
    gradually = "grow" if values[-1] > values[0] else "fall"
    if _YEARS[0] <= begins <= ordered[-1] <= _YEARS[1]:
        return Finding()
    if named == "numbering" and grows and gradually == "grow":
        return Finding(f"Its whole numbers grow from row to row, {useless}")
    if named == "numbering" and counts:
        return Finding(f"{differ} and count with gaps, {useless}")
    from_start = begins <= 1 + max(_GAPS * number, _MOST_SKIPPED / density)
    dense = density >= (_LEAST_DENSITY_IN_ORDER if grows else _LEAST_DENSITY)
    if counts and from_start and dense and named == "other":
        return Finding(f"{differ} and count with gaps, {useless}")
    advice = "leave it out if it is one (--ignore)."
    if sequential:
        return Finding(
            None, f"It grows by one from row to row, like an identifier; {advice}"
        )
    if grows:
        return Finding(
            None,
            f"Its whole numbers {gradually} from row to row, like an identifier, a "
            f"time or the reading of a meter; if it is an identifier, leave it out "
            "(--ignore).",
        )
    if counts:
        return Finding(None, f"{differ}, like an identifier; {advice}")
    return Finding()


def _whole_numbers(column: ParsedColumn) -> np.ndarray | None:
    """Returns the known numbers if they may identify rows."""
    notation = column.notation
    if column.kind != "numeric" or len(column.values) < _FEWEST_ROWS:
        return None
    if notation is not None and not (
        isinstance(notation, NumberNotation)
        and not (notation.currency or notation.unit or notation.percent)
    ):
        return None
    first = column.values[:_FIRST_ROWS]
    first = first[~column.missing[:_FIRST_ROWS]]
    if not _may_identify(first):
        return None
    values = column.values
    if column.missing.any():
        values = values[~column.missing]
        if len(values) < (1 - _MOST_MISSING) * len(column.values):
            return None
    return values if len(values) >= _FEWEST_ROWS and _may_identify(values) else None


def _may_identify(values: np.ndarray) -> bool:
    """Whether these are whole numbers from 0 on, most of which differ."""
    if not len(values) or values.min() < 0 or (values != np.floor(values)).any():
        return False
    return len(values) > _FIRST_ROWS or (
        len(np.unique(values)) >= _MOSTLY_DISTINCT * len(values)
    )


def _is_part_of_counter(gaps: np.ndarray, span: float) -> bool:
    """Whether distinct whole numbers look like rows drawn from a counter.

    Two facts tell: measurements in the range would repeat (the problem of birthdays),
    and of a random part the gaps are geometric, so the share of gaps of 1 is that of
    the numbers that are there. More gaps of 1 tell of rows drawn in blocks.
    """
    number = len(gaps) + 1
    density = number / span
    if number * density / 2 < _EXPECTED_PAIRS:
        return False
    error = np.sqrt(max(density * (1 - density), 0.0) / len(gaps))
    return bool(np.mean(gaps == 1) >= density - _STANDARD_ERRORS * error)
