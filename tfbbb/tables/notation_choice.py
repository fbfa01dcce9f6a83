"""Chooses how the cells of a column are read: by an override, or by the cells."""

import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, cast

import numpy as np

from tfbbb.tables.cells import Cells, Kind
from tfbbb.tables.column_words import AMOUNTS, naming, words
from tfbbb.tables.complaints import (
    check_suits_most_texts,
    show_example,
    unreadable_as_asked,
)
from tfbbb.tables.notations import (
    Notation,
    infer_beside_odd_cells,
    infer_marks,
    infer_notation,
)
from tfbbb.tables.notations.date import (
    DateNotation,
    Order,
    are_months,
    find_compact_dates,
)
from tfbbb.tables.notations.duration import DurationNotation
from tfbbb.tables.notations.inference import Finding, choose_century
from tfbbb.tables.notations.number import NumberNotation
from tfbbb.tables.notations.words import BooleanNotation, OrderedNotation, TextNotation
from tfbbb.tables.override import Override, OverrideKind
from tfbbb.tables.values import count_cells, drop_missing

# All digits are 9, of which the last may be decimals, as in 999.9.
_WHOLE = [10.0**digits - 1 for digits in range(2, 16)]
_NINES = (*_WHOLE, *(w / 10 for w in _WHOLE[1:]), *(w / 100 for w in _WHOLE[2:]))
_SENTINELS = frozenset(sign * number for number in _NINES for sign in (-1, 1))
# How many ranges of the other values lie between them and the number. -99 and so on
# need none if no other value is negative.
_RANGES, _RANGES_OF_TWO_DIGITS = 5.0, 20.0
_FEWEST, _FEWEST_OTHERS = 2, 5
# One alone must be so far away, unless it is the only negative value.
_RANGES_OF_ONE = 1000.0
_FEWEST_BESIDE_TYPING_ERROR = 20


def find_sentinels(numbers: np.ndarray) -> dict[float, int]:
    """Finds numbers of nines far outside of all others of a column."""
    counts: dict[float, int] = {}
    while len(numbers) >= _FEWEST_OTHERS:
        low, high = float(numbers.min()), float(numbers.max())
        ends = _SENTINELS.intersection((low, high))
        if not ends:
            return {
                value: count
                for value, count in sorted(counts.items())
                if low < high and _is_sentinel(value, count, low, high)
            }
        for end in ends:
            others = numbers[numbers != end]
            counts[end] = len(numbers) - len(others)
            numbers = others
    return {}


def find_typing_error(known: np.ndarray) -> dict[float, int]:
    """Finds one number far outside of all others, such as 1e12 among weights."""
    known = np.sort(known)
    if len(known) > _FEWEST_BESIDE_TYPING_ERROR:
        for place, others in ((-1, known[:-1]), (0, known[1:])):
            low, high = others[0], others[-1]
            distance = max(low - known[place], known[place] - high)
            if distance > _RANGES_OF_ONE * (high - low) > 0.0:
                return {float(known[place]): 1}
    return {}


def _is_sentinel(value: float, count: int, low: float, high: float) -> bool:
    distance = max(low - value, value - high) / (high - low)
    is_only_negative = value < 0 <= low
    if count < _FEWEST:
        far = _RANGES_OF_TWO_DIGITS if is_only_negative else _RANGES_OF_ONE
        return distance > far
    if is_only_negative:
        return True
    return distance > (_RANGES if abs(value) > 99 else _RANGES_OF_TWO_DIGITS)


class Choice(NamedTuple):
    """How a column is read."""

    kind: Kind
    notation: Notation | None
    remarks: tuple[str, ...] = ()


def choose_notation(cells: Cells, override: Override | None = None) -> Choice:
    """Chooses how a column is read."""
    are_texts = cells.kind == "categorical"
    if override is not None:
        notation, remarks = _choose_as_asked(cells, override)
    elif are_texts:
        notation, remarks = _choose_by_texts(cells)
    elif found := _find_compact_dates(cells):
        notation, remarks = found[0], remarks_on(Finding(None, remarks=found[1:]))
    else:
        notation, remarks = without_sentinels(cells, _notation_of_type(cells))
    if (notation is None and are_texts) or isinstance(notation, TextNotation):
        return Choice("categorical", notation, remarks)
    kind: Kind = "date" if isinstance(notation, DateNotation) else "numeric"
    return Choice(kind, notation, remarks)


def remarks_on(found: Finding) -> tuple[str, ...]:
    """Returns the remarks of a finding as sentences."""
    return tuple(f"{text[0].upper()}{text[1:]}." for text in found.remarks)


def have_order(levels: Sequence[str]) -> bool:
    """Whether texts can be those of an ordered column: several that differ by case."""
    return 1 < len(levels) == len({level.lower() for level in levels})


def without_sentinels(
    cells: Cells, notation: Notation | None, *, of_target: bool = False
) -> tuple[Notation | None, tuple[str, ...]]:
    """Finds which numbers stand for a missing value; in a target, one wrong number."""
    if cells.kind == "categorical":
        if not isinstance(notation, NumberNotation) or notation.percent:
            return notation, ()
        numbers = cells.texts.parse(notation).numbers
    elif notation is None and cells.kind == "numeric" and not cells.is_duration:
        numbers = cells.numbers
    else:
        return notation, ()
    known = drop_missing(numbers)
    effect = "and read as a missing value; number overrules this"
    found = find_sentinels(known)
    if of_target:
        found = found or find_typing_error(known)
        option = shlex.quote(f"{cells.name}=number")
        effect = (
            "so these rows count as rows without a target; "
            f"columns={{{cells.name!r}: 'number'}} (--column {option}) keeps them"
        )
    if not found:
        return notation, ()
    bare = notation if isinstance(notation, NumberNotation) else NumberNotation()
    return replace(bare, missing_values=tuple(found)), tuple(
        f"Its {value:.15g}, in {count_cells(count)}, is far outside of all other "
        f"values{',' if of_target else ''} {effect}."
        for value, count in found.items()
    )


def _notation_of_type(cells: Cells) -> Notation | None:
    """Returns the notation of a column that is not text, by its type."""
    if cells.kind == "date":
        return DateNotation()
    if cells.is_duration:
        return DurationNotation()
    return BooleanNotation() if cells.is_boolean else None


def _choose_by_texts(cells: Cells) -> tuple[Notation | None, tuple[str, ...]]:
    if have_order(cells.levels):
        return OrderedNotation(cells.levels), ()
    if cells.is_category:
        usual = infer_notation(cells.texts.distinct).notation
        if isinstance(usual, NumberNotation | BooleanNotation):
            marked = infer_marks(cells.texts).notation or TextNotation()
            return replace(cast(TextNotation, marked), numbers=True), ()
    found = infer_beside_odd_cells(cells.texts, cells.decimal_commas)
    if found.notation is not None:
        notation, remarks = without_sentinels(cells, found.notation)
        return notation, (*remarks_on(found), *remarks)
    marks = infer_marks(cells.texts)
    return marks.notation, (*remarks_on(found), *remarks_on(marks))


def _choose_as_asked(
    cells: Cells, override: Override
) -> tuple[Notation | None, tuple[str, ...]]:
    asked, options = override.kind, override.options
    are_texts = cells.kind == "categorical"
    if asked in ("text", "hashed"):
        if not are_texts:
            return TextNotation(numbers=True), ()
        marks = infer_marks(cells.texts).notation
        # Someone who asks for texts means "-" as one.
        return (None if getattr(marks, "dash", "") else marks), ()
    if asked == "ordered":
        return OrderedNotation(options), ()
    if asked == "boolean":
        notation = BooleanNotation()
        if are_texts:
            check_suits_most_texts(cells, notation, asked)
        return notation, ()
    if are_texts:
        return _choose_for_texts(cells, asked, options)
    if cells.kind == "date":
        return DateNotation(), ()
    if asked == "date":
        return _choose_dates_of_numbers(cells, options)
    if asked == "duration":
        return DurationNotation(), ()
    return _notation_of_type(cells), ()


def _choose_dates_of_numbers(
    cells: Cells, options: tuple[str, ...]
) -> tuple[DateNotation, tuple[str, ...]]:
    """Returns how numbers are dates: by their digits, or by time since 1970."""
    if not options:
        found = _find_compact_dates(cells)
        return (DateNotation(), ()) if found is None else (found[0], ())
    if options[0].startswith("unix"):
        epoch = "milliseconds" if options == ("unix-ms",) else "seconds"
        return DateNotation(epoch=epoch), ()
    return DateNotation(cast(Order, options[0]), epoch="digits"), ()


def _find_compact_dates(cells: Cells) -> tuple[DateNotation, str] | None:
    if cells.is_boolean or cells.is_duration or cells.kind != "numeric":
        return None
    known = drop_missing(cells.numbers)
    found = find_compact_dates(known)
    # The name may say that 202203 is an identifier or an amount.
    says_no_month = naming(cells.name) in ("identifier", "numbering") or (
        not AMOUNTS.isdisjoint(words(cells.name))
    )
    if found and are_months(known.min(), known.max()) and says_no_month:
        return None
    return found


def _choose_for_texts(
    cells: Cells, asked: OverrideKind, options: tuple[str, ...]
) -> tuple[Notation, tuple[str, ...]]:
    """Returns the notation of texts that are numbers, dates or durations, as asked."""
    notation: Notation
    remarks: tuple[str, ...] = ()
    found = infer_notation(cells.texts.distinct, asked)
    if asked == "date" and options and not options[0].startswith("unix"):
        notation = DateNotation(cast(Order, options[0]))
        notation = choose_century(notation, cells.texts.distinct)
    elif asked == "duration":
        notation = DurationNotation(options[0] if options else "hours")
    elif isinstance(found.notation, NumberNotation):
        notation = _with_options(found.notation, options)
        remarks = () if options else remarks_on(found)
    elif isinstance(found.notation, DateNotation):
        notation, remarks = found.notation, remarks_on(found)
    else:
        raise unreadable_as_asked(
            cells.name,
            asked,
            f"its texts, such as {show_example(cells.texts.distinct)}, cannot be read "
            "as one",
        )
    check_suits_most_texts(cells, notation, asked)
    return notation, remarks


def _with_options(notation: NumberNotation, options: tuple[str, ...]) -> NumberNotation:
    for option, mark, other in (("decimal-comma", *",."), ("decimal-point", *".,")):
        if option in options and notation.decimal != mark:
            kept = notation.thousands not in ("", mark)
            thousands = notation.thousands if kept else other
            notation = replace(notation, decimal=mark, thousands=thousands)
    if "currency" in options:
        notation = replace(notation, currency=True)
    return replace(notation, percent="all") if "percent" in options else notation
