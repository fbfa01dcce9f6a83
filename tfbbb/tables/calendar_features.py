"""Dates as features: days, years and the cycles of the calendar."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from tfbbb.base.types import Config, Tensor
from tfbbb.tables.number_features import RowEncoder
from tfbbb.tables.values import MISSING_DATE

_DAY = 86400
# From the first of March of the year 0 to the first day of 1970.
_DAYS_TO_1970 = 719468
_DAYS_IN_400_YEARS = 146097
_CYCLES = ("month", "weekday", "hour")


@keras.saving.register_keras_serializable(package="tfbbb")
class CalendarFeatures(RowEncoder):
    """Encodes dates as days, years, and sine and cosine of the calendar's cycles.

    For seconds t since 1970 and a column that begins at t_0,

        d = (t - t_0) / 86400,    h_1 = (d - mean) / scale,
        h_2 = (year - year_0) / years   if the column has more than one year,
        sin(2 pi c), cos(2 pi c)        for each cycle c of the column:
        (month - 1) / 12, weekday / 7 (0 is Monday), second of the day / 86400

    All are 0 where the date is missing, which an indicator then says if the column may
    have missing values. The arithmetic is of integers, exact for every date of the
    proleptic Gregorian calendar (Neri and Schneider 2023, "Euclidean affine functions
    and their application to calendar algorithms").

    Takes int64 seconds since 1970 `[n, d]`, of which the least int64 is missing.
    """

    settings = ("columns",)

    def __init__(self, columns: Sequence[Config], **kwargs: Any):
        super().__init__(autocast=False, **kwargs)
        self.columns = [{**c, "cycles": list(c["cycles"])} for c in columns]
        for column in self.columns:
            if not column["scale"] > 0:
                raise ValueError(
                    f"Every `scale` must be positive. Received: scale={column['scale']}"
                )
            if unknown := set(column["cycles"]) - set(_CYCLES):
                raise ValueError(
                    f"A cycle must be one of {', '.join(_CYCLES)}. "
                    f"Received: {sorted(unknown)}"
                )

    def _encode(self, inputs: Tensor) -> Tensor:
        inputs = ops.cast(inputs, "int64")
        parts = []
        for place, column in enumerate(self.columns):
            parts += self._encode_column(inputs[:, place], column)
        return ops.cast(ops.stack(parts, axis=-1), self.compute_dtype)

    def _encode_column(self, given: Tensor, column: Config) -> list[Tensor]:
        missing = ops.equal(given, MISSING_DATE)
        low = int(column["low"])
        seconds = ops.where(missing, ops.full_like(given, low), given)
        # Days and seconds apart are exact in single precision; seconds are not.
        passed = seconds - low
        days = ops.cast(passed // _DAY, "float32")
        days += ops.cast(passed % _DAY, "float32") / np.float32(_DAY)
        shifted = days - np.float32(column["mean"])
        scale = np.inf if column["constant"] else column["scale"]
        features = [shifted / np.float32(scale)]
        day, second = seconds // _DAY, seconds % _DAY
        year, month = year_and_month(day)
        first, last = _year(column["low"]), _year(column["high"])
        if last > first:
            features.append(
                ops.cast(year - first, "float32") / np.float32(last - first)
            )
        turns = {
            "month": (month - 1, 12),
            # The first day of 1970 was a Thursday.
            "weekday": ((day + 3) % 7, 7),
            "hour": (second, _DAY),
        }
        for cycle in column["cycles"]:
            part, whole = turns[cycle]
            angle = ops.cast(part, "float32") * np.float32(2 * np.pi / whole)
            features += [ops.sin(angle), ops.cos(angle)]
        features = [ops.where(missing, 0.0, feature) for feature in features]
        if column["missing"]:
            features.append(ops.cast(missing, "float32"))
        return features

    def compute_output_shape(self, input_shape):
        width = sum(
            1
            + (_year(column["high"]) > _year(column["low"]))
            + 2 * len(column["cycles"])
            + bool(column["missing"])
            for column in self.columns
        )
        return (input_shape[0], width)


def year_and_month(days: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the year and the month, 1 to 12, of days since 1970."""
    shifted = days + _DAYS_TO_1970
    era = shifted // _DAYS_IN_400_YEARS
    day_of_era = shifted - era * _DAYS_IN_400_YEARS
    leap = day_of_era // 1460 - day_of_era // 36524 + day_of_era // 146096
    year_of_era = (day_of_era - leap) // 365
    day_of_year = day_of_era - (
        365 * year_of_era + year_of_era // 4 - year_of_era // 100
    )
    from_march = (5 * day_of_year + 2) // 153
    month = ops.where(from_march < 10, from_march + 3, from_march - 9)
    year = year_of_era + era * 400 + ops.cast(month <= 2, "int64")
    return year, month


def _year(seconds: float) -> int:
    years = np.datetime64(int(seconds), "s").astype("datetime64[Y]").astype(int)
    return int(years) + 1970
