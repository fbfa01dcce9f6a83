"""Letters that people write after a number as its unit."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

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
    """Converts numbers from one unit to another one of its quantity.

    Example:
    >>> convert_unit(np.array([68.0]), "°F", "°C")
    array([20.])
    """
    quantity = _find_quantity((unit, to))
    assert quantity is not None
    factors = {name: quantity[_name_of(name, quantity)] for name in (unit, to)}
    base = (numbers - _ZEROS.get(unit, 0.0)) * factors[unit]
    return base / factors[to] + _ZEROS.get(to, 0.0)


def are_of_one_quantity(units: Iterable[str]) -> bool:
    """Whether units can be converted to each other.

    Example:
    >>> are_of_one_quantity(["g", "kg"]), are_of_one_quantity(["g", "km"])
    (True, False)
    """
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


# In small letters.
UNITS_OF_TIME = frozenset(
    (
        *("h", "hr", "hrs", "hour", "hours", "std", "min", "mins", "minute", "minutes"),
        *("s", "sec", "secs", "second", "seconds", "ms", "us", "ns", "d", "day"),
        *("days", "w", "wk", "wks", "week", "weeks", "mo", "mos", "mth", "mths"),
        *("month", "months", "y", "yr", "yrs", "year", "years"),
    )
)
UNITS = UNITS_OF_TIME | frozenset(
    (
        *("kg", "g", "mg", "ug", "µg", "t", "lb", "lbs", "oz", "ton", "tons", "tonnes"),
        *("km", "m", "cm", "mm", "um", "µm", "nm", "mi", "mile", "miles", "ft", "feet"),
        *("foot", "in", "inch", "inches", "yd", "yards", "ha", "ac", "acre", "acres"),
        *("l", "dl", "cl", "ml", "hl", "gal", "qt", "pt", "cc", "cbm", "sqm", "sqft"),
        *("v", "kv", "mv", "a", "ma", "ah", "mah", "w", "kw", "mw", "gw", "wh", "kwh"),
        *("mwh", "gwh", "hp", "bhp", "ps", "hz", "khz", "mhz", "ghz", "j", "kj", "mj"),
        *("cal", "kcal", "n", "kn", "pa", "hpa", "kpa", "mpa", "bar", "mbar", "psi"),
        *("c", "f", "k", "b", "kb", "mb", "gb", "tb", "kib", "mib", "gib", "tib"),
        *("bit", "bits", "byte", "bytes", "bps", "kbps", "mbps", "gbps", "px", "dpi"),
        *("mp", "fps", "mph", "kmh", "kph", "kt", "kts", "knots", "rpm", "ppm", "ppb"),
        *("mol", "mmol", "db", "dba", "lm", "lx", "lux", "cd", "iu", "mn", "bn"),
        *("pct", "percent", "prozent"),
    )
)
