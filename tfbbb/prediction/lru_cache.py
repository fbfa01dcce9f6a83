"""A cache that evicts the least recently used value."""

import threading
from collections.abc import Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class LRUCache(Generic[Value]):
    """A cache of values by key that evicts the least recently used one.

    Threads may share it.

    Args:
        most: The greatest number of values.
    """

    def __init__(self, most: int):
        self._most = most
        self._values: dict[Hashable, Value] = {}
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> Value | None:
        """Returns the value of a key, or None if the cache does not hold it."""
        with self._lock:
            value = self._values.pop(key, None)
            if value is not None:
                # A dictionary is in the order in which its keys were set.
                self._values[key] = value
            return value

    def keep(self, key: Hashable, value: Value) -> None:
        """Stores a value, evicting the least recently used."""
        with self._lock:
            self._values.pop(key, None)
            self._values[key] = value
            while len(self._values) > self._most:
                del self._values[next(iter(self._values))]

    def __len__(self) -> int:
        return len(self._values)

    def values(self) -> list[Value]:
        """Returns the values, the most recently used at the end."""
        with self._lock:
            return list(self._values.values())
