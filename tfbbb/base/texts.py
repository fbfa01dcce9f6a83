"""Texts: shortened values, shown numbers, names of classes and of models."""

import itertools
import math
import re
import reprlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

_WIDTH = 100
# In sentences of one kind, a quoted name and numbers vary.
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_VARYING = re.compile(rf"{_QUOTED.pattern}|-?\d[\d.,:e+-]*|rows?\b")
_MOST_ALIKE = 3


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


def shown_decimals(value: float) -> str:
    """Returns a figure with three decimals, or with few digits if it is large.

    Example:
    >>> shown_decimals(0.98765), shown_decimals(-17731.25), shown_decimals(-1.978e21)
    ('0.988', '-17731', '-1.978e+21')
    """
    return f"{value:.3f}" if abs(value) < 1000.0 else shown_number(value, 4)


def shown_share(share: float) -> str:
    """Returns a share as people write it: in per cent, above ten as a number of times.

    Example:
    >>> shown_share(0.126), shown_share(0.00001), shown_share(832.0)
    ('13 %', 'less than 0.01 %', '832 times')
    """
    if share > 10.0:
        return f"{shown_number(share, 2)} times"
    if 0.0 < share < 1e-4:
        return "less than 0.01 %"
    return f"{shown_number(100.0 * share, 2)} %"


def listed(names: Sequence[str]) -> str:
    """Returns names as people list them.

    Example:
    >>> listed(["a", "b", "c"]), listed(["a"])
    ('a, b and c', 'a')
    """
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def aligned(rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> list[str]:
    """Returns the lines of a table whose columns have one width each.

    Example:
    >>> aligned([("layer", "weights"), ("dense", "8")], right={1})
    ['layer  weights', 'dense        8']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if place in right else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def fold_sentences(sentences: Iterable[str]) -> list[str]:
    """Makes one sentence of more than three that differ in a name or a number only."""
    given = list(sentences)
    if len(given) <= _MOST_ALIKE:
        return given
    kinds: dict[str, list[str]] = {}
    for sentence in given:
        kinds.setdefault(_VARYING.sub("", sentence), []).append(sentence)
    folded = []
    for sentence in given:
        alike = kinds[_VARYING.sub("", sentence)]
        names = [found[0] for found in map(_QUOTED.search, alike[1:]) if found]
        if len(alike) <= _MOST_ALIKE or len(names) < len(alike) - 1:
            folded.append(sentence)
        elif sentence is alike[0]:
            shown = names[:_MOST_ALIKE]
            more = [f"{len(names) - len(shown)} more"] if names[_MOST_ALIKE:] else []
            others = listed([*shown, *more])
            folded.append(f"{sentence} {len(names)} others are alike: {others}.")
    return folded


MODEL_NAME = "[A-Za-z0-9][A-Za-z0-9_.-]{0,127}"
# The largest integer of databases and of TensorFlow Serving.
MOST_VERSIONS = 2**63 - 1

_FORM = re.compile(MODEL_NAME)


def is_model_name(text: str) -> bool:
    """Returns whether a model or label may have a name, which is safe in paths."""
    return _FORM.fullmatch(text) is not None


def time_left(seconds: Sequence[float] | None) -> str:
    """Formats least and most seconds that are left; empty for None."""
    if seconds is None:
        return ""
    least, most = (max(round(each), 1) for each in seconds)
    unit = "s"
    if most >= 120:
        least, most, unit = max(round(least / 60), 1), round(most / 60), "min"
    return f"{least} to {most} {unit} left" if least < most else f"{most} {unit} left"
