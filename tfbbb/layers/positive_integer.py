"""Sizes of layers: how many units, filters, categories."""


def positive_integer(name: str, value: int) -> int:
    """Returns `value`, or raises ValueError where it is no positive integer."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(
            f"`{name}` must be a positive integer. Received: {name}={value!r}"
        )
    return value
