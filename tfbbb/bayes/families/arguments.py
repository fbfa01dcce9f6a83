"""The types of numbers and flags in JSON documents, with their bounds."""

from typing import Annotated

from pydantic import AfterValidator, Field


def _check_magnitude(number: float) -> float:
    """Returns the number if its square neither overflows nor vanishes in a network."""
    if number and not 1e-18 <= abs(number) <= 1e18:
        raise ValueError(
            "networks compute in single precision: give a number between 1e-18 and "
            "1e+18 in size"
        )
    return number


# Strict: neither `true` nor "50" is a number.
Flag = Annotated[bool, Field(strict=True)]
Number = Annotated[float, Field(strict=True), AfterValidator(_check_magnitude)]
PositiveNumber = Annotated[
    float, Field(strict=True, gt=0), AfterValidator(_check_magnitude)
]
Integer = Annotated[int, Field(strict=True)]
