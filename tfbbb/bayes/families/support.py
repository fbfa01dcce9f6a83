"""The numbers that a target may be, without TensorFlow."""

import math
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

# In single precision, the square of a larger number is infinite, and the square of its
# inverse is 0.
LARGEST_TARGET = 1e18
# Its square is finite in single precision, and every count up to it is a double.
LARGEST_COUNT = 1e12
# TensorFlow flushes smaller numbers to 0.
_SMALLEST_SINGLE = 2.0**-126


@dataclass(frozen=True)
class Support:
    """The interval of numbers, or of whole numbers, in which a target may lie.

    Networks compute in single precision, so a number that single precision rounds to an
    open bound is outside.

    Example:

    >>> import numpy as np
    >>> from tfbbb.bayes.families.support import Support
    >>> percent = Support(0.0, 100.0, closed=False)
    >>> percent.contains(np.array([0.0, 1e-9, 99.9, 100.0])).tolist()
    [False, True, True, False]
    >>> percent.description
    'strictly between 0.0 and 100.0, in single precision too'
    """

    low: float
    high: float
    closed: bool = True
    integer: bool = False

    def __post_init__(self) -> None:
        small = max(abs(self.low), abs(self.high)) <= LARGEST_TARGET
        if not (small and self.low < self.high and self.least <= self.greatest):
            raise ValueError(
                "The bounds must be finite, `low` smaller than `high` in single "
                f"precision too, and neither larger than {LARGEST_TARGET:.0e} in size. "
                f"Received: low={self.low!r}, high={self.high!r}"
            )

    @property
    def least(self) -> float:
        """The least double inside."""
        return self.low if self.closed else _above(self.low)

    @property
    def greatest(self) -> float:
        """The greatest double inside."""
        return self.high if self.closed else -_above(-self.high)

    @property
    def unbounded(self) -> bool:
        """Whether every number is inside that single precision can compute with."""
        return not self.integer and (self.least, self.greatest) == (
            -LARGEST_TARGET,
            LARGEST_TARGET,
        )

    @property
    def description(self) -> str:
        """The condition on targets, as error messages state it."""
        if self.integer and self.high < LARGEST_COUNT:
            return f"whole numbers from {self.low:g} to {self.high:g}"
        if self.integer:
            return f"counts: whole numbers from {self.low:g} to {self.high:.0e}"
        if self.unbounded:
            return f"finite numbers, {self.high:.0e} at most in size"
        if self.low == 0.0 and self.high == LARGEST_TARGET:
            return f"0 or positive numbers, {self.high:.0e} at most"
        if self.low > 0.0 and self.closed:
            return f"positive numbers, {self.low:.0e} to {self.high:.0e}"
        inside = "from {} to {}" if self.closed else "strictly between {} and {}"
        return f"{inside.format(self.low, self.high)}, in single precision too"

    def contains(self, values: "np.ndarray") -> "np.ndarray":
        """Returns which numbers are inside, as an array of the shape of `values`."""
        import numpy as np

        inside = (values >= self.least) & (values <= self.greatest)
        return inside & (np.floor(values) == values) if self.integer else inside


def _above(bound: float) -> float:
    """Returns the least double that single precision rounds to more than `bound`."""
    single = _single(bound)
    if abs(single) < _SMALLEST_SINGLE:
        return _SMALLEST_SINGLE
    (bits,) = struct.unpack("<i", struct.pack("<f", single))
    bits += 1 if bits > 0 else -1
    (following,) = struct.unpack("<f", struct.pack("<i", bits))
    middle = 0.5 * (single + following)
    return middle if _single(middle) > single else math.nextafter(middle, math.inf)


def _single(value: float) -> float:
    (rounded,) = struct.unpack("<f", struct.pack("<f", value))
    return float(rounded)
