"""The marks that people write in place of a missing value."""

import functools

import pyarrow as pa
import pyarrow.compute as pc

# In lower case. In a column of text, "-" and "none" may be categories.
_IN_TEXT = (
    *("", "?", "na", "n/a", "#n/a", "#na", "#n/a n/a", "<na>"),
    *("nan", "-nan", "null", "(null)", "nat"),
)
DASHES = ("-", "--", "---", "–", "—")
_IN_NUMBERS = (*_IN_TEXT, *DASHES, ".", "none", "nil", "n.a.")


def are_missing(texts: pa.Array, *, in_text: bool = False) -> pa.Array:
    """Returns which texts, without spaces around them, mark a missing value.

    Args:
        texts: The texts; null is missing.
        in_text: Whether they are categories, of which "-" and "none" may be two.

    Example:
    >>> are_missing(pa.array(["3", "N/A", "?", "-", None])).to_pylist()
    [False, True, True, True, True]
    """
    marks = _marks(texts.type, in_text)
    return pc.or_(pc.is_null(texts), pc.is_in(pc.utf8_lower(texts), marks))


@functools.cache
def _marks(type_: pa.DataType, in_text: bool) -> pa.Array:
    return pa.array(_IN_TEXT if in_text else _IN_NUMBERS, type_)
