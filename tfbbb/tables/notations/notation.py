"""The interface of notations, and texts as the numbers that they stand for."""

import functools
from abc import abstractmethod
from dataclasses import asdict, dataclass, field
from typing import ClassVar, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tfbbb.base.types import Config
from tfbbb.tables.notations.missing_marks import are_missing

NotationKind = Literal["number", "boolean", "date", "duration", "ordered", "text"]

# Texts that repeat are parsed once, if this many at the beginning repeat often. Of few
# texts, parsing costs less than this test.
_BEGINNING, _FEW = 10_000, 200


class Parsed(NamedTuple):
    """The numbers that texts stand for."""

    numbers: np.ndarray
    unreadable: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Notation:
    """How the cells of a column are written: a record of plain JSON values.

    It is found once, in the training table, and applied unchanged to later tables.
    """

    kind: ClassVar[NotationKind]

    missing_marks: tuple[str, ...] = ()

    @property
    def needs_text(self) -> bool:
        """Whether the cells of a file are read as texts, even if all are numbers."""
        return True

    @abstractmethod
    def parse(self, texts: pa.Array) -> Parsed:
        """Parses texts that have no spaces around them and are not missing."""

    def describe(self) -> str:
        """Describes the notation in a few words."""
        return ""

    def to_dict(self) -> Config:
        """Returns the record as plain JSON values."""
        values = asdict(self)
        lists = {k: list(v) for k, v in values.items() if isinstance(v, tuple)}
        return {"kind": self.kind, **values, **lists}


@dataclass(frozen=True)
class Texts:
    """The cells of a text column; where they repeat, each distinct cell once."""

    cells: pa.Array
    places: np.ndarray | None = None
    _parsed: dict[Notation, Parsed] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, column: pa.Array | pa.ChunkedArray) -> "Texts":
        """Reads the cells of a column, and finds whether they repeat."""
        cells = column.cast(pa.large_string())
        if isinstance(cells, pa.ChunkedArray):
            cells = cells.combine_chunks()
        if not pc.all(pc.string_is_ascii(cells)).as_py():
            # In a file of a Mac, ü may be u with a mark.
            cells = pc.utf8_normalize(cells, "NFC")
        beginning = cells.slice(0, _BEGINNING)
        if len(cells) < _FEW or 2 * pc.count_distinct(beginning).as_py() > len(
            beginning
        ):
            return cls(cells)
        encoded = cells.dictionary_encode(null_encoding="encode")
        return cls(encoded.dictionary, encoded.indices.to_numpy())

    @functools.cached_property
    def trimmed(self) -> pa.Array:
        """The cells without spaces around them."""
        return pc.utf8_trim_whitespace(self.cells)

    def parse(self, notation: Notation) -> Parsed:
        """Parses the texts of all rows, once in each notation."""
        if notation not in self._parsed:
            numbers, unreadable = _parse_known(self.trimmed, notation)
            parsed = Parsed(self.spread(numbers), self.spread(unreadable))
            self._parsed[notation] = parsed
        return self._parsed[notation]

    @functools.cached_property
    def distinct(self) -> pa.Array:
        """The distinct trimmed texts, without missing marks, in their order."""
        texts = pc.unique(self.trimmed)
        return texts.filter(pc.invert(are_missing(texts)))

    def missing(self, *, in_text: bool = False, dash: str = "") -> np.ndarray:
        """Returns which of `cells` mark a missing value."""
        missing = are_missing(self.trimmed, in_text=in_text)
        if dash:
            missing = pc.or_kleene(missing, pc.equal(self.trimmed, dash))
        return as_mask(missing)

    def count(self, chosen: np.ndarray) -> dict[str, int]:
        """Counts the rows of each trimmed text among the chosen rows `[n]`."""
        rows = np.flatnonzero(chosen)
        places = rows if self.places is None else self.places[rows]
        counts = pc.value_counts(self.trimmed.take(pa.array(places)))
        return {count["values"]: count["counts"] for count in counts.to_pylist()}

    def text(self, row: int) -> str | None:
        """Returns the trimmed text of a row, counted from 1."""
        place = row - 1 if self.places is None else int(self.places[row - 1])
        return self.trimmed[place].as_py()

    def spread(self, values: np.ndarray) -> np.ndarray:
        """Returns the values of all rows, given those of `cells`."""
        return values if self.places is None else values[self.places]


def _parse_known(texts: pa.Array, notation: Notation) -> Parsed:
    missing = are_missing(texts)
    if notation.missing_marks:
        marks = pa.array(notation.missing_marks, texts.type)
        missing = pc.or_(missing, pc.is_in(pc.utf8_lower(texts), marks))
    if pc.any(missing).as_py():
        known = pc.if_else(missing, pa.scalar(None, texts.type), texts)
        numbers, unreadable = notation.parse(known)
        unreadable &= ~as_mask(missing)
        return Parsed(numbers, unreadable)
    return notation.parse(texts)


def as_mask(found: pa.Array) -> np.ndarray:
    """Returns booleans as an array `[n]`, false for null."""
    return np.array(pc.fill_null(found, False))


def as_float(texts: pa.Array) -> np.ndarray:
    """Casts texts of digits to float64, NaN for null and for the empty text."""
    filled = pc.if_else(pc.equal(texts, ""), pa.scalar(None, texts.type), texts)
    return filled.cast(pa.float64()).to_numpy(zero_copy_only=False)
