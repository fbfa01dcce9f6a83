"""Texts: shortened values, shown numbers, names of classes and of models."""

import itertools
import math
import re
import reprlib
from collections.abc import Iterator, Mapping

_WIDTH = 100


class _Abbreviation(reprlib.Repr):
    """Writes the beginnings of containers and texts only."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 10
        self.maxlist = self.maxtuple = self.maxset = self.maxdict = _WIDTH // 2
        self.maxstring = self.maxother = self.maxlong = 2 * _WIDTH

    def repr_dict(self, x: Mapping[object, object], level: int) -> str:
        # `Repr` sorts the keys, all of them.
        if level <= 0 and x:
            return "{...}"

        def items() -> Iterator[str]:
            for key, value in itertools.islice(x.items(), self.maxdict):
                yield f"{self.repr1(key, level - 1)}: {self.repr1(value, level - 1)}"
            if len(x) > self.maxdict:
                yield "..."

        return f"{{{', '.join(items())}}}"


def abbreviate(value: object) -> str:
    """Writes a value as `repr` does, up to 100 characters, for messages of errors.

    Takes no time for a large value, which `repr` would write to its end.

    Example:

    >>> from tfbbb.base.texts import abbreviate
    >>> abbreviate({"epochs": [1, 2]})
    "{'epochs': [1, 2]}"
    >>> len(abbreviate(list(range(10_000_000))))
    100
    """
    return _Abbreviation().repr(value)[:_WIDTH]


def snake_case(name: str) -> str:
    """Returns the string name of a class: `MeanFieldNormal` is `mean_field_normal`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z0-9])|(?<!^)(?=[A-Z][a-z])", "_", name).lower()


def shown_number(value: float, digits: int) -> str:
    """Returns a number with so many significant digits, and all of its whole digits.

    Numbers below 0.0001 and from 10^15 on have an exponent.

    Example:
    >>> shown_number(1234567.8, 4), shown_number(3.0, 4), shown_number(0.12345, 2)
    ('1234568', '3', '0.12')
    """
    size = abs(value)
    if not 1e-4 <= size < 1e15:
        return f"{value:.{digits}g}"
    decimals = max(digits - 1 - math.floor(math.log10(size)), 0)
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if decimals else text


MODEL_NAME = "[A-Za-z0-9][A-Za-z0-9_.-]{0,127}"
# The largest integer of databases and of TensorFlow Serving.
MOST_VERSIONS = 2**63 - 1

_FORM = re.compile(MODEL_NAME)


def is_model_name(text: str) -> bool:
    """Returns whether a model or label may have a name, which is safe in paths."""
    return _FORM.fullmatch(text) is not None
