"""Texts that are categories, some of which mark a missing value."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from tfbbb.tables.notations.notation import Notation, NotationKind, Parsed


@dataclass(frozen=True)
class TextNotation(Notation):
    """The notation of a column of categories that needs more than the plain texts.

    Attributes:
        marks: Whether texts such as `?` and `NA` are missing values.
        dash: The text of dashes, such as `-`, that is a missing value as well; empty
            for none.
        numbers: Whether whole numbers are categories, written as their digits.
        lenient: Whether an unreadable cell counts as missing; every text is readable.
        fold: Whether texts that differ by case or spaces around them alone are one, in
            small letters.
    """

    kind: ClassVar[NotationKind] = "text"

    marks: bool = False
    numbers: bool = False
    lenient: bool = False
    dash: str = ""
    fold: bool = False

    def parse(self, texts: pa.Array) -> Parsed:
        """Texts stand for no numbers: all are unreadable."""
        return Parsed(np.full(len(texts), np.nan), np.ones(len(texts), dtype=bool))

    def describe(self) -> str:
        return "whole numbers as categories" if self.numbers else ""
