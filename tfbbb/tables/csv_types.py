"""The column types of CSV files, in the order in which Arrow's reader tries them."""

from collections.abc import Iterable

import pyarrow as pa

# The cells that are missing values, in columns of every type.
MISSING_WORDS = (
    *("", "NA", "N/A", "n/a", "#N/A", "#NA", "#N/A N/A"),
    *("NaN", "nan", "-NaN", "-nan", "NULL", "null"),
)
# Also after a space, as in "1, NA": Arrow allows a space before numbers.
WRITTEN_MISSING_WORDS = (*MISSING_WORDS, *(f" {word}" for word in MISSING_WORDS))

_TEXT = pa.string()
_NUMBER = pa.float64()
_LADDER = (
    *(pa.null(), pa.int64(), pa.bool_(), pa.date32(), pa.time32("s")),
    *(pa.timestamp("s"), pa.timestamp("s", "UTC")),
    *(pa.timestamp("ns"), pa.timestamp("ns", "UTC")),
    *(_NUMBER, _TEXT),
)
# Further types as which a block of a type can be read: 0 and 1 are booleans too, and
# times in seconds are times in nanoseconds within the years 1677 to 2262.
_ALSO = {
    pa.null(): _LADDER,
    pa.int64(): (pa.bool_(), _NUMBER),
    pa.date32(): (pa.timestamp("s"), pa.timestamp("ns")),
    pa.timestamp("s"): (pa.timestamp("ns"),),
    pa.timestamp("s", "UTC"): (pa.timestamp("ns", "UTC"),),
}


def find_common_types(block_types: Iterable[pa.DataType]) -> list[pa.DataType]:
    """Returns the possible types of a whole column, in the order to try them.

    Example:
    >>> find_common_types([pa.int64(), pa.null(), pa.float64()])
    [DataType(double), DataType(string)]
    >>> find_common_types([pa.int64(), pa.bool_()])
    [DataType(bool), DataType(string)]
    """
    fitting = [{type_, *_ALSO.get(type_, ()), _TEXT} for type_ in block_types]
    common = set.intersection(*fitting)
    return [type_ for type_ in _LADDER if type_ in common] or [_TEXT]
