"""Finds the notation of a column in which a few cells are odd."""

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from tfbbb.tables.notations.inference import MOSTLY, Finding, infer_notation
from tfbbb.tables.notations.missing_marks import are_familiar
from tfbbb.tables.notations.notation import Texts, as_mask
from tfbbb.tables.notations.number import NumberNotation
from tfbbb.tables.notations.ranges import BOUND, FOOTNOTE, find_levels, split_ranges
from tfbbb.tables.notations.words import BooleanNotation, OrderedNotation
from tfbbb.tables.values import count_cells

# Words that no one knows as marks of a missing value are such marks at any share
# beside so many distinct numbers, if they are as few as this. Dates, and numbers with
# decimals or units, are no codes, so fewer suffice.
_FEWEST_WHOLE_NUMBERS, _FEWEST_OTHERS, _MOST_WORDS = 20, 5, 3
# Other odd cells must be so rare, in so many distinct texts at most.
_RARE, _FEWEST_BESIDE_RARE, _DISTINCT_SHARE = 0.05, 5, 0.02
_MOST_SHOWN = 3


def infer_beside_odd_cells(texts: Texts, decimal_commas: bool = False) -> Finding:
    """Finds the notation of a column, and which of its cells are missing values.

    Among numbers, dates and durations, an odd cell marks a missing value if it is a
    usual mark (`unknown`, `****`, `n.d.`), one of at most three words beside 20
    distinct numbers, or rare. Ranges are ordered texts.
    """
    distinct = texts.distinct
    found = infer_notation(distinct)
    notation = found.notation
    if decimal_commas and isinstance(notation, NumberNotation) and found.share == 1.0:
        commas = replace(notation, decimal=",", thousands=".")
        has_points = pc.any(pc.match_substring(distinct, ".")).as_py()
        if has_points and commas.matches(distinct).all():
            return _with_remarks(Finding(commas), texts)
    is_read = found.notation is not None and found.share == 1.0
    if is_read and not getattr(found.notation, "ranges", False):
        return _with_remarks(found, texts)
    if (ranges := _infer_ranges(texts)).notation is not None:
        return ranges
    if is_read:
        return _with_remarks(found, texts)
    has_digit = pc.match_substring_regex(distinct, r"\d")
    written = distinct.filter(pc.and_not(has_digit, are_familiar(distinct)))
    if len(written) < len(distinct):
        found = infer_notation(written)
    notation = found.notation
    if notation is None or isinstance(notation, BooleanNotation):
        return Finding(None, 0.0)
    unreadable = texts.parse(notation).unreadable
    odd = texts.count(unreadable)
    missing = int(texts.spread(texts.missing()).sum())
    readable = len(unreadable) - missing - sum(odd.values())
    have_decimals = pc.any(pc.match_substring(written, ".")).as_py()
    are_whole = notation == NumberNotation() and not have_decimals
    fewest = _FEWEST_WHOLE_NUMBERS if are_whole else _FEWEST_OTHERS
    if _mark_missing(odd, len(distinct) - len(odd), readable, fewest):
        marks = tuple(sorted({text.lower() for text in odd}))
        marked = replace(notation, missing_marks=marks)
        found = found._replace(notation=marked, share=1.0)
        return _with_remarks(found, texts, odd)
    if readable < MOSTLY * (readable + sum(odd.values())):
        return Finding(None, 0.0)
    counted = count_cells(sum(odd.values()), "is", "are")
    remark = (
        f"it is mostly {notation.kind}s, but {counted} not, such as "
        f"{next(iter(odd))!r}, so that its texts are categories; {notation.kind} "
        "overrules this and counts such cells as missing"
    )
    return Finding(None, 0.0, (remark,))


def _infer_ranges(texts: Texts) -> Finding:
    distinct = texts.distinct
    # Each range stands in several rows.
    if 2 * len(distinct) > len(
        texts.places if texts.places is not None else texts.cells
    ):
        return Finding(None, 0.0)
    familiar = are_familiar(distinct)
    levels = find_levels(distinct.filter(pc.invert(familiar)))
    if not levels:
        return Finding(None, 0.0)
    marks = tuple(text.lower() for text in distinct.filter(familiar).to_pylist())
    found = Finding(
        OrderedNotation(levels, missing_marks=marks),
        remarks=(
            f"its {len(levels)} ranges, from {levels[0]!r} to {levels[-1]!r}, are "
            "ordered by their lower ends; text overrules this",
        ),
    )
    is_mark = pc.is_in(pc.utf8_lower(texts.trimmed), pa.array(marks, distinct.type))
    odd = texts.count(texts.spread(as_mask(is_mark)))
    return _with_remarks(found, texts, odd)


def _mark_missing(
    odd: Mapping[str, int], num_distinct: int, readable: int, fewest: int
) -> bool:
    """Whether odd cells beside so many distinct numbers mark missing values."""
    if num_distinct < 2 or not readable:
        return False
    texts = pa.array(list(odd), pa.large_string())
    unfamiliar = texts.filter(pc.invert(are_familiar(texts))).to_pylist()
    if not unfamiliar:
        return True
    are_words = not any(map(str.isdecimal, "".join(unfamiliar)))
    if are_words and len(unfamiliar) <= _MOST_WORDS and num_distinct >= fewest:
        return True
    number = sum(odd[text] for text in unfamiliar)
    return (
        num_distinct >= _FEWEST_BESIDE_RARE
        and number <= max(1, _RARE * (readable + sum(odd.values())))
        and len(unfamiliar) <= max(_MOST_WORDS, _DISTINCT_SHARE * num_distinct)
    )


def _with_remarks(
    found: Finding, texts: Texts, odd: Mapping[str, int] | None = None
) -> Finding:
    """Adds remarks on missing marks, bounds and footnotes, with their counts."""
    remarks = []
    if odd:
        shown = ", ".join(repr(text) for text in list(odd)[:_MOST_SHOWN])
        more = len(odd) - _MOST_SHOWN
        others = f" and {more} more" if more > 0 else ""
        counted = count_cells(sum(odd.values()))
        remarks.append(
            f"its {shown}{others}, in {counted}, read as missing; text overrules this"
        )
    notation = found.notation
    for part, (find, what, effect) in _PARTS.items():
        if isinstance(notation, NumberNotation) and getattr(notation, part):
            chosen = as_mask(find(texts.trimmed, notation))
            cells = texts.count(texts.spread(chosen))
            counted = count_cells(sum(cells.values()), "has", "have")
            remarks.append(
                f"{counted} {what}, such as {next(iter(cells))!r}, which is {effect}; "
                "text overrules this"
            )
    return found._replace(remarks=(*remarks, *found.remarks))


def _have_bound(texts: pa.Array, _: NumberNotation) -> pa.Array:
    return pc.match_substring_regex(texts, BOUND)


def _have_footnote(texts: pa.Array, _: NumberNotation) -> pa.Array:
    return pc.match_substring_regex(texts, FOOTNOTE)


def _are_ranges(texts: pa.Array, notation: NumberNotation) -> pa.Array:
    alone = pa.array(replace(notation, ranges=False).matches(texts))
    return pc.and_not(pc.is_valid(split_ranges(texts)[0]), alone)


# What a notation of numbers reads beside them: how to find it, and two phrases on it.
_PARTS = {
    "bounds": (_have_bound, "only a bound", "read as the number"),
    "ranges": (_are_ranges, "a range", "read as its middle"),
    "footnotes": (_have_footnote, "the mark of a footnote", "left out"),
}
