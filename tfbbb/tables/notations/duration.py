"""Durations and times of day: `1:30:00`, `2 days 03:00`, `1 h 30 min`, `9:15 PM`."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tfbbb.tables.notations.notation import (
    Notation,
    NotationKind,
    Parsed,
    as_float,
    as_mask,
)

_UNITS = {"days": 86400.0, "hours": 3600.0, "minutes": 60.0, "seconds": 1.0}
_DECIMAL = r"\d+(?:\.\d+)?"
_UP_TO_60 = r"[0-5]\d(?:\.\d+)?"
_SIGN = "^(?P<sign>[-+])?"
_DAYS = rf"{_SIGN}(?:(?P<days>{_DECIMAL}) ?d(?:ays?)?,?)? ?"
_HALF = r"(?: ?(?P<half>[AaPp])\.?[Mm]\.?)?$"
_FULL = (
    rf"{_DAYS}(?P<hours>\d+):(?P<minutes>{_UP_TO_60}):(?P<seconds>{_UP_TO_60}){_HALF}"
)
_PATTERNS = (
    rf"{_DAYS}(?:(?P<hours>{_DECIMAL}) ?h(?:rs?|ours?)?,?)? ?"
    rf"(?:(?P<minutes>{_DECIMAL}) ?m(?:ins?|inutes?)?,?)? ?"
    rf"(?:(?P<seconds>{_DECIMAL}) ?s(?:ecs?|econds?)?)?$",
    rf"{_DAYS}(?P<hours>\d+) ?[hH] ?(?P<minutes>[0-5]\d)(?: ?m(?:in)?)?$",
    rf"{_SIGN}P(?:(?P<days>{_DECIMAL})D)?(?:T(?:(?P<hours>{_DECIMAL})H)?"
    rf"(?:(?P<minutes>{_DECIMAL})M)?(?:(?P<seconds>{_DECIMAL})S)?)?$",
)
# By what stands first.
_SHORT = {
    "hours": (rf"{_DAYS}(?P<hours>\d+):(?P<minutes>{_UP_TO_60}){_HALF}",),
    "minutes": (
        rf"{_DAYS}(?P<minutes>\d+):(?P<seconds>{_UP_TO_60})$",
        rf"{_SIGN}(?P<seconds>{_DECIMAL})$",
    ),
}


@dataclass(frozen=True)
class DurationNotation(Notation):
    """The notation of a column of durations or times of day, in seconds.

    `leading` stands first in `1:30`; after minutes, a number alone is seconds.
    """

    kind: ClassVar[NotationKind] = "duration"

    leading: str = "hours"

    def parse(self, texts: pa.Array) -> Parsed:
        seconds = np.full(len(texts), np.nan)
        for pattern in (_FULL, *_SHORT[self.leading], *_PATTERNS):
            if np.isnan(seconds).any():
                seconds = np.where(np.isnan(seconds), _seconds(texts, pattern), seconds)
        return Parsed(seconds, np.isnan(seconds))

    def describe(self) -> str:
        return "in seconds"


def _seconds(texts: pa.Array, pattern: str) -> np.ndarray:
    parts = pc.extract_regex(texts, pattern)
    names = {field.name for field in parts.type}
    values = {name: as_float(parts.field(name)) for name in names & {*_UNITS}}
    known = np.any([~np.isnan(value) for value in values.values()], axis=0)
    if "half" in names:
        halves, hours = pc.utf8_lower(parts.field("half")), values["hours"]
        of_half = as_mask(pc.not_equal(halves, ""))
        known &= ~of_half | ((hours >= 1) & (hours <= 12))
        afternoon = as_mask(pc.equal(halves, "p"))
        values["hours"] = np.where(of_half, hours % 12 + 12.0 * afternoon, hours)
    total = sum(_UNITS[name] * np.nan_to_num(values[name]) for name in values)
    negative = as_mask(pc.equal(parts.field("sign"), "-"))
    return np.where(known, np.where(negative, -1.0, 1.0) * total, np.nan)
