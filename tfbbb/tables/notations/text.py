"""Texts that are categories, some of which mark a missing value."""

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from tfbbb.tables.notations.notation import NotationKind, Parsed


@dataclass(frozen=True)
class TextNotation:
    """The notation of a column of categories that needs more than the plain texts.

    Attributes:
        marks: Whether texts such as `?` and `NA` are missing values.
        dash: The text of dashes, such as `-`, that is a missing value as well; empty
            for none.
        numbers: Whether whole numbers are categories, written as their digits.
        lenient: Whether an unreadable cell counts as missing; every text is readable.
    """

    kind: ClassVar[NotationKind] = "text"

    marks: bool = False
    numbers: bool = False
    lenient: bool = False
    dash: str = ""

    def parse(self, texts: pa.Array) -> Parsed:
        """Texts stand for no numbers: all are unreadable."""
        return Parsed(np.full(len(texts), np.nan), np.ones(len(texts), dtype=bool))

    def describe(self) -> str:
        """Describes the notation in a few words."""
        return "whole numbers as categories" if self.numbers else ""

    def to_dict(self) -> dict[str, Any]:
        """Returns the record as plain JSON values."""
        return {"kind": self.kind, **asdict(self)}
