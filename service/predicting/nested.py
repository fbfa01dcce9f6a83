"""Values of JSON in nested lists."""

from collections.abc import Sequence
from itertools import chain

from service.shared.json_types import JsonList


def flattened(nested: object, shape: Sequence[int]) -> JsonList | None:
    """Returns the values of lists in lists of a shape; None if they have another."""
    values: JsonList = [nested]
    for size in shape:
        if not all(isinstance(part, list) and len(part) == size for part in values):
            return None
        values = list(chain.from_iterable(values))
    return values
