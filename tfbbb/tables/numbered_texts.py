"""Tells texts of small whole numbers that are numbers from those that are categories.

`01` to `12` are months or codes; `4door` and `7m` look like numbers with a unit.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tfbbb.tables.cells import Cells
from tfbbb.tables.complaints import show_example
from tfbbb.tables.identifiers import naming, words
from tfbbb.tables.notations.missing_marks import are_familiar
from tfbbb.tables.notations.notation import as_float
from tfbbb.tables.notations.number import NumberNotation
from tfbbb.tables.notations.units import UNITS, UNITS_OF_TIME

# The days of a month. Of more, whole numbers with letters are measurements.
_MOST = 31
# Of doors, cylinders and the like.
_MOST_OF_WORDS = 16
_FEWEST_CATEGORIES, _ROWS_PER_CATEGORY = 3, 5
# The share of a run from 0 or 1, and of the minutes of an hour, that must be there.
_RUN_SHARE, _MINUTES_SHARE = 0.75, 0.9
_MINUTES = 60
# Words for a missing value, beside the numbers.
_MOST_MARKS = 20

_NAMES_OF_THE_CALENDAR = frozenset(
    (
        *("month", "months", "mon", "mm", "mth", "monat", "mois", "mes", "mês", "mese"),
        *("maand", "day", "days", "dd", "tag", "jour", "dia", "día", "giorno", "dag"),
        *("hour", "hours", "hr", "hrs", "hh", "stunde", "heure", "hora", "ora", "uur"),
        *("minute", "minutes", "min", "mins", "minuto", "second", "seconds", "sec"),
        *("week", "weeks", "wk", "woche", "semaine", "semana", "settimana"),
    )
)
_NAMES_OF_CODES = frozenset(
    (
        *("code", "codes", "id", "fips", "state", "states", "zip", "plz", "postal"),
        *("region", "regions", "dept", "department", "departement", "département"),
        *("province", "provincia", "county", "district", "kreis", "land", "bundesland"),
        *("ags", "country", "naics", "sic", "isic", "nace", "sector", "branch", "cat"),
        *("category", "type", "kind", "class", "group", "cluster", "store", "shop"),
        *("site", "station", "line", "route", "ward", "zone", "area", "ident"),
    )
)


def find_two_digit_numbers(cells: Cells) -> tuple[NumberNotation, str] | None:
    """Finds whether texts of two digits, such as `07`, are numbers and no codes.

    They are if all are at most 59 and the name says a month, day, hour, minute or week.
    If the name says neither this nor a code, they are if all are at most 31, or nearly
    all minutes of an hour.

    Example:
    >>> hours = pa.chunked_array([["07", "12", "23", "unknown"]])
    >>> find_two_digit_numbers(Cells("start", hours))[0].missing_marks
    ('unknown',)
    >>> find_two_digit_numbers(Cells("state", hours))
    """
    distinct = cells.texts.distinct
    if len(distinct) > _MINUTES + _MOST_MARKS:
        return None
    familiar = are_familiar(distinct)
    digits = distinct.filter(pc.invert(familiar))
    fit = pc.match_substring_regex(digits, r"^[0-5]\d$")
    zeros = digits.filter(pc.match_substring_regex(digits, r"^0"))
    if not len(zeros) or not pc.all(fit).as_py():
        return None
    if not _are_of_calendar(cells.name, np.sort(as_float(digits))):
        return None
    marks = tuple(text.lower() for text in distinct.filter(familiar).to_pylist())
    remark = (
        f"Its numbers of two digits, such as {show_example(zeros)}, are read as "
        "numbers, not as codes; text overrules this."
    )
    return NumberNotation(missing_marks=marks), remark


def _are_of_calendar(name: str, numbers: np.ndarray) -> bool:
    """Whether a name or the distinct numbers are those of a calendar or a clock."""
    named = set(words(name))
    if named & _NAMES_OF_THE_CALENDAR:
        return True
    if named & _NAMES_OF_CODES or naming(name) in ("identifier", "numbering"):
        return False
    are_minutes = numbers[0] == 0 and len(numbers) >= _MINUTES_SHARE * _MINUTES
    return bool(numbers[-1] <= _MOST or are_minutes)


def remark_on_numbered_categories(cells: Cells, notation: NumberNotation) -> str | None:
    """Returns a remark if numbers with a unit, such as `4door` or `7m`, are categories.

    They are if whole numbers up to 31 stand directly before letters, each in five rows
    on average, and run from 0 or 1; or, before a word that is no unit, if they are at
    most 16. Before a unit other than of time or of one letter, they are numbers.

    Example:
    >>> doors = pa.chunked_array([["2door", "4door", "5door"] * 5])
    >>> remark_on_numbered_categories(Cells("size", doors), NumberNotation(unit="door"))
    "Its 3 whole numbers with 'door', such as '2door', are read as categories; number \
overrules this."
    """
    unit = notation.unit
    if not unit.isalpha() or notation.bounds or notation.footnotes:
        return None
    texts = cells.texts
    parsed = texts.parse(notation)
    known = ~np.isnan(parsed.numbers)
    numbers = np.unique(parsed.numbers[known])
    if not _FEWEST_CATEGORIES <= len(numbers) <= _MOST + 1:
        return None
    if known.sum() < _ROWS_PER_CATEGORY * len(numbers):
        return None
    written = pc.is_in(
        texts.distinct,
        pa.array([f"{i}{unit}" for i in range(_MOST + 1)], texts.distinct.type),
    )
    if pc.sum(written).as_py() != len(numbers):
        return None
    is_letter, is_unit = len(unit) == 1, unit.lower() in UNITS
    if is_unit and not is_letter and unit.lower() not in UNITS_OF_TIME:
        return None
    are_few = not (is_letter or is_unit) and numbers[-1] <= _MOST_OF_WORDS
    are_run = numbers[0] <= 1 and len(numbers) >= _RUN_SHARE * numbers[-1]
    if not (are_few or are_run):
        return None
    example = texts.distinct.filter(written)
    return (
        f"Its {len(numbers)} whole numbers with {unit!r}, such as "
        f"{show_example(example)}, are read as categories; number overrules this."
    )
