"""Letters that people write after a number as its unit."""

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
