"""Ranges of numbers, signs of a bound, and marks of footnotes."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tfbbb.tables.notations.notation import as_float, as_mask

BOUND_BEFORE = (
    r"(?:[<>≤≥]=?|=[<>]|[~≈]|(?i:(?:less|fewer|more|greater|higher|lower) than|"
    r"at least|at most|up to|under|over|below|above|until|from|approx\.?|about|circa|"
    r"ca\.?))"
)
BOUND_AFTER = (
    r"(?:\+|(?i:(?:or|and|&) "
    r"(?:more|less|over|above|older|under|fewer|below|up|younger|higher|lower|greater)))"
)
BOUND = rf"^{BOUND_BEFORE}\s*|\s*{BOUND_AFTER}$"
# Flags of statistical offices, such as p for provisional; none of them is a unit.
_FLAG = r" [abenpruz]{1,2}$"
FOOTNOTE = (
    rf"^[*†‡§¶]+\s*|{_FLAG}|"
    r"\s*(?:[*†‡§¶#^ᵃᵇᶜ¹²³]+|\[[\w ]{1,8}\]|\([a-z*]{1,2}\))$"
)


def strip_annotations(texts: pa.Array, *, bounds: bool, footnotes: bool) -> pa.Array:
    """Returns texts without signs of bounds or marks of footnotes."""
    for stripped, pattern in ((footnotes, FOOTNOTE), (bounds, BOUND)):
        if stripped:
            texts = pc.replace_substring_regex(texts, pattern, "")
    return texts


def may_have_flags(texts: pa.Array) -> bool:
    """Whether letters after a number, if there are any, are flags of a few cells."""
    flags = pc.sum(pc.match_substring_regex(texts, _FLAG)).as_py() or 0
    return 2 * flags <= len(texts)


MOST_RANGES = 50
_CURRENCY = r"(?:\p{Sc}|[A-Z]{3} )?\s*"
_MULTIPLE = r"(?:\s*[kKmM]\b)?"
_NUMBER = rf"{_CURRENCY}-?\d[\d.,]*{_MULTIPLE}"
_UNIT = r"(?:%|\s*\p{L}+(?:\.|/\p{L}+)?|\s*[°/]\p{L}+)?"
_BETWEEN = r"\s*(?:-|–|—|−|\.\.|(?i: to | till | until | bis | through | and | - ))\s*"
_RANGE = (
    rf"^(?:between )?(?P<low>{_NUMBER}){_UNIT}{_BETWEEN}(?:<\s*)?"
    rf"(?P<high>{_NUMBER}){_UNIT}$"
)
# As pandas.cut writes it.
_INTERVAL = (
    rf"^[\[(]\s*(?P<low>{_NUMBER}|-inf|-∞)\s*(?:,\s|-|;)\s*"
    rf"(?P<high>{_NUMBER}|inf|∞)\s*[\])]$"
)
_ENDS = rf"^(?:between )?(?P<low>.*?\d.*?){_BETWEEN}(?P<high>[^-–—−]*\d[^-–—−]*)$"
SPACED_RANGE = r"\s(?:-|–|—|−)\s|[–—]|\.\.|(?i: to | till | until | bis | and )"
_LOWER = r"^(?:[<≤]=?|=<|(?i:less than|fewer than|at most|up to|under|below|until))"
_ABOVE = (
    rf"\d\+|(?:{BOUND_AFTER})$|"
    r"^(?:[>≥]|=>|(?i:more|greater|higher|at least|over|above))"
)
_BOUNDED = rf"^(?:{BOUND_BEFORE}\s*)?(?P<low>{_NUMBER})\+?{_UNIT}(?:\s*{BOUND_AFTER})?$"
_NEGATED = r"(?i:(?:or|and|&) (?:less|under|fewer|below|younger|lower))$"


def find_levels(texts: pa.Array) -> tuple[str, ...]:
    """Returns ranges, bounds and single numbers in their order."""
    if not 2 <= len(texts) <= MOST_RANGES:
        return ()
    # Most columns of text are ruled out before the patterns are compiled.
    if not pc.all(pc.match_substring_regex(texts, r"\d")).as_py():
        return ()
    low, high = np.full(len(texts), np.nan), np.full(len(texts), np.nan)
    for pattern in (_RANGE, _INTERVAL):
        parts = pc.extract_regex(texts, pattern)
        found = as_mask(parts.is_valid())
        low = np.where(found, _numbers(parts.field("low")), low)
        high = np.where(found, _numbers(parts.field("high")), high)
    ranges = ~np.isnan(low)
    single = _numbers(pc.extract_regex(texts, _BOUNDED).field("low"))
    less, more = (
        as_mask(pc.match_substring_regex(texts, pattern))
        for pattern in (rf"{_LOWER}|{_NEGATED}", _ABOVE)
    )
    more &= ~less
    low = np.where(ranges, low, np.where(less, -np.inf, single))
    high = np.where(ranges, high, np.where(more, np.inf, single))
    bounds = ~ranges & (less | more)
    # Bounds on both sides divide the numbers; bounds on one side are numbers.
    both = (less & bounds).any() and (more & bounds).any()
    if not (ranges.any() or (both and bounds.all())):
        return ()
    if 2 * (ranges | bounds).sum() < len(texts):
        return ()
    if (
        np.isnan(low).any()
        or np.isnan(high).any()
        or (low[ranges] >= high[ranges]).any()
    ):
        return ()
    order = np.lexsort((high, low))
    low, high = low[order], high[order]
    if (high[1:] < high[:-1]).any() or (low[1:] < high[:-1]).any():
        return ()
    return tuple(texts.take(pa.array(order)).to_pylist())


def split_ranges(texts: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Returns the two ends of ranges; null for both of a text that is none."""
    parts = pc.extract_regex(texts, _ENDS)
    none = pa.scalar(None, texts.type)
    low, high = (
        pc.if_else(parts.is_valid(), parts.field(name), none)
        for name in ("low", "high")
    )
    return low, high


def _numbers(texts: pa.Array) -> np.ndarray:
    """Returns the numbers of texts with currencies, thousands and multiples."""
    texts = pc.replace_substring_regex(texts, r"^(-?)∞$", r"\1inf")
    thousand = pc.match_substring_regex(texts, r"[kK]$")
    million = pc.match_substring_regex(texts, r"[mM]$")
    infinite = pc.match_substring(texts, "inf")
    digits = pc.replace_substring_regex(texts, r"[^\d.,-]", "")
    digits = pc.replace_substring_regex(digits, r"[.,](\d{3})", r"\1")
    digits = pc.replace_substring(digits, ",", ".")
    valid = pc.match_substring_regex(digits, r"^-?\d+(?:\.\d*)?$")
    known = pc.if_else(pc.fill_null(valid, False), digits, pa.scalar(None, digits.type))
    numbers = as_float(known)
    for found, factor in ((thousand, 1e3), (million, 1e6)):
        numbers = np.where(as_mask(found), factor * numbers, numbers)
    sign = np.where(as_mask(pc.starts_with(texts, "-")), -np.inf, np.inf)
    return np.where(as_mask(infinite), sign, numbers)
