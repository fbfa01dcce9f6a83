"""Numbers in another data type, if that type can hold them."""

import numpy as np


def in_dtype(values: np.ndarray, dtype: str) -> tuple[np.ndarray, np.ndarray | None]:
    """Returns numbers in another data type, and whether it cannot hold each of them.

    Floats are rounded to the nearest one. An integer or a boolean type holds a number
    only if their values are equal: neither 2.5 nor NaN is an integer, and 300 is not
    one of 8 bits.

    Example:

    >>> values, wrong = in_dtype(np.array([7.0, 2.5]), "int32")
    >>> values.tolist(), wrong.tolist()
    ([7, 2], [False, True])

    Args:
        values: Numbers or booleans, of any shape.
        dtype: The name of a data type of NumPy.

    Returns:
        The converted values, and an array of booleans of their shape, or None if the
        type is one of floats.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        converted = values.astype(dtype, copy=False)
    if converted.dtype == values.dtype or np.dtype(dtype).kind not in "biu":
        return converted, None
    wrong = converted != values
    if values.dtype.kind == "f" and np.dtype(dtype).kind != "b":
        # A conversion of floats beyond the type may end at its greatest integer, which
        # rounds to the same float.
        wrong |= values >= float(np.iinfo(dtype).max) + 1.0
    return converted, wrong
