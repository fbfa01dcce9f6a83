"""Texts with an order: `low`, `middle`, `high`."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tfbbb.tables.notations.notation import Notation, NotationKind, Parsed


@dataclass(frozen=True)
class OrderedNotation(Notation):
    """The notation of a column of ordered texts: 0 for the first, 1 for the next.

    Upper and lower case are the same.

    Attributes:
        levels: The texts, from the least to the greatest.
        lenient: Whether an unreadable cell counts as missing.
        missing_marks: Texts, in lower case, that mark a missing value.

    Example:
    >>> notation = OrderedNotation(("S", "M", "L"))
    >>> notation.parse(pa.array(["L", "s", "XL"])).numbers
    array([ 2.,  0., nan])
    """

    kind: ClassVar[NotationKind] = "ordered"

    levels: tuple[str, ...]
    lenient: bool = False
    missing_marks: tuple[str, ...] = ()

    def parse(self, texts: pa.Array) -> Parsed:
        levels = pa.array([level.lower() for level in self.levels], texts.type)
        places = pc.index_in(pc.utf8_lower(texts), value_set=levels)
        numbers = places.cast(pa.float64()).to_numpy(zero_copy_only=False)
        return Parsed(numbers, np.isnan(numbers))

    def describe(self) -> str:
        return " < ".join(self.levels)
