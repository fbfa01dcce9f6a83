"""The interface of notations, and texts as the numbers that they stand for."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tfbbb.tables.notations.missing_marks import are_missing

NotationKind = Literal["number", "boolean", "date", "duration", "ordered", "text"]

# Texts that repeat are parsed once, if this many at the beginning repeat often.
_BEGINNING = 10_000


class Parsed(NamedTuple):
    """The numbers that texts stand for.

    Attributes:
        numbers: float64 `[n]`, NaN where a text is missing or unreadable.
        unreadable: Which texts `[n]` are neither missing nor in the notation.
    """

    numbers: np.ndarray
    unreadable: np.ndarray


class Notation(Protocol):
    """How the cells of a column are written: a record of plain JSON values.

    It is found once, in the training table, and applied unchanged to every later
    table, so that the same cell is the same number in files, tables in memory and
    requests.

    Attributes:
        kind: What the cells are.
        lenient: Whether an unreadable cell counts as missing.
    """

    kind: ClassVar[NotationKind]

    @property
    def lenient(self) -> bool: ...

    def parse(self, texts: pa.Array) -> Parsed:
        """Parses texts that have no spaces around them and are not missing."""

    def describe(self) -> str:
        """Describes the notation in a few words."""

    def to_dict(self) -> dict[str, Any]:
        """Returns the record as plain JSON values."""


@dataclass(frozen=True)
class Texts:
    """The cells of a text column without spaces around them.

    Attributes:
        values: The texts `[n]`; null is missing.
    """

    values: pa.Array

    @classmethod
    def of(cls, column: pa.Array | pa.ChunkedArray) -> "Texts":
        """Trims the cells of a column."""
        texts = column.cast(pa.large_string())
        if isinstance(texts, pa.ChunkedArray):
            texts = texts.combine_chunks()
        return cls(pc.utf8_trim_whitespace(texts))

    def parse(self, notation: Notation) -> Parsed:
        """Parses all texts; each text only once if texts repeat."""
        return self._per_distinct(lambda texts: _parse_known(texts, notation))

    def distinct(self) -> pa.Array:
        """Returns the distinct texts, without missing marks, in their order."""
        texts = pc.unique(self.values)
        return texts.filter(pc.invert(are_missing(texts)))

    def missing(self, *, in_text: bool = False, dash: str = "") -> np.ndarray:
        """Returns which texts `[n]` mark a missing value.

        Args:
            in_text: Whether they are categories, of which "-" and "none" may be two.
            dash: A text of dashes that marks a missing value all the same.
        """
        missing = are_missing(self.values, in_text=in_text)
        if dash:
            missing = pc.or_kleene(missing, pc.equal(self.values, dash))
        return missing.to_numpy(zero_copy_only=False)

    def _per_distinct(self, parse: Callable[[pa.Array], Parsed]) -> Parsed:
        beginning = self.values.slice(0, _BEGINNING)
        if 2 * pc.count_distinct(beginning).as_py() > len(beginning):
            return parse(self.values)
        encoded = self.values.dictionary_encode(null_encoding="encode")
        parsed = parse(encoded.dictionary)
        places = encoded.indices.to_numpy()
        return Parsed(parsed.numbers[places], parsed.unreadable[places])


def _parse_known(texts: pa.Array, notation: Notation) -> Parsed:
    missing = are_missing(texts)
    if pc.any(missing).as_py():
        known = pc.if_else(missing, pa.scalar(None, texts.type), texts)
        numbers, unreadable = notation.parse(known)
        unreadable &= ~missing.to_numpy(zero_copy_only=False)
        return Parsed(numbers, unreadable)
    return notation.parse(texts)


def as_float(texts: pa.Array) -> np.ndarray:
    """Casts texts of digits to float64, NaN for null and for the empty text."""
    filled = pc.if_else(pc.equal(texts, ""), pa.scalar(None, texts.type), texts)
    return filled.cast(pa.float64()).to_numpy(zero_copy_only=False)
