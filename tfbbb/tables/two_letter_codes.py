"""Columns of codes of two letters, such as those of countries, of which NA is one."""

from collections.abc import Collection

import pyarrow as pa
import pyarrow.compute as pc

from tfbbb.tables.csv_types import WRITTEN_MISSING_WORDS

NA = "NA"
# So many other codes at least, each a text of two capital letters.
_FEWEST = 3
_CODE = r"^[A-Z]{2}$"


def is_code_among(others: pa.Array) -> bool:
    """Whether NA is a code as the other distinct texts of a column are.

    Example:
    >>> is_code_among(pa.array(["SA", "EU", "AS"]))
    True
    >>> is_code_among(pa.array(["SA", "EU", "none"]))
    False
    """
    codes = pc.match_substring_regex(others, _CODE)
    return len(others) >= _FEWEST and bool(pc.all(codes).as_py())


class TwoLetterCodes:
    """Finds the columns of text with missing cells, all others of which are codes."""

    def __init__(self) -> None:
        self._texts: dict[str, pa.Array] = {}
        self._with_missing: set[str] = set()
        self._others: set[str] = set()

    @property
    def names(self) -> frozenset[str]:
        """The names of these columns among the rows so far."""
        return frozenset(
            name
            for name, texts in self._texts.items()
            if name in self._with_missing - self._others and is_code_among(texts)
        )

    def add(self, batch: pa.RecordBatch) -> None:
        """Adds the next rows."""
        for field, column in zip(batch.schema, batch.columns, strict=True):
            if not pa.types.is_string(field.type) or field.name in self._others:
                continue
            if column.null_count:
                self._with_missing.add(field.name)
            texts = pc.unique(column.drop_null())
            if not pc.all(pc.match_substring_regex(texts, _CODE)).as_py():
                self._others.add(field.name)
                self._texts.pop(field.name, None)
                continue
            known = self._texts.get(field.name, texts)
            self._texts[field.name] = pc.unique(pa.concat_arrays([known, texts]))


def keep_na(batch: pa.RecordBatch, names: Collection[str]) -> pa.RecordBatch:
    """Returns rows in which missing texts are null, but not NA in some columns."""
    columns = []
    for field, column in zip(batch.schema, batch.columns, strict=True):
        if pa.types.is_string(field.type):
            kept = (NA, f" {NA}") if field.name in names else ()
            words = [word for word in WRITTEN_MISSING_WORDS if word not in kept]
            missing = pc.is_in(column, pa.array(words, field.type))
            column = pc.if_else(missing, pa.scalar(None, field.type), column)
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)
