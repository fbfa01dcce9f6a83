"""What all parts of a spec have in common, and the numbers in them."""

from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field

from tfbbb.known_fields import KnownFields


def _with_a_square(number: float) -> float:
    """Returns a number whose square neither overflows nor vanishes in a network."""
    if number and not 1e-18 <= abs(number) <= 1e18:
        raise ValueError(
            "networks compute in single precision: give a number between 1e-18 and "
            "1e+18 in size"
        )
    return number


# Strict: JSON's `true` is no number, and "50" no number either.
Flag = Annotated[bool, Field(strict=True)]
Number = Annotated[float, Field(strict=True), AfterValidator(_with_a_square)]
PositiveNumber = Annotated[
    float, Field(strict=True, gt=0), AfterValidator(_with_a_square)
]
Integer = Annotated[int, Field(strict=True)]
ColumnName = Annotated[str, Field(min_length=1, max_length=10_000)]


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


def from_name(given: Any) -> Any:
    """Returns `{"name": given}` for a name, and anything else as it is."""
    return {"name": given} if isinstance(given, str) else given
