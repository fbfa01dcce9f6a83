"""What a user says about a column, in place of what its cells suggest."""

from dataclasses import dataclass
from typing import Literal, get_args

OverrideKind = Literal[
    "number", "boolean", "date", "duration", "ordered", "text", "hashed", "ignore"
]
_KINDS: tuple[OverrideKind, ...] = get_args(OverrideKind)
# What may stand after a kind and a colon: one of these words, of a number several.
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
                if fault := _find_fault(kind, options):
                    raise OverrideError(f"{fault}. Received: {text!r}")
                return cls(kind, options)
        raise OverrideError(
            f"A column must be one of {', '.join(_KINDS)}, with options after a colon, "
            f"such as date:day-first. Received: {text!r}"
        )


def _find_fault(kind: str, options: tuple[str, ...]) -> str | None:
    """Says what is wrong with the options of a kind."""
    if kind == "ordered":
        if 1 < len(options) == len({level.lower() for level in options}):
            return None
        return (
            "An ordered column needs its texts from the least to the greatest, each "
            "once, such as ordered:low,middle,high"
        )
    if kind == "hashed":
        numbers = [int(option) if option.isdecimal() else 0 for option in options]
        if len(options) < 2 and all(2 <= x <= _MOST_BUCKETS for x in numbers):
            return None
        return (
            f"A hashed column needs a number of buckets from 2 to {_MOST_BUCKETS}, "
            "such as hashed:256"
        )
    known = _OPTIONS.get(kind, ())
    if not set(options) <= set(known):
        allowed = f"one of {', '.join(known)}" if known else "no option"
        return f"After {kind} there may be {allowed}"
    if len(options) > 1 and kind != "number":
        return f"After {kind} there may be only one option"
    if {"decimal-point", "decimal-comma"} <= set(options):
        return "A number has either a decimal point or a decimal comma"
    return None
