"""Booleans in the spellings of several languages: `yes`, `N`, `true`, `nein`."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tfbbb.tables.notations.notation import Notation, NotationKind, Parsed

_TRUE = (
    *("yes", "y", "true", "t", "on", "1", "1.0"),
    *("ja", "j", "wahr", "oui", "vrai", "si", "sí", "sì", "sim", "tak", "да"),
)
_FALSE = (
    *("no", "n", "false", "f", "off", "0", "0.0"),
    *("nein", "nee", "falsch", "non", "faux", "não", "nao", "nie", "нет"),
)

# Of which the commonest spellings are those of a column.
_ROWS_SPELLED = 10_000


@dataclass(frozen=True)
class BooleanNotation(Notation):
    """The notation of a column of booleans: 1 for true, 0 for false.

    Example:
    >>> BooleanNotation().parse(pa.array(["Yes", "n", "on", "maybe"])).numbers
    array([ 1.,  0.,  1., nan])

    Attributes:
        lenient: Whether an unreadable cell counts as missing.
        missing_marks: Texts, in lower case, that mark a missing value.
    """

    kind: ClassVar[NotationKind] = "boolean"

    lenient: bool = False
    missing_marks: tuple[str, ...] = ()

    def parse(self, texts: pa.Array) -> Parsed:
        lower = pc.utf8_lower(texts)
        numbers = np.full(len(texts), np.nan)
        for words, value in ((_TRUE, 1.0), (_FALSE, 0.0)):
            found = pc.is_in(lower, pa.array(words, texts.type))
            numbers[found.to_numpy(zero_copy_only=False)] = value
        return Parsed(numbers, np.isnan(numbers))

    def spelling(self, cells: pa.ChunkedArray) -> dict[float, str]:
        """Returns the commonest text of each of the two values in a column.

        Example:
        >>> BooleanNotation().spelling(pa.chunked_array([["ja", "nein", "ja", None]]))
        {1.0: 'ja', 0.0: 'nein'}
        """
        texts = cells.cast(pa.string()).drop_null()
        found: dict[float, str] = {}
        for text, _ in Counter(texts.to_pylist()).most_common():
            number = self.parse(pa.array([text.strip()])).numbers.item()
            if not np.isnan(number):
                found.setdefault(number, text)
        return found


def spellings(
    table: pa.Table, notations: Mapping[str, Notation | None]
) -> dict[str, dict[float, str]]:
    """Returns how the first rows write the values of columns of two values."""
    rows = table.slice(0, _ROWS_SPELLED)
    return {
        name: notation.spelling(rows[name])
        for name, notation in notations.items()
        if isinstance(notation, BooleanNotation)
    }
