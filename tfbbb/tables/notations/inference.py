"""Finds the notation of a column of texts."""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tfbbb.tables.notations.date import (
    MONTH_AND_SHORT_YEAR,
    MONTHS,
    DateNotation,
    find_compact_dates,
)
from tfbbb.tables.notations.duration import DurationNotation
from tfbbb.tables.notations.missing_marks import DASHES, NA, is_code_among
from tfbbb.tables.notations.notation import Notation, Texts, as_float
from tfbbb.tables.notations.number import (
    CURRENCY,
    LONGEST_UNIT,
    MULTIPLES,
    THOUSANDS,
    UNIT,
    NumberNotation,
    are_of_one_quantity,
)
from tfbbb.tables.notations.ranges import (
    SPACED_RANGE,
    may_have_flags,
    split_ranges,
    strip_annotations,
)
from tfbbb.tables.notations.words import BooleanNotation, OrderedNotation, TextNotation
from tfbbb.tables.values import count_cells

# A notation must fit so large a share of the distinct texts. If it fits most but not
# all of them, a few cells may be wrong.
MOSTLY = 0.9
# Signs and units stand in at least this share of the cells that have them at all.
_USUAL = 0.5
_MULTIPLES_SHARE = 0.1
# Texts that are tried before all of them are.
_SAMPLE = 1000
_SPACE = r"[\s\x{00a0}\x{202f}\x{2009}]*"
_SPLIT = (
    rf"^\(?{_SPACE}[-+−]?{_SPACE}(?P<before>{CURRENCY})?{_SPACE}[-+−]?{_SPACE}"
    r"(?:[\d.,](?:[\d.,'\x{2019} \x{00a0}\x{202f}\x{2009}]*[\d.,])?)"
    rf"(?:[eE][-+]?\d+)?{_SPACE}(?P<after>{CURRENCY}|%|"
    rf"(?:k|K|m|M|mn|Mn|b|B|bn|Bn){_SPACE}{CURRENCY}|{UNIT})?{_SPACE}\)?-?$"
)
_IS_CURRENCY = re.compile(CURRENCY.replace(r"\p{Sc}", "[$¢£¤¥֏؋৲৳฿៛₠-⃀﷼]")).fullmatch
# Of so many days of a month, numbers after its name are days and not years.
_FEWEST_DAYS, _LAST_DAY = 24, 31
# Dates in digits: months and days.
_COMPACT = r"^\d{6,8}$"
# Decimal and thousands marks, in the order in which they are preferred.
_MARKS = (
    *((".", ""), (".", ","), (",", ""), (",", "."), (".", " "), (",", " ")),
    *((".", "'"), (",", "'")),
)

_NOTATIONS: dict[str, Callable[..., Notation]] = {
    notation.kind: notation
    for notation in (
        NumberNotation,
        BooleanNotation,
        DateNotation,
        DurationNotation,
        OrderedNotation,
        TextNotation,
    )
}


class Finding(NamedTuple):
    """The notation that fits a column best."""

    notation: Notation | None
    share: float = 1.0
    remarks: tuple[str, ...] = ()


def notation_from_dict(values: Mapping[str, Any] | None) -> Notation | None:
    """Creates a notation from the result of its `to_dict`; None for None."""
    if values is None:
        return None
    given = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
    kind = given.pop("kind", None)
    # Of earlier versions.
    given.pop("lenient", None)
    if kind not in _NOTATIONS:
        raise ValueError(
            f"A notation must be one of {', '.join(_NOTATIONS)}. Received: {kind!r}"
        )
    return _NOTATIONS[kind](**given)


def infer_notation(texts: pa.Array, kind: str | None = None) -> Finding:
    """Finds the notation of the texts of a column."""
    if not len(texts):
        return Finding(None)
    best = Finding(None, 0.0)
    sample = texts.slice(0, _SAMPLE)
    for name, find in _FINDERS.items():
        if kind not in (None, name):
            continue
        # Most columns of text are ruled out by their first texts.
        if kind is None and find(sample).share < MOSTLY:
            continue
        found = find(texts)
        if found.share > best.share:
            best = found
        if best.share == 1.0:
            break
    return best


def infer_marks(texts: Texts) -> Finding:
    """Finds which texts of a column of categories mark a missing value."""
    missing = pa.array(texts.missing(in_text=True))
    marks = pc.unique(texts.trimmed.filter(missing))
    others = pc.unique(texts.trimmed.filter(pc.invert(missing)))
    if len(marks):
        filled = pc.fill_null(pc.not_equal(marks, ""), False)
        if marks.filter(filled).to_pylist() == [NA] and is_code_among(others):
            remark = (
                f"its {NA!r} is a code of two letters as the others are, not a missing "
                "value"
            )
            return Finding(None, remarks=(remark,))
        return Finding(TextNotation(marks=True) if pc.any(filled).as_py() else None)
    are_dashes = pc.is_in(others, pa.array(DASHES, others.type))
    dashes, words = others.filter(are_dashes), others.filter(pc.invert(are_dashes))
    lettered = pc.match_substring_regex(words, r"\pL")
    if len(dashes) != 1 or len(words) < 2 or not pc.all(lettered).as_py():
        return Finding(None)
    dash = dashes[0].as_py()
    number = int(texts.spread(texts.missing(dash=dash, in_text=True)).sum())
    remark = (
        f"its {dash!r}, in {count_cells(number)}, is read as a missing value; text "
        "overrules this"
    )
    return Finding(TextNotation(marks=True, dash=dash), remarks=(remark,))


def _share(notation: Notation, texts: pa.Array) -> float:
    return 1.0 - float(notation.parse(texts).unreadable.mean())


def _find_boolean(texts: pa.Array) -> Finding:
    notation = BooleanNotation()
    # Digits alone are numbers, and a single letter may be any code.
    lower = pc.unique(pc.utf8_lower(texts))
    words = pc.match_substring_regex(lower, r"\D")
    if len(lower) > 6 or len(lower) < 2 or not pc.any(words).as_py():
        return Finding(None, 0.0)
    return Finding(notation, _share(notation, texts))


def _find_number(texts: pa.Array) -> Finding:
    """Finds the notation of numbers, with bounds and footnotes if they need these."""
    best = _find_bare_number(texts)
    if best.share < 1.0:
        found = _find_ranges(texts, best)
        if found.share > best.share:
            best = found
    for bounds, footnotes in ((True, False), (False, True), (True, True)):
        if best.share == 1.0:
            break
        bare = strip_annotations(texts, bounds=bounds, footnotes=footnotes)
        if bare.equals(texts) or (footnotes and not may_have_flags(texts)):
            continue
        found = _find_bare_number(bare)
        if found.share > best.share and isinstance(found.notation, NumberNotation):
            notation = replace(found.notation, bounds=bounds, footnotes=footnotes)
            best = found._replace(notation=notation)
    return best


def _find_ranges(texts: pa.Array, numbers: Finding) -> Finding:
    """Finds numbers and ranges of them; without numbers, ranges have spaces."""
    low, high = split_ranges(texts)
    if not low.null_count < len(low):
        return Finding(None, 0.0)
    if numbers.share < _USUAL:
        spaced = pc.match_substring_regex(texts, SPACED_RANGE)
        if low.null_count or not pc.all(spaced).as_py():
            return Finding(None, 0.0)
        numbers = _find_bare_number(high)
    if not isinstance(numbers.notation, NumberNotation):
        return Finding(None, 0.0)
    notation = replace(numbers.notation, ranges=True)
    return numbers._replace(notation=notation, share=_share(notation, texts))


def _find_bare_number(texts: pa.Array) -> Finding:
    """Finds the notation in the first texts, and in all if it does not fit them."""
    found = _find_number_in(texts.slice(0, _SAMPLE), texts)
    if found.share < 1.0 and len(texts) > _SAMPLE:
        found = _find_number_in(texts, texts)
    return found


def _find_number_in(some: pa.Array, texts: pa.Array) -> Finding:
    """Finds the signs and units of some texts, and the marks of all texts."""
    parts = pc.extract_regex(some, _SPLIT)
    fits = pc.less_equal(pc.utf8_length(parts.field("after")), LONGEST_UNIT)
    known = parts.filter(pc.and_(parts.is_valid(), fits))
    if not len(known):
        return Finding(None, 0.0)
    before, after = _count_affixes(known)
    with_affixes = _find_affixes(before, after, len(known), texts)
    if with_affixes is None:
        return Finding(None, 0.0)
    notation, remarks = with_affixes
    bare = notation == NumberNotation()
    if bare and pc.any(pc.match_substring_regex(texts, r"^0\d+$")).as_py():
        # Such as postal codes, whose leading zeros numbers would lose.
        return Finding(None, 0.0)
    fitting = _fitting_marks(notation, texts)
    if not fitting:
        return Finding(None, 0.0)
    chosen, *others = fitting
    has_mark = pc.any(pc.match_substring_regex(texts, r"[.,]\d")).as_py()
    if has_mark and any(other.decimal != chosen.decimal for other in others):
        remarks = (*remarks, _explain_marks(chosen))
    if not chosen.thousands and (chosen.currency or chosen.decimal == ","):
        # Later tables may have greater numbers.
        chosen = replace(chosen, thousands="." if chosen.decimal == "," else ",")
    return Finding(chosen, _share(chosen, texts), remarks)


def _count_affixes(parts: pa.Array) -> tuple[Counter[str], Counter[str]]:
    """Counts the currencies of texts, and the units and multiples after numbers."""
    before, after = Counter(parts.field("before").to_pylist()), Counter[str]()
    for found in pc.value_counts(parts.field("after")).to_pylist():
        text, count = found["values"], found["counts"]
        multiple = re.match(r"(?:mn|Mn|bn|Bn|[kKmMbB])(?!\w)", text)
        if multiple and (len(text) == multiple.end() or not text.isalpha()):
            after[multiple[0]] += count
            before[text[multiple.end() :].strip()] += count
        else:
            after[text] += count
    for text in [text for text in after if text and _IS_CURRENCY(text)]:
        before[text] += after.pop(text)
    del before[""], after[""]
    before.pop(None, None)
    if 10 * sum(before.values()) <= len(parts):
        before.clear()
    if 10 * sum(after.values()) <= len(parts) and set(after) != {"%"}:
        after.clear()
    return before, after


def _find_affixes(
    before: Counter[str], after: Counter[str], total: int, texts: pa.Array
) -> tuple[NumberNotation, tuple[str, ...]] | None:
    """Returns the notation with these affixes, and remarks; None if they make none."""
    notation = NumberNotation()
    remarks: tuple[str, ...] = ()
    if before:
        if sum(before.values()) < _USUAL * total:
            return None
        notation = replace(notation, currency=True)
        if len(before) > 1:
            names = ", ".join(sorted(before))
            said = (
                f"its cells have several currencies ({names}), which are read as one "
                "number without conversion"
            )
            remarks = (said,)
    if not after:
        return notation, remarks
    share = sum(after.values()) / total
    if set(after) == {"%"}:
        if share < _USUAL and not _are_shares(texts):
            said = "its cells without % are read as per cent too"
            return replace(notation, percent="all"), (*remarks, said)
        if share < 1.0:
            said = (
                "its cells without % are read as shares (0.5 is 50 %); "
                "number:percent reads them as per cent too"
            )
            remarks = (*remarks, said)
        return replace(notation, percent="sign"), remarks
    if set(after) <= MULTIPLES and (len(after) > 1 or share < 1.0 or notation.currency):
        if share < _MULTIPLES_SHARE or set(after) == {"B"}:
            return None
        return replace(notation, multiples=True), remarks
    if share < _USUAL:
        return None
    # As in a column of 1935 October.
    if len(after) == 1 and next(iter(after)).rstrip(".").lower() in MONTHS:
        return None
    if len(after) > 1 and not are_of_one_quantity(after):
        return None
    unit, *others = sorted(after, key=lambda text: (-after[text], text))
    if others:
        said = (
            f"its cells in {' and '.join(others)} are converted to {unit}; text "
            "overrules this"
        )
        remarks = (*remarks, said)
    return replace(notation, unit=unit, other_units=tuple(others)), remarks


def _fitting_marks(notation: NumberNotation, texts: pa.Array) -> list[NumberNotation]:
    """Returns the notation with the marks that fit most texts, the preferred first."""
    has_comma = pc.any(pc.match_substring(texts, ",")).as_py()
    fitting = []
    for decimal, thousands in _MARKS:
        has_mark = pc.match_substring_regex(texts, THOUSANDS[thousands])
        if thousands and not pc.any(has_mark).as_py():
            continue
        if (decimal, thousands) == (",", "") and not has_comma:
            continue
        tried = replace(notation, decimal=decimal, thousands=thousands)
        fitting.append((float(tried.matches(texts).mean()), tried))
    share = max((found for found, _ in fitting), default=0.0)
    best = [tried for found, tried in fitting if found == share]
    for decimal, thousands in ((",", "."), (".", ",")):
        grouped = replace(notation, decimal=decimal, thousands=thousands)
        if grouped in best and _are_grouped(texts, thousands):
            best = [grouped, *(tried for tried in best if tried != grouped)]
    return best


def _are_shares(texts: pa.Array) -> bool:
    """Whether all numbers without % are between -1 and 1."""
    plain = NumberNotation().parse(texts).numbers
    known = plain[~np.isnan(plain)]
    return bool(len(known) and (np.abs(known) <= 1.0).all())


def _are_grouped(texts: pa.Array, mark: str) -> bool:
    """Whether a mark groups digits: some whole numbers have none, below 1000."""
    marked = pc.match_substring(texts, mark)
    in_groups = rf"^\D*[1-9]\d{{0,2}}(?:{re.escape(mark)}\d{{3}})+\D*$"
    plain = texts.filter(pc.invert(marked))
    small = pc.match_substring_regex(plain, r"^\D*\d{1,3}\D*$")
    grouped = pc.match_substring_regex(texts.filter(marked), in_groups)
    return bool(
        len(plain)
        and len(grouped)
        and pc.all(small).as_py()
        and pc.all(grouped).as_py()
    )


def _explain_marks(chosen: NumberNotation) -> str:
    mark = "comma" if (chosen.thousands or chosen.decimal) == "," else "point"
    if (chosen.thousands == ",") or (chosen.thousands == "."):
        other = f"number:decimal-{mark}"
        return f"its {mark} is read as a thousands separator; {other} overrules this"
    other = "number:decimal-comma" if mark == "point" else "number:decimal-point"
    return f"its {mark} is read as the decimal mark; {other} overrules this"


def _find_compact_date(texts: pa.Array) -> Finding:
    if not pc.all(pc.match_substring_regex(texts, _COMPACT)).as_py():
        return Finding(None, 0.0)
    found = find_compact_dates(as_float(texts))
    return Finding(None, 0.0) if found is None else Finding(found[0], 1.0, found[1:])


def _find_date(texts: pa.Array) -> Finding:
    found = _find_order(texts)
    if not found.share or not isinstance(found.notation, DateNotation):
        return found
    notation = choose_century(found.notation, texts)
    if notation == found.notation:
        return found
    last = notation.last_short_year
    remark = f"its years of two digits are read as years up to {last}"
    return found._replace(notation=notation, remarks=(*found.remarks, remark))


def _find_order(texts: pa.Array) -> Finding:
    shares = _date_shares(texts.slice(0, _SAMPLE))
    if len(texts) > _SAMPLE:
        # Every order reads what the first reads.
        most = max(shares.values())
        shares = _date_shares(texts, skips_first=shares["year-first"] < most)
    if shares.get("year-first") == 1.0:
        return Finding(None, 0.0) if _may_be_days(texts) else Finding(DateNotation())
    most = max(shares.values())
    best = [order for order, share in shares.items() if share == most]
    order = best[0]
    remarks = []
    if order == "month-first" and len(best) > 1:
        dots = pc.all(pc.match_substring_regex(texts, r"^\D*\d+\.")).as_py()
        order = "day-first" if dots else "month-first"
        other = "month-first" if dots else "day-first"
        example = texts[0].as_py()
        remarks.append(
            f"its dates, such as {example!r}, are read as {order.replace('-', ' ')}, "
            f"but no cell decides this; date:{other} overrules it"
        )
    return Finding(DateNotation(order), most, tuple(remarks))  # type: ignore[arg-type]


def choose_century(notation: DateNotation, texts: pa.Array) -> DateNotation:
    """Returns the notation in which no year of two digits is in the future."""
    today = datetime.now(UTC)
    found, unreadable = notation.parse(texts)
    if unreadable.all() or np.nanmax(found) <= today.timestamp():
        return notation
    past = replace(notation, last_short_year=today.year)
    earlier = past.parse(texts).numbers
    spans = [np.nanmax(seconds) - np.nanmin(seconds) for seconds in (found, earlier)]
    all_later = np.nanmin(found) > today.timestamp() > np.nanmax(earlier)
    return past if spans[1] < spans[0] or all_later else notation


def _date_shares(texts: pa.Array, *, skips_first: bool = False) -> dict[str, float]:
    """Returns the share of texts that are dates, by the order of their parts."""
    shares: dict[str, float] = {}
    if not skips_first:
        shares["year-first"] = _share(DateNotation(), texts)
        if shares["year-first"] == 1.0:
            return shares
    shares["month-first"] = _share(DateNotation("month-first"), texts)
    shares["day-first"] = _share(DateNotation("day-first"), texts)
    return shares


def _may_be_days(texts: pa.Array) -> bool:
    """Whether `Oct-12` and others may be days of a month, or `set-10` a code."""
    parts = pc.extract_regex(texts, MONTH_AND_SHORT_YEAR)
    parts = parts.filter(parts.is_valid())
    numbers, names = (pc.unique(parts.field(name)) for name in ("year", "name"))
    if not len(parts) or as_float(numbers).max() > _LAST_DAY:
        return False
    return len(numbers) >= _FEWEST_DAYS or len(names) == 1


def _find_duration(texts: pa.Array) -> Finding:
    notation = DurationNotation()
    share = _share(notation, texts)
    remarks = []
    # A fraction stands after seconds, so that minutes stand first.
    if pc.any(pc.match_substring_regex(texts, r"^\d+:\d{2}\.\d+$")).as_py():
        notation = DurationNotation("minutes")
        return Finding(notation, _share(notation, texts))
    if share == 1.0:
        short = pc.match_substring_regex(texts, r"^\d+:\d{2}$")
        if pc.all(short).as_py():
            remarks.append(
                "its cells are read as hours and minutes; duration:minutes reads "
                "minutes and seconds"
            )
    return Finding(notation, share, tuple(remarks))


_FINDERS = {
    "boolean": _find_boolean,
    "compact date": _find_compact_date,
    "number": _find_number,
    "date": _find_date,
    "duration": _find_duration,
}
