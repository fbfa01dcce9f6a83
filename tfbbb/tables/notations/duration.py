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

_DECIMAL = r"\d+(?:\.\d+)?"
_CLOCK = (
    r"^(?P<sign>[-+])?(?:(?P<days>\d+) ?d(?:ays?)?,?)? ?"
    r"(?P<first>\d+):(?P<second>\d{2}(?:\.\d+)?)(?::(?P<third>\d{2}(?:\.\d+)?))?"
    r"(?: ?(?P<half>[AaPp])\.?[Mm]\.?)?$"
)
_WORDS = (
    rf"^(?P<sign>[-+])?(?:(?P<days>{_DECIMAL}) ?d(?:ays?)?,?)? ?"
    rf"(?:(?P<hours>{_DECIMAL}) ?h(?:rs?|ours?)?,?)? ?"
    rf"(?:(?P<minutes>{_DECIMAL}) ?m(?:ins?|inutes?)?,?)? ?"
    rf"(?:(?P<seconds>{_DECIMAL}) ?s(?:ecs?|econds?)?)?$"
)
_HOURS = (
    r"^(?P<sign>[-+])?(?:(?P<days>\d+) ?d(?:ays?)?,?)? ?(?P<hours>\d+) ?[hH] ?"
    r"(?P<minutes>[0-5]\d)(?: ?m(?:in)?)?(?P<seconds>)$"
)
_ISO = (
    rf"^(?P<sign>[-+])?P(?:(?P<days>{_DECIMAL})D)?(?:T(?:(?P<hours>{_DECIMAL})H)?"
    rf"(?:(?P<minutes>{_DECIMAL})M)?(?:(?P<seconds>{_DECIMAL})S)?)?$"
)
_SECONDS = (
    rf"^(?P<sign>[-+])?(?P<days>)(?P<hours>)(?P<minutes>)(?P<seconds>{_DECIMAL})$"
)


@dataclass(frozen=True)
class DurationNotation(Notation):
    """The notation of a column of durations or times of day, in seconds.

    `leading` stands first in `1:30`; after minutes, a number alone is seconds.
    """

    kind: ClassVar[NotationKind] = "duration"

    leading: str = "hours"

    def parse(self, texts: pa.Array) -> Parsed:
        seconds = self._clock(texts)
        seconds_alone = (_SECONDS,) if self.leading == "minutes" else ()
        for pattern in (_WORDS, _HOURS, _ISO, *seconds_alone):
            if np.isnan(seconds).any():
                seconds = np.where(np.isnan(seconds), _worded(texts, pattern), seconds)
        return Parsed(seconds, np.isnan(seconds))

    def _clock(self, texts: pa.Array) -> np.ndarray:
        parts = pc.extract_regex(texts, _CLOCK)
        first, second = as_float(parts.field("first")), as_float(parts.field("second"))
        third, days = as_float(parts.field("third")), as_float(parts.field("days"))
        short = np.isnan(third) & (self.leading == "minutes")
        hours = np.where(short, 0.0, first)
        minutes = np.where(short, first, second)
        rest = np.where(short, second, np.nan_to_num(third))
        of_half, afternoon = (
            as_mask(pc.is_in(parts.field("half"), pa.array(halves, texts.type)))
            for halves in (["A", "a", "P", "p"], ["P", "p"])
        )
        wrong = of_half & ((hours < 1) | (hours > 12))
        hours = np.where(of_half, hours % 12 + 12.0 * afternoon, hours)
        wrong |= (second >= 60) | (np.nan_to_num(third) >= 60)
        seconds = 86400 * np.nan_to_num(days) + 3600 * hours + 60 * minutes + rest
        return np.where(wrong, np.nan, _signed(seconds, parts))

    def describe(self) -> str:
        return "in seconds"


def _worded(texts: pa.Array, pattern: str) -> np.ndarray:
    parts = pc.extract_regex(texts, pattern)
    units = {"days": 86400.0, "hours": 3600.0, "minutes": 60.0, "seconds": 1.0}
    values = {name: as_float(parts.field(name)) for name in units}
    known = np.any([~np.isnan(value) for value in values.values()], axis=0)
    total = sum(units[name] * np.nan_to_num(values[name]) for name in units)
    return np.where(known, _signed(total, parts), np.nan)


def _signed(seconds: np.ndarray, parts: pa.Array) -> np.ndarray:
    return np.where(as_mask(pc.equal(parts.field("sign"), "-")), -seconds, seconds)
