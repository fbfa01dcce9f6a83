"""What a user says about a column, in place of what its cells suggest."""

from dataclasses import dataclass
from typing import Literal, get_args

OverrideKind = Literal[
    "number", "boolean", "date", "duration", "ordered", "text", "hashed", "ignore"
]
_KINDS: tuple[OverrideKind, ...] = get_args(OverrideKind)
_OPTIONS: dict[str, tuple[str, ...]] = {
    "number": ("currency", "percent", "unit", "decimal-point", "decimal-comma"),
    "date": ("year-first", "month-first", "day-first", "unix", "unix-ms"),
    "duration": ("hours", "minutes"),
}
_MOST_BUCKETS = 10_000


class OverrideError(ValueError):
    """The text of an override has no meaning; the message is one sentence."""


@dataclass(frozen=True)
class Override:
    """What a column is, said by a user as `KIND` or `KIND:OPTION,...`."""

    kind: OverrideKind
    options: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> "Override":
        """Parses an override."""
        word, _, rest = text.partition(":")
        options = tuple(part.strip() for part in rest.split(",") if part.strip())
        for kind in _KINDS:
            if kind == word.strip():
                _check_options(kind, options, text)
                return cls(kind, options)
        raise OverrideError(
            f"A column must be one of {', '.join(_KINDS)}, with options after a colon, "
            f"such as date:day-first. Received: {text!r}"
        )


def _check_options(kind: str, options: tuple[str, ...], text: str) -> None:
    if kind == "ordered":
        lower = [level.lower() for level in options]
        if len(options) < 2 or len(set(lower)) < len(lower):
            raise OverrideError(
                "An ordered column needs its texts from the least to the greatest, "
                f"each once, such as ordered:low,middle,high. Received: {text!r}"
            )
        return
    if kind == "hashed":
        numbers = [int(option) if option.isdecimal() else 0 for option in options]
        if len(options) > 1 or not all(2 <= x <= _MOST_BUCKETS for x in numbers):
            raise OverrideError(
                "A hashed column needs a number of buckets from 2 to "
                f"{_MOST_BUCKETS}, such as hashed:256. Received: {text!r}"
            )
        return
    known = _OPTIONS.get(kind, ())
    for option in options:
        if option not in known:
            allowed = f"one of {', '.join(known)}" if known else "no option"
            raise OverrideError(
                f"After {kind} there may be {allowed}. Received: {text!r}"
            )
    if len(options) > 1 and kind != "number":
        raise OverrideError(
            f"After {kind} there may be only one option. Received: {text!r}"
        )
    if {"decimal-point", "decimal-comma"} <= set(options):
        raise OverrideError(
            "A number has either a decimal point or a decimal comma. "
            f"Received: {text!r}"
        )
