"""What all parts of a spec have in common."""

from typing import Annotated, Any

from pydantic import ConfigDict, Field

from tfbbb.known_fields import KnownFields

ColumnName = Annotated[str, Field(min_length=1, max_length=10_000)]


class SpecError(ValueError):
    """A spec asks for what can't be trained, or not on this table.

    The message is one sentence that says what to change.
    """


class SpecPart(KnownFields):
    """A part of a spec: immutable, without fields unknown or numbers infinite."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)


class NamedPart(SpecPart):
    """One family of several, with its options.

    In a spec, the name alone is the family with its default options.
    """

    name: str

    def options(self) -> dict[str, Any]:
        """Returns the arguments that the class of this name is made with."""
        return self.model_dump(exclude={"name"})
