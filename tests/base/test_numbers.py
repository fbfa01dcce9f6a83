"""Numbers are converted to a data type that can hold them."""

import re

import numpy as np
import pytest

from tfbbb.base.numbers import in_dtype, positive_integer, positive_number


@pytest.mark.parametrize(
    ("values", "dtype", "wrong"),
    [
        ([1.0, 2.5, np.nan, np.inf, -3.0], "int32", [1, 2, 3]),
        ([1.0, 2.5, -1.0, 255.0, 256.0], "uint8", [1, 2, 4]),
        (np.array([2**31 - 1, 2**31]), "int32", [1]),
        (np.array([2.0**62, 2.0**63, -(2.0**63), -(2.0**64)]), "int64", [1, 3]),
        (np.array([-1, 2**62]), "uint64", [0]),
        (np.array([2**63, 5], np.uint64), "int64", [0]),
        ([0.0, 1.0, 2.0, 0.5], "bool", [2, 3]),
        ([True, False], "int32", []),
        (np.array([2**60 + 1]), "int64", []),
    ],
)
def test_integers_and_booleans_hold_equal_numbers_alone(values, dtype, wrong):
    converted, found = in_dtype(np.asarray(values), dtype)
    assert converted.dtype == dtype
    found = np.zeros(len(values)) if found is None else found
    assert np.flatnonzero(found).tolist() == wrong


def test_floats_round():
    converted, wrong = in_dtype(np.array([2**24 + 1, 3]), "float32")
    assert converted.tolist() == [2.0**24, 3.0]
    assert wrong is None


@pytest.mark.parametrize(
    ("check", "wrong"),
    [
        (positive_number, [0.0, -1.0, np.nan, np.inf, None, True, "2", (1.0,)]),
        (positive_integer, [0, -1, 1.5, 2.0, True, "2"]),
    ],
)
def test_other_numbers_are_refused_by_the_name_of_their_argument(check, wrong):
    assert check("size", 2) == 2
    for value in wrong:
        received = re.escape(f"Received: size={value!r}")
        with pytest.raises(ValueError, match=f"`size` must be a positive .*{received}"):
            check("size", value)
