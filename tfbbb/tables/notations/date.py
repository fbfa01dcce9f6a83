"""Dates and times, with or without a zone: `2022-03-31`, `31.03.2022 14:05`."""

from dataclasses import dataclass
from typing import ClassVar, Literal

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

# English, German, French, Spanish, Italian, Portuguese and Dutch, with short forms.
_NAMES_BY_MONTH = (
    "january jan januar jänner jän janvier janv enero ene gennaio gen janeiro januari",
    "february feb februar feber février fevrier févr fevr fév febrero febbraio "
    "fevereiro fev februari",
    "march mar märz maerz mär mrz mars marzo março marco maart mrt",
    "april apr avril avr abril abr aprile",
    "may mai mayo maggio mag maio mei",
    "june jun juni juin junio giugno giu junho",
    "july jul juli juillet juil julio luglio lug julho",
    "august aug août aout agosto ago augustus",
    "september sept sep septembre septiembre setiembre settembre set setembro",
    "october oct oktober okt octobre octubre ottobre ott outubro out",
    "november nov novembre noviembre novembro",
    "december dec dezember dez décembre decembre déc diciembre dic dicembre dezembro",
)
_WEEKDAYS = (
    "monday mon tuesday tues tue wednesday wed thursday thurs thur thu friday fri "
    "saturday sat sunday sun "
    "montag mo dienstag di mittwoch mi donnerstag do freitag fr samstag sonnabend sa "
    "sonntag so "
    "lundi lun mardi mar mercredi mer jeudi jeu vendredi ven samedi sam dimanche dim "
    "lunes martes miércoles miercoles mié mie jueves jue viernes vie sábado sabado sáb "
    "sab domingo dom "
    "lunedì lunedi martedì martedi mercoledì mercoledi giovedì giovedi gio venerdì "
    "venerdi sabato domenica "
    "segunda-feira segunda seg terça-feira terça ter quarta-feira quarta qua "
    "quinta-feira quinta qui sexta-feira sexta sex "
    "maandag ma dinsdag woensdag wo donderdag vrijdag vr zaterdag za zondag zo"
)

MONTHS = {
    name: month
    for month, names in enumerate(_NAMES_BY_MONTH, start=1)
    for name in names.split()
}
"""The number of each month by its names in small letters."""

# Words that may stand before the day: weekdays, and articles as in "le 3 mai 2020".
DAY_NAMES = frozenset(f"{_WEEKDAYS} le el il am den op".split())

# Any words match, which `MONTHS` and `DAY_NAMES` then check: a regular expression of
# all names is several times as slow.
_LETTERS = "[A-Za-zÀ-ÿ]+"
MONTH_NAME = rf"(?P<name>{_LETTERS})\.?"
DAY_NAME = rf"(?:(?P<day_name>{_LETTERS}(?:-feira)?)\.?,? )?"


Order = Literal["year-first", "month-first", "day-first"]

# What stands between day, month and year if the month has a name.
_BETWEEN = r"(?:\.?[ /-]| del? |\.)"
_ORDINAL = r"(?:st|nd|rd|th|er|º|°|ª)?"
_TIME = (
    r"(?:(?:[T: ]|,? (?:at|um|om|à|às|a las|alle) |, )"
    r"(?P<hour>\d{1,2})[:h](?P<minute>\d{2})"
    r"(?::(?P<second>\d{2}(?:[.,]\d+)?))?(?: ?(?P<half>[AaPp])\.?[Mm]\.?)?"
    r" ?(?P<zone>Z|UTC|GMT|[-+]\d{2}:?(?:\d{2})?)?)?\]?$"
)
_YEAR = r"(?P<year>\d{4}|\d{2})"
_DAY = r"(?P<day>\d{1,2})"
_MONTH = r"(?P<month>\d{1,2})"
_MARKS = ("/", r"\.", "-")
_FULL_YEAR = r"(?P<year>(?:1[89]|2[01])\d{2})"
_TWO = {name: rf"(?P<{name}>\d{{2}})" for name in ("month", "day")}
_NUMERIC = {
    "year-first": (),
    "month-first": (
        *(rf"^{_MONTH}{m}{_DAY}{m}{_YEAR}" for m in _MARKS),
        rf"^{_MONTH}{_TWO['day']}{_FULL_YEAR}",
        rf"^{DAY_NAME}{_MONTH}[/.-]{_DAY}[/.-]{_YEAR}",
    ),
    "day-first": (
        *(rf"^{_DAY}{m} ?{_MONTH}{m} ?{_YEAR}" for m in _MARKS),
        rf"^{_DAY}{_TWO['month']}{_FULL_YEAR}",
        rf"^{DAY_NAME}{_DAY}[/.-]{_MONTH}[/.-]{_YEAR}",
    ),
}
# `Oct-12` is October 2012; `Oct 12` is a day without a year.
MONTH_AND_SHORT_YEAR = rf"^{MONTH_NAME}(?:[-/]|[ -]?['\x{{2019}}])(?P<year>\d{{2}})$"
_YEAR_AND_MONTH = rf"^{_FULL_YEAR}{_TWO['month']}$"
# Of these, no cell can be read in two ways.
_PLAIN = (
    *(rf"^(?P<year>\d{{4}}){m}{_MONTH}{m}{_DAY}" for m in _MARKS),
    rf"^\[?{DAY_NAME}{_DAY}{_ORDINAL}{_BETWEEN}{MONTH_NAME}{_BETWEEN}{_YEAR}",
    rf"^{DAY_NAME}{MONTH_NAME}[ /-]{_DAY}{_ORDINAL}(?:,? |[/-])(?P<year>\d{{4}})",
    rf"^{_DAY}{MONTH_NAME}(?P<year>\d{{4}})",
    rf"^(?P<year>\d{{4}})[/-]{_MONTH}",
    rf"^{MONTH_NAME}(?: |, ?|-|/| del? )(?P<year>\d{{4}})",
    rf"^{MONTH_NAME}{_FULL_YEAR}",
    rf"^(?P<year>\d{{4}})(?: |, ?|-|/){MONTH_NAME}(?:(?: |-|/){_DAY})?",
    rf"^{_FULL_YEAR}{_TWO['month']}{_TWO['day']}",
    # A quarter is its first day; a week of ISO 8601 is its Monday.
    r"^(?P<year>\d{4})[ :-]?[Qq](?P<quarter>[1-4])",
    r"^[Qq](?P<quarter>[1-4])[ :/-]?(?P<year>\d{4})",
    r"^(?P<quarter>[1-4])[Qq] ?(?P<year>\d{4})",
    r"^(?P<year>\d{4})[ -]?[Ww](?P<week>\d{2})(?:-?(?P<weekday>[1-7]))?",
    r"^[Ww](?P<week>\d{1,2})[ /-](?P<year>\d{4})",
    r"^(?P<year>\d{4})M(?P<month>\d{2})",
    rf"^{_MONTH}[/.-](?P<year>\d{{4}})",
)
# As in basic ISO 8601: 20220331T140509.
_BASIC = (
    rf"^{_FULL_YEAR}{_TWO['month']}{_TWO['day']}[T ]?"
    r"(?P<hour>\d{2})(?P<minute>\d{2})(?P<second>\d{2})?(?P<zone>Z)?$"
)
# As of ctime: Thu Mar 31 14:05:09 2022.
_TIME_INSIDE = (
    rf"^\[?{DAY_NAME}{MONTH_NAME} +{_DAY} (?P<hour>\d{{2}}):"
    r"(?P<minute>\d{2}):(?P<second>\d{2}) (?:(?P<zone>UTC|GMT) )?(?P<year>\d{4})\]?$"
)
_PATTERNS: dict[str, tuple[str, ...]] = {
    order: (
        *(pattern + _TIME for pattern in (*_PLAIN, *patterns)),
        MONTH_AND_SHORT_YEAR,
        _YEAR_AND_MONTH,
        _BASIC,
        _TIME_INSIDE,
    )
    for order, patterns in _NUMERIC.items()
}
_ISO = r"^\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}:\d{2})?$"
# As in POSIX: 69 to 99 are of the 20th century, 00 to 68 of the 21st.
LAST_SHORT_YEAR = 2068


@dataclass(frozen=True)
class DateNotation(Notation):
    """The notation of a column of dates, in seconds since 1970; zones become UTC.

    `epoch` is what plain numbers are: `"seconds"` or `"milliseconds"`, or `"digits"`
    for 20220331 and 202203.
    """

    kind: ClassVar[NotationKind] = "date"

    order: Order = "year-first"
    epoch: str = "seconds"
    last_short_year: int = LAST_SHORT_YEAR

    def parse(self, texts: pa.Array) -> Parsed:
        seconds = _seconds_of_iso(texts)
        # Most columns of text are ruled out before the patterns are compiled.
        has_digit = as_mask(pc.match_substring_regex(texts, r"\d"))
        left = np.flatnonzero(has_digit & np.isnan(seconds))
        for pattern in _PATTERNS[self.order]:
            if not len(left):
                break
            some = texts if len(left) == len(texts) else texts.take(pa.array(left))
            fits = as_mask(pc.match_substring_regex(some, pattern))
            if not fits.any():
                continue
            fitting = some.filter(pa.array(fits))
            found = _seconds(fitting, pattern, self.last_short_year)
            seconds[left[fits]] = found
            left = np.concatenate([left[~fits], left[fits][np.isnan(found)]])
        return Parsed(seconds, np.isnan(seconds))

    def seconds(self, numbers: np.ndarray) -> np.ndarray:
        """Returns the seconds `[n]` of plain numbers, NaN if a number is no date."""
        if self.epoch == "digits":
            whole = (numbers == np.floor(numbers)) & (numbers >= 0) & (numbers < 10**8)
            digits = np.where(whole, numbers, 0).astype(np.int64)
            digits, places = np.unique(digits, return_inverse=True)
            return self.parse(pa.array(digits).cast(pa.string())).numbers[places]
        seconds = np.where(np.isfinite(numbers), numbers, np.nan)
        return np.floor(seconds / 1000.0 if self.epoch == "milliseconds" else seconds)

    @property
    def has_digits(self) -> bool:
        """Whether the digits of a plain number are a date."""
        return self.epoch == "digits"

    def describe(self) -> str:
        order = self.order.replace("-", " ")
        return "" if self.order == "year-first" else order


def _seconds_of_iso(texts: pa.Array) -> np.ndarray:
    """Returns the seconds `[n]` of the usual form of ISO 8601, NaN of other texts."""
    fits = pc.match_substring_regex(texts, _ISO)
    some = pc.if_else(pc.fill_null(fits, False), texts, pa.scalar(None, texts.type))
    try:
        whole = some.cast(pa.timestamp("s")).cast(pa.int64())
    except pa.ArrowInvalid:
        # A day that the calendar does not have.
        return np.full(len(texts), np.nan)
    return whole.cast(pa.float64()).to_numpy(zero_copy_only=False).copy()


def _seconds(texts: pa.Array, pattern: str, last_short_year: int) -> np.ndarray:
    """Returns the seconds `[n]` of texts that match a pattern, NaN of others."""
    parts = pc.extract_regex(texts, pattern)
    names = {field.name for field in parts.type}

    def number(name: str, otherwise: float) -> np.ndarray:
        if name not in names:
            return np.full(len(texts), otherwise)
        digits = pc.replace_substring(parts.field(name), ",", ".")
        return np.nan_to_num(as_float(digits), nan=otherwise)

    def is_half(*halves: str) -> np.ndarray:
        if "half" not in names:
            return np.zeros(len(texts), dtype=bool)
        return as_mask(pc.is_in(parts.field("half"), pa.array(halves, texts.type)))

    year = number("year", 0)
    of_two = as_mask(pc.equal(pc.utf8_length(parts.field("year")), 2))
    year += of_two * np.where(2000 + year > last_short_year, 1900, 2000)
    month, day = number("month", 0), number("day", 1)
    wrong = ~as_mask(parts.is_valid())
    if "name" in names:
        lower = pc.utf8_lower(parts.field("name"))
        place = pc.index_in(lower, value_set=pa.array(list(MONTHS), texts.type))
        numbers = np.array([*MONTHS.values(), 0.0])
        month = numbers[pc.fill_null(place, -1).to_numpy(zero_copy_only=False)]
    if "day_name" in names:
        known = pa.array(["", *DAY_NAMES], texts.type)
        lower = pc.utf8_lower(parts.field("day_name"))
        wrong |= ~as_mask(pc.is_in(lower, known))
    if "quarter" in names:
        month = 3.0 * number("quarter", 1) - 2.0
    hour, minute = number("hour", 0), number("minute", 0)
    second = number("second", 0)
    of_half, afternoon = is_half("A", "a", "P", "p"), is_half("P", "p")
    wrong |= of_half & ((hour < 1) | (hour > 12))
    hour = np.where(of_half, hour % 12 + 12 * afternoon, hour)
    wrong |= (hour > 23) | (minute > 59) | (second >= 60)
    if "week" in names:
        days = _days_of_week(year, number("week", 0), number("weekday", 1))
    else:
        days = _days(np.where(wrong, 1970, year), month, day)
    seconds = 86400.0 * days + 3600 * hour + 60 * minute + second
    if "zone" in names:
        seconds = seconds - _zone_seconds(parts.field("zone"))
    return np.where(wrong, np.nan, seconds)


def _days(year: np.ndarray, month: np.ndarray, day: np.ndarray) -> np.ndarray:
    """Returns the days `[n]` since 1970, NaN if the calendar has no such day."""
    wrong = (month < 1) | (month > 12)
    months = 12 * (year.astype(int) - 1970) + np.where(wrong, 1, month).astype(int) - 1
    first, following = (
        (months + shift).astype("datetime64[M]").astype("datetime64[D]").astype(int)
        for shift in (0, 1)
    )
    wrong |= (day < 1) | (day > following - first)
    return np.where(wrong, np.nan, first + day - 1.0)


def _days_of_week(
    year: np.ndarray, week: np.ndarray, weekday: np.ndarray
) -> np.ndarray:
    """Returns the days `[n]` since 1970 of weeks of ISO 8601, NaN for no such week."""
    ones = np.ones(len(year))
    # The fourth of January is in the first week; 1970 began on a Thursday.
    fourth = _days(year, ones, 4 * ones)
    monday = fourth - (fourth + 3) % 7 + 7 * (week - 1)
    # The Thursday of a week is in its year.
    thursday_in_year = monday + 3 < _days(year + 1, ones, ones)
    wrong = (week < 1) | ~thursday_in_year
    return np.where(wrong, np.nan, monday + weekday - 1)


def _zone_seconds(zones: pa.Array) -> np.ndarray:
    """Returns how many seconds zones such as `+01:00` are ahead of UTC."""
    pattern = r"^(?P<sign>[-+])(?P<hours>\d{2}):?(?P<minutes>\d{2})?$"
    parts = pc.extract_regex(zones, pattern)
    hours = np.nan_to_num(as_float(parts.field("hours")))
    minutes = np.nan_to_num(as_float(parts.field("minutes")))
    sign = np.where(as_mask(pc.equal(parts.field("sign"), "-")), -1, 1)
    return sign * (3600 * hours + 60 * minutes)


_SAMPLE = 1000
_FEWEST, _FEWEST_MONTHS = 3, 6
_ORDERS: tuple[Order, ...] = ("year-first", "month-first", "day-first")
# Of dates that name a month or a time of day.
_FIRST_NAMED, _LAST_NAMED = 1900, 2100


def find_compact_dates(numbers: np.ndarray) -> tuple[DateNotation, str] | None:
    """Finds how all numbers are days of the calendar, months, or days with a time."""
    if not len(numbers):
        return None
    low, high = float(numbers.min()), float(numbers.max())
    candidates: list[DateNotation] = []
    fewest = _FEWEST
    if are_months(low, high):
        candidates, fewest = [DateNotation(epoch="digits")], _FEWEST_MONTHS
    elif low >= 1_011_800 and high < 10**8:
        candidates = [DateNotation(order, epoch="digits") for order in _ORDERS]
    fitting = []
    for notation in candidates:
        if np.isnan(notation.seconds(numbers[:_SAMPLE])).any():
            continue
        seconds = notation.seconds(numbers)
        if not np.isnan(seconds).any() and _differ(seconds, fewest):
            fitting.append(notation)
            if notation.order == "year-first":
                # Every order reads what the first reads.
                break
    if not fitting:
        return None
    chosen = fitting[0]
    shown = f"{numbers[0]:.0f}"
    what = "months" if are_months(low, high) else "dates"
    remark = (
        f"its numbers, such as {shown}, are read as {what}, "
        f"{chosen.order.replace('-', ' ')}; number overrules this"
    )
    if len(fitting) > 1:
        remark += f", and date:{fitting[1].order} reads another order"
    return chosen, remark


def are_months(low: float, high: float) -> bool:
    """Whether numbers in this range may be a year and a month, as 202203."""
    return low >= 100 * _FIRST_NAMED and high < 100 * (_LAST_NAMED + 1)


def _differ(seconds: np.ndarray, fewest: int) -> bool:
    """Whether dates are several, and not of the same day of the same month."""
    days = np.unique(seconds // 86400).astype("datetime64[D]")
    months = days.astype("datetime64[M]")
    in_year = months.astype(int) % 12 * 32 + (days - months).astype(int)
    return len(days) >= fewest and len(np.unique(in_year)) > 1
