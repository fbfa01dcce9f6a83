"""Shortened representations of values, for error messages."""

import itertools
import reprlib
from collections.abc import Iterator, Mapping
from typing import Any

_WIDTH = 100


class _Abbreviation(reprlib.Repr):
    """Writes the beginnings of containers and texts only."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 10
        self.maxlist = self.maxtuple = self.maxset = self.maxdict = _WIDTH // 2
        self.maxstring = self.maxother = self.maxlong = 2 * _WIDTH

    def repr_dict(self, x: Mapping[Any, Any], level: int) -> str:
        # `Repr` sorts the keys, all of them.
        if level <= 0 and x:
            return "{...}"

        def items() -> Iterator[str]:
            for key, value in itertools.islice(x.items(), self.maxdict):
                yield f"{self.repr1(key, level - 1)}: {self.repr1(value, level - 1)}"
            if len(x) > self.maxdict:
                yield "..."

        return f"{{{', '.join(items())}}}"


def abbreviate(value: Any) -> str:
    """Writes a value as `repr` does, up to 100 characters, for messages of errors.

    Takes no time for a large value, which `repr` would write to its end.

    Example:

    >>> from tfbbb.abbreviation import abbreviate
    >>> abbreviate({"epochs": [1, 2]})
    "{'epochs': [1, 2]}"
    >>> len(abbreviate(list(range(10_000_000))))
    100
    """
    return _Abbreviation().repr(value)[:_WIDTH]
