"""Notations of words: booleans, texts with an order, and categories."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tfbbb.tables.notations.notation import Notation, NotationKind, Parsed, as_mask

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
    """The notation of a column of booleans: 1 for true, 0 for false."""

    kind: ClassVar[NotationKind] = "boolean"

    def parse(self, texts: pa.Array) -> Parsed:
        lower = pc.utf8_lower(texts)
        numbers = np.full(len(texts), np.nan)
        for words, value in ((_TRUE, 1.0), (_FALSE, 0.0)):
            found = pc.is_in(lower, pa.array(words, texts.type))
            numbers[as_mask(found)] = value
        return Parsed(numbers, np.isnan(numbers))

    def spelling(self, cells: pa.ChunkedArray) -> dict[float, str]:
        """Returns the commonest text of each of the two values in a column."""
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


@dataclass(frozen=True)
class OrderedNotation(Notation):
    """The notation of a column of ordered texts: 0 for the first, 1 for the next."""

    kind: ClassVar[NotationKind] = "ordered"

    levels: tuple[str, ...]

    def parse(self, texts: pa.Array) -> Parsed:
        levels = pa.array([level.lower() for level in self.levels], texts.type)
        places = pc.index_in(pc.utf8_lower(texts), value_set=levels)
        numbers = places.cast(pa.float64()).to_numpy(zero_copy_only=False)
        return Parsed(numbers, np.isnan(numbers))

    def describe(self) -> str:
        return " < ".join(self.levels)


@dataclass(frozen=True)
class TextNotation(Notation):
    """The notation of a column of categories that needs more than the plain texts."""

    kind: ClassVar[NotationKind] = "text"

    marks: bool = False
    numbers: bool = False
    dash: str = ""
    fold: bool = False

    def parse(self, texts: pa.Array) -> Parsed:
        """Texts stand for no numbers: all are unreadable."""
        return Parsed(np.full(len(texts), np.nan), np.ones(len(texts), dtype=bool))

    def describe(self) -> str:
        return "whole numbers as categories" if self.numbers else ""
