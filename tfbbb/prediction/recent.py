"""What was used last, and no more of it than a given number."""

import threading
from collections.abc import Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Recent(Generic[Value]):
    """Values by their keys, of which the ones that were used last are kept.

    Threads may share it.

    Args:
        most: How many values are kept.
    """

    def __init__(self, most: int):
        self._most = most
        self._values: dict[Hashable, Value] = {}
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> Value | None:
        """Returns the value of a key, or None where there is none."""
        with self._lock:
            value = self._values.pop(key, None)
            if value is not None:
                # A dictionary is in the order in which its keys were set.
                self._values[key] = value
            return value

    def keep(self, key: Hashable, value: Value) -> None:
        """Keeps a value, in place of the one that was used longest ago."""
        with self._lock:
            self._values.pop(key, None)
            self._values[key] = value
            while len(self._values) > self._most:
                del self._values[next(iter(self._values))]

    def __len__(self) -> int:
        return len(self._values)

    def values(self) -> list[Value]:
        """Returns the values, the one that was used last at the end."""
        with self._lock:
            return list(self._values.values())
