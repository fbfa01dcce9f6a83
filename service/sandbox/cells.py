"""The cells of a table as values of JSON."""

import math
from typing import Any

_LONGEST_CELL = 1000


def format_cell(value: object) -> Any:
    """Returns a cell as a value of JSON; a long text is shortened."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return str(value)[:_LONGEST_CELL]
