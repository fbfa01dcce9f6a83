"""Functions for NumPy are read from JSON, which is data and may be anything."""

import copy
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfbbb.export.manifest import ManifestError
from tfbbb.export.numpy_engine.functions import read_functions

# f(x) = sum(2 x)^2 of a vector, with an operation that nothing follows from.
FORM: dict[str, Any] = {
    "root": {"square": {"graph": "f", "captured": [0], "structure": {"square": None}}},
    "graphs": {
        "f": {
            "inputs": 2,
            "nodes": [
                ["Const", [], 1, {"array": 1}],
                ["Mul", [0, 1], 1, {}],
                ["Sum", [3, 2], 1, {"keep_dims": False}],
                ["Log", [0], 1, {}],
                ["Square", [4], 1, {}],
            ],
            "outputs": [6],
        }
    },
    "arrays": [["<f8", [], "AAAAAAAAAEA="], ["<i4", [1], "AAAAAA=="]],
    "signatures": {},
}


def written(form):
    return json.dumps(form).encode()


def test_a_function_takes_and_returns_what_is_nested():
    square = read_functions(written(FORM)).square
    assert square([np.array([1.0, 2.0])])["square"] == 36.0


# f(x, n) = x as n rows of the size that the shape of x gives.
ROWS: dict[str, Any] = {
    "root": {"rows": {"graph": "f", "captured": [], "structure": 0}},
    "graphs": {
        "f": {
            "inputs": 2,
            "nodes": [
                ["Size", [0], 1, {}],
                ["FloorDiv", [2, 1], 1, {}],
                ["Pack", [1, 3], 1, {"axis": 0}],
                ["Reshape", [0, 4], 1, {}],
            ],
            "outputs": [5],
        }
    },
    "arrays": [],
    "signatures": {},
}


def test_sizes_are_those_of_each_call():
    rows = read_functions(written(ROWS)).rows
    for size, number in [(6, 2), (6, 3), (8, 2)] * 4:
        x = np.arange(float(size))
        wanted = x.reshape(number, -1)
        np.testing.assert_array_equal(rows(x, np.array(number)), wanted)


def places(value):
    """The places of all parts of a form."""
    pairs = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    return [(key, *rest) for key, part in pairs for rest in ((), *places(part))]


ODD = st.sampled_from(
    [None, -1, 99, 1.5, "", "Exec", [], [None], {}, {"graph": "f"}, True, "<f8"]
)


@settings(max_examples=300, deadline=None)
@given(place=st.sampled_from(places(FORM)), odd=ODD)
def test_malformed_functions_are_refused_or_compute(place, odd):
    form = copy.deepcopy(FORM)
    *path, last = place
    part = form
    for key in path:
        part = part[key]
    part[last] = odd
    try:
        root = read_functions(written(form))
    except ManifestError:
        # Any other error fails the test.
        return
    assert vars(root) is not None


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"\xff", b'{"root": 1}'])
def test_other_content_is_refused(content):
    with pytest.raises(ManifestError, match="malformed; export the model again"):
        read_functions(content)


def test_an_operation_reads_earlier_ones_only():
    form = copy.deepcopy(FORM)
    form["graphs"]["f"]["nodes"][1] = ["Mul", [0, 5], 1, {}]
    with pytest.raises(ManifestError, match="reads a later one"):
        read_functions(written(form))
