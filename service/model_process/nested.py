"""Values of JSON in nested lists."""

from collections.abc import Sequence
from itertools import chain
from typing import Any


def flattened(nested: Any, shape: Sequence[int]) -> list[Any] | None:
    """Returns the values of lists in lists of a shape; None if they have another."""
    values = [nested]
    for size in shape:
        if not all(isinstance(part, list) and len(part) == size for part in values):
            return None
        values = list(chain.from_iterable(values))
    return values
