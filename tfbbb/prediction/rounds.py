"""How many draws are made for so many samples."""

from collections.abc import Callable
from typing import Any


def rounds_of(
    num_samples: Any, members: int, greatest: Callable[[Any, Any], Any] = max
) -> Any:
    """Returns the number of rounds that hold at least so many samples: two or more.

    Of one round alone, nothing is known of the error of its mean.

    Example:

    >>> rounds_of(100, members=1), rounds_of(2, members=1), rounds_of(100, members=3)
    (50, 2, 17)

    Args:
        num_samples: Number of samples.
        members: Number of members.
        greatest: Returns the greater of two numbers; `tf.maximum` for tensors.
    """
    return greatest(2, -(-num_samples // (2 * members)))
