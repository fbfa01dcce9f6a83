"""The types that a CSV column may take, as Arrow's reader tries them."""

from collections.abc import Iterable

import pyarrow as pa

_TEXT = pa.string()
_NUMBER = pa.float64()
_LADDER = (
    *(pa.null(), pa.int64(), pa.bool_(), pa.date32(), pa.time32("s")),
    *(pa.timestamp("s"), pa.timestamp("s", "UTC")),
    *(pa.timestamp("ns"), pa.timestamp("ns", "UTC")),
    *(_NUMBER, _TEXT),
)
# Types beside its own that a block may be read as: 0 and 1 are truth values too,
# and times to the second may have more digits, within the years 1677 to 2262.
_ALSO = {
    pa.null(): _LADDER,
    pa.int64(): (pa.bool_(), _NUMBER),
    pa.date32(): (pa.timestamp("s"), pa.timestamp("ns")),
    pa.timestamp("s"): (pa.timestamp("ns"),),
    pa.timestamp("s", "UTC"): (pa.timestamp("ns", "UTC"),),
}


def types_of_all(types_of_blocks: Iterable[pa.DataType]) -> list[pa.DataType]:
    """Returns the types that a whole column may have, the first to try first.

    Args:
        types_of_blocks: The type that each block of the column would have alone.

    Example:
    >>> types_of_all([pa.int64(), pa.null(), pa.float64()])
    [DataType(double), DataType(string)]
    >>> types_of_all([pa.int64(), pa.bool_()])
    [DataType(bool), DataType(string)]
    """
    fitting = [{type_, *_ALSO.get(type_, ()), _TEXT} for type_ in types_of_blocks]
    common = set.intersection(*fitting)
    return [type_ for type_ in _LADDER if type_ in common] or [_TEXT]
