"""What stands around a number: signs of a bound, as in `<5`, and marks of footnotes."""

import pyarrow as pa
import pyarrow.compute as pc

BOUND_BEFORE = (
    r"(?:[<>≤≥]=?|=[<>]|[~≈]|(?i:(?:less|fewer|more|greater|higher|lower) than|"
    r"at least|at most|up to|under|over|below|above|until|from|approx\.?|about|circa|"
    r"ca\.?))"
)
BOUND_AFTER = (
    r"(?:\+|(?i:(?:or|and|&) "
    r"(?:more|less|over|above|older|under|fewer|below|up|younger|higher|lower|greater)))"
)
_BOUND = rf"^{BOUND_BEFORE}\s*|\s*{BOUND_AFTER}$"
# Flags of statistical offices, such as p for provisional; none of them is a unit.
_FLAG = r" [abenpruz]{1,2}$"
_FOOTNOTE = (
    rf"^[*†‡§¶]+\s*|{_FLAG}|"
    r"\s*(?:[*†‡§¶#^ᵃᵇᶜ¹²³]+|\[[\w ]{1,8}\]|\([a-z*]{1,2}\))$"
)


def strip_annotations(texts: pa.Array, *, bounds: bool, footnotes: bool) -> pa.Array:
    """Returns texts without signs of bounds or marks of footnotes.

    Example:
    >>> cells = pa.array(["<5", ">= 10", "65+", "2.5*", "7 [1]"])
    >>> strip_annotations(cells, bounds=True, footnotes=True).to_pylist()
    ['5', '10', '65', '2.5', '7']
    """
    for stripped, pattern in ((footnotes, _FOOTNOTE), (bounds, _BOUND)):
        if stripped:
            texts = pc.replace_substring_regex(texts, pattern, "")
    return texts


def have_bound(texts: pa.Array) -> pa.Array:
    """Returns which texts have signs of a bound."""
    return pc.match_substring_regex(texts, _BOUND)


def have_footnote(texts: pa.Array) -> pa.Array:
    """Returns which texts have marks of a footnote."""
    return pc.match_substring_regex(texts, _FOOTNOTE)


def may_have_flags(texts: pa.Array) -> bool:
    """Whether letters after a number, if there are any, are flags of a few cells."""
    flags = pc.sum(pc.match_substring_regex(texts, _FLAG)).as_py() or 0
    return 2 * flags <= len(texts)
