"""Base classes of the parts of a spec."""

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from tfbbb.base.known_fields import KnownFields

ColumnName = Annotated[str, Field(min_length=1, max_length=10_000)]


@dataclass(frozen=True)
class Option:
    """Marks a field that commands have an option for, by its own or another name."""

    name: str | None = None


class SpecError(ValueError):
    """A spec cannot be trained, or not on this table.

    The message is one sentence that says what to change.

    Args:
        message: The sentence.
        field: The path of the field to change, or None.
    """

    def __init__(self, message: str, field: str | None = None):
        super().__init__(message)
        self.field = field


class SpecPart(KnownFields):
    """An immutable part of a spec, without unknown fields or infinite numbers."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)


class NamedPart(SpecPart):
    """A family with its options.

    In a spec, the name alone is the family with its default options.
    """

    name: str

    def options(self) -> dict[str, Any]:
        """Returns the arguments of the class with this name."""
        return self.model_dump(exclude={"name"})
