"""Numbers as people write them: `$1,234.50`, `12.3 %`, `(7)`, `3,5 kg`."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
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
from tfbbb.tables.notations.ranges import split_ranges, strip_annotations

# Units of one quantity, as factors; hours and minutes are durations.
_QUANTITIES: tuple[dict[str, float], ...] = (
    {"µg": 1e-6, "ug": 1e-6, "mg": 1e-3, "g": 1.0, "kg": 1e3, "t": 1e6}
    | {"oz": 28.349523125, "lb": 453.59237, "lbs": 453.59237},
    {"nm": 1e-9, "µm": 1e-6, "um": 1e-6, "mm": 1e-3, "cm": 1e-2, "dm": 0.1, "m": 1.0}
    | {"km": 1e3, "in": 0.0254, "ft": 0.3048, "yd": 0.9144, "mi": 1609.344},
    {"µl": 1e-6, "ul": 1e-6, "ml": 1e-3, "cl": 1e-2, "dl": 0.1, "l": 1.0, "hl": 100.0},
    {"cm²": 1e-4, "cm2": 1e-4, "m²": 1.0, "m2": 1.0, "sqm": 1.0, "ha": 1e4}
    | {"km²": 1e6, "km2": 1e6, "sqft": 0.09290304, "ft²": 0.09290304},
    {"B": 1.0, "bytes": 1.0, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
    | {"KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40},
    {"ns": 1e-9, "µs": 1e-6, "us": 1e-6, "ms": 1e-3, "s": 1.0},
    {"mW": 1e-3, "W": 1.0, "kW": 1e3, "MW": 1e6, "GW": 1e9},
    {"Wh": 1.0, "kWh": 1e3, "MWh": 1e6, "GWh": 1e9},
    {"mV": 1e-3, "V": 1.0, "kV": 1e3},
    {"mA": 1e-3, "A": 1.0},
    {"Hz": 1.0, "kHz": 1e3, "MHz": 1e6, "GHz": 1e9},
    {"Pa": 1.0, "hPa": 100.0, "mbar": 100.0, "kPa": 1e3, "bar": 1e5, "MPa": 1e6}
    | {"psi": 6894.757293168},
    {"bps": 1.0, "kbps": 1e3, "Mbps": 1e6, "Gbps": 1e9},
    {"km/h": 1.0, "kmh": 1.0, "kph": 1.0, "mph": 1.609344, "m/s": 3.6, "kt": 1.852},
    # Bare letters, such as N and S, may be those of codes.
    {"°N": 1.0, "°S": -1.0},
    {"°E": 1.0, "°W": -1.0},
    {"°C": 1.0, "°F": 5.0 / 9.0},
)
_ZEROS = {"°F": 32.0}


def convert_unit(numbers: np.ndarray, unit: str, to: str) -> np.ndarray:
    """Converts numbers from one unit to another one of its quantity."""
    quantity = _find_quantity((unit, to))
    assert quantity is not None
    factors = {name: quantity[_name_of(name, quantity)] for name in (unit, to)}
    base = (numbers - _ZEROS.get(unit, 0.0)) * factors[unit]
    return base / factors[to] + _ZEROS.get(to, 0.0)


def are_of_one_quantity(units: Iterable[str]) -> bool:
    """Whether units can be converted to each other."""
    return _find_quantity(tuple(units)) is not None


def _find_quantity(units: Sequence[str]) -> dict[str, float] | None:
    for quantity in _QUANTITIES:
        if all(_name_of(unit, quantity) for unit in units):
            return quantity
    return None


def _name_of(unit: str, quantity: Mapping[str, float]) -> str:
    """Returns a unit as the quantity has it, by any case if that is clear, or ""."""
    if unit in quantity:
        return unit
    found = [name for name in quantity if name.lower() == unit.lower()]
    return found[0] if len(found) == 1 and len(unit) > 1 else ""


# The codes of ISO 4217 that tables show most, and signs made of letters.
CURRENCIES = (
    *("USD", "EUR", "GBP", "JPY", "CHF", "CNY", "RMB", "INR", "AUD", "CAD", "NZD"),
    *("SEK", "NOK", "DKK", "ISK", "PLN", "CZK", "HUF", "RON", "BGN", "UAH", "RUB"),
    *("TRY", "ILS", "AED", "SAR", "QAR", "EGP", "ZAR", "NGN", "KES", "BRL", "MXN"),
    *("ARS", "CLP", "COP", "PEN", "KRW", "TWD", "HKD", "SGD", "MYR", "THB", "IDR"),
    *("PHP", "VND", "PKR", "BDT", "LKR"),
)
_SIGNS = (r"[A-Z]{0,3}\p{Sc}", r"Rs\.?", "kr", "zł", "Kč", "Ft", r"Fr\.?", "lei")
_SPACE = r"[\s\x{00a0}\x{202f}\x{2009}]*"
_MINUS = "[-+−]"
CURRENCY = f"(?:{'|'.join((*CURRENCIES, *_SIGNS))})"
# To compile a repetition that is counted takes ten times as long.
UNIT = r"(?:\p{L}|[°\x{2032}\x{2033}'\"µμΩ])[\p{L}\d²³¹⁻/·^°%*.-]*(?: [\p{L}²³/.]+)?"
LONGEST_UNIT = 27

# Spaces of all kinds separate thousands.
THOUSANDS = {
    "": "",
    ",": ",",
    ".": r"\.",
    " ": r"[ \x{00a0}\x{202f}\x{2009}]",
    "'": r"['\x{2019}]",
}
_MULTIPLES = {
    **dict.fromkeys(("k", "K"), 1e3),
    **dict.fromkeys(("m", "M", "mn", "Mn"), 1e6),
    **dict.fromkeys(("b", "B", "bn", "Bn"), 1e9),
}
MULTIPLES = frozenset(_MULTIPLES)


@dataclass(frozen=True)
class NumberNotation(Notation):
    """The notation of a column of numbers; a cell without its marks is read, too.

    `percent` is `"sign"` if a cell may end in `%`, and `"all"` if each cell is a
    percentage without it: 12.3 % is 0.123. Numbers in `other_units` are converted to
    `unit`, bounds such as `<5` are read as 5 and ranges as their middle.
    """

    kind: ClassVar[NotationKind] = "number"

    decimal: str = "."
    thousands: str = ""
    currency: bool = False
    unit: str = ""
    percent: str = ""
    multiples: bool = False
    missing_values: tuple[float, ...] = ()
    bounds: bool = False
    footnotes: bool = False
    ranges: bool = False
    other_units: tuple[str, ...] = ()

    @property
    def needs_text(self) -> bool:
        marks = (self.decimal, self.thousands, self.unit, self.percent)
        return marks != (".", "", "", "") or self.currency or self.multiples

    @property
    def pattern(self) -> str:
        """The regular expression of a cell, with groups of its parts."""
        decimal = re.escape(self.decimal)
        whole = r"\d+"
        if self.thousands:
            mark = THOUSANDS[self.thousands]
            # Groups of three digits, or of two before the last as in India.
            whole = rf"(?:\d{{1,3}}(?:{mark}\d{{2,3}})*{mark}\d{{3}}|\d+)"
        affix = f"(?:{CURRENCY})?" if self.currency else ""
        after = [affix] if affix else []
        if self.percent:
            after.append("(?P<percent>%)")
        if self.unit:
            after += map(re.escape, (self.unit, *self.other_units))
        if self.multiples:
            after.append("(?P<multiple>k|K|m|M|mn|Mn|b|B|bn|Bn)" + _SPACE + affix)
        following = f"(?P<after>{'|'.join(after)})" if after else "(?P<after>)"
        return (
            rf"^(?P<open>\()?{_SPACE}(?P<sign>{_MINUS})?{_SPACE}{affix}{_SPACE}"
            rf"(?P<inner>{_MINUS})?{_SPACE}"
            rf"(?P<number>{whole}(?:{decimal}\d*)?|{decimal}\d+)"
            rf"(?P<exponent>[eE][-+]?\d+)?{_SPACE}(?:{following})?{_SPACE}"
            r"(?P<close>\))?(?P<trailing>-)?$"
        )

    def matches(self, texts: pa.Array) -> np.ndarray:
        """Returns which texts have the form of a number in the notation."""
        return _matches(texts, self.pattern)

    def without_missing_values(self, numbers: np.ndarray) -> np.ndarray:
        """Returns numbers with NaN for those that stand for a missing value."""
        if not self.missing_values:
            return numbers
        return np.where(np.isin(numbers, self.missing_values), np.nan, numbers)

    def parse(self, texts: pa.Array) -> Parsed:
        if self.ranges:
            return self._parse_ranges(texts)
        texts = strip_annotations(texts, bounds=self.bounds, footnotes=self.footnotes)
        parts = pc.extract_regex(texts, self.pattern)

        def given(name: str) -> np.ndarray:
            return as_mask(pc.not_equal(parts.field(name), ""))

        signs = given("open").astype(int) + given("sign") + given("inner")
        readable = as_mask(parts.is_valid()) & (given("open") == given("close"))
        readable &= signs + given("trailing") <= 1
        digits = parts.field("number")
        if self.thousands:
            mark = THOUSANDS[self.thousands]
            digits = pc.replace_substring_regex(digits, mark, "")
        if self.decimal != ".":
            digits = pc.replace_substring(digits, self.decimal, ".")
        none = pa.scalar("", digits.type)
        digits = pc.binary_join_element_wise(digits, parts.field("exponent"), none)
        unknown = pa.scalar(None, digits.type)
        numbers = as_float(pc.if_else(pa.array(readable), digits, unknown))
        minus = given("open") | given("trailing")
        for name in ("sign", "inner"):
            negative = pc.is_in(parts.field(name), pa.array(["-", "−"], texts.type))
            minus |= as_mask(negative)
        numbers = np.where(minus, -numbers, numbers)
        if self.multiples:
            for name in sorted(MULTIPLES):
                found = as_mask(pc.equal(parts.field("multiple"), name))
                numbers = np.where(found, numbers * _MULTIPLES[name], numbers)
        for unit in self.other_units:
            found = as_mask(pc.equal(parts.field("after"), unit))
            numbers = np.where(found, convert_unit(numbers, unit, self.unit), numbers)
        if self.percent:
            share = self.percent == "all" or given("percent")
            numbers = np.where(share, numbers / 100.0, numbers)
        return Parsed(self.without_missing_values(numbers), ~readable)

    def _parse_ranges(self, texts: pa.Array) -> Parsed:
        """Reads ranges, of which only the second number needs a unit, and numbers."""
        bare = replace(self, ranges=False)
        numbers, unreadable = bare.parse(texts)
        low, high = split_ranges(texts)
        found = as_mask(pc.is_valid(low)) & unreadable
        (low, wrong_low), (high, wrong_high) = bare.parse(low), bare.parse(high)
        found &= ~(wrong_low | wrong_high) & (low < high)
        numbers = np.where(found, 0.5 * (low + high), numbers)
        return Parsed(numbers, unreadable & ~found)

    def describe(self) -> str:
        named = {" ": "spaces", "'": "apostrophes", ",": "commas", ".": "points"}
        parts = [
            "currency" if self.currency else "",
            "per cent" if self.percent else "",
            f"in {self.unit}" if self.unit else "",
            f"converted from {' and '.join(self.other_units)}"
            if self.other_units
            else "",
            "multiples k, M, bn" if self.multiples else "",
            "decimal comma" if self.decimal == "," else "",
            f"thousands with {named[self.thousands]}" if self.thousands else "",
            "bounds as numbers" if self.bounds else "",
            "ranges as their middle" if self.ranges else "",
        ]
        return ", ".join(part for part in parts if part)


def _matches(texts: pa.Array, pattern: str) -> np.ndarray:
    return as_mask(pc.match_substring_regex(texts, pattern))
