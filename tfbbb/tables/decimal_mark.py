"""Finds columns of numbers with decimal points or decimal commas among texts."""

from collections.abc import Collection
from typing import Literal

import pyarrow as pa
import pyarrow.compute

DecimalMark = Literal[".", ","]

# Such as 1,5 or 1.234,5 for the mark ",".
_NUMBER = (
    r"^ *[+-]?((\d+|[1-9]\d{0,2}({other}\d{3})+){mark}?\d*|{mark}\d+)([eE][+-]?\d+)? *$"
)
# Such as 1.234 or 12,345,678: the mark may also group the digits of a whole number.
_GROUPED = r"^ *[+-]?[1-9]\d{0,2}({mark}\d{3})+ *$"


class MarkedColumns:
    """Finds the columns of text that are numbers with a decimal mark.

    All cells of such a column are numbers with this mark or whole numbers, and at least
    one cell has the mark.

    Example:
    >>> columns = MarkedColumns(",")
    >>> columns.add(pa.record_batch({"a": ["1,5", "2"], "b": ["1,5", "x"]}))
    >>> columns.names
    {'a'}
    """

    def __init__(
        self, mark: DecimalMark, *, grouped: bool = False, ignored: Collection[str] = ()
    ) -> None:
        pattern, other = (r"\.", ",") if mark == "." else (",", r"\.")
        self.mark = mark
        self._number = _NUMBER.replace("{mark}", pattern).replace("{other}", other)
        self._grouped = None if grouped else _GROUPED.replace("{mark}", pattern)
        self._not_numbers = set(ignored)
        self._marked: set[str] = set()

    @property
    def names(self) -> set[str]:
        """The names of these columns among the rows so far."""
        return self._marked - self._not_numbers

    def add(self, batch: pa.RecordBatch) -> None:
        """Adds the next rows."""
        for field, column in zip(batch.schema, batch.columns, strict=True):
            if pa.types.is_string(field.type) and field.name not in self._not_numbers:
                self._add_texts(field.name, column.drop_null())

    def _add_texts(self, name: str, texts: pa.Array) -> None:
        numbers = pa.compute.match_substring_regex(texts, self._number)
        if pa.compute.any(pa.compute.invert(numbers)).as_py():
            self._not_numbers.add(name)
            return
        marked = pa.compute.match_substring(texts, self.mark)
        if self._grouped is not None:
            grouped = pa.compute.match_substring_regex(texts, self._grouped)
            marked = pa.compute.and_not(marked, grouped)
        if pa.compute.any(marked).as_py():
            self._marked.add(name)
