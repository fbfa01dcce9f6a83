"""The targets of tables that commands read."""

import numpy as np
import pyarrow as pa
import pytest

from tfbbb.tables.notations.number import NumberNotation
from tfbbb.tables.target import KnownTargets, read_known_targets

UNSEEN, NO_NUMBER = "is a class unseen in training", "is not a number"


def read(values, classes=None, notation=None):
    """Returns the targets of a column, and the reasons of those without a density."""
    found = read_known_targets(pa.table({"y": values}), ["y"], classes, [notation])
    unusable = {row: tuple(target) for row, target in found.unusable.items()}
    return found, unusable


@pytest.mark.parametrize(
    ("values", "unseen"),
    [
        (["no", "maybe", None, "yes"], {1: "maybe"}),
        (["maybe", "perhaps"], {0: "maybe", 1: "perhaps"}),
        (["no", "yes"], {}),
        ([1.5, 2.0], {0: "1.5", 1: "2"}),
    ],
)
def test_unseen_classes_have_no_target_to_use(values, unseen):
    found, unusable = read(values, ["no", "yes"])
    assert unusable == {row: (label, UNSEEN) for row, label in unseen.items()}
    assert found.missing.tolist() == [value is None for value in values]
    places = {"no": 0, "yes": 1}
    assert found.values.tolist() == [places.get(value, -1) for value in values]


@pytest.mark.parametrize(
    ("values", "notation", "numbers", "unusable"),
    [
        (
            ["1.5", "unknown", None, "n/a", "2"],
            None,
            [1.5, None, None, None, 2],
            {1: ("unknown", NO_NUMBER)},
        ),
        (
            ["$1,200", "80", "free", "tba"],
            NumberNotation(thousands=",", currency=True, missing_marks=("tba",)),
            [1200, 80, None, None],
            {2: ("free", NO_NUMBER)},
        ),
        (
            ["<5", "7", "5-7"],
            NumberNotation(bounds=True),
            [5, 7, None],
            {2: ("5-7", NO_NUMBER)},
        ),
        ([1.0, -999.0], NumberNotation(missing_values=(-999.0,)), [1, None], {}),
        (
            [1.0, 1e300],
            None,
            [1, None],
            {1: (1e300, "is infinite in single precision")},
        ),
    ],
)
def test_cells_without_a_number_have_no_target_to_use(
    values, notation, numbers, unusable
):
    found, reasons = read(values, None, notation)
    assert reasons == unusable
    expected = [np.nan if number is None else number for number in numbers]
    np.testing.assert_array_equal(found.values[:, 0], expected)
    np.testing.assert_array_equal(found.known, ~np.isnan(expected))
    unknown = [row for row, number in enumerate(numbers) if number is None]
    assert np.flatnonzero(found.missing).tolist() == [
        row for row in unknown if row not in unusable
    ]
    np.testing.assert_array_equal(
        found.filled[:, 0], [numbers[0] if x is None else x for x in numbers]
    )


def test_numbers_outside_the_support_have_no_target_to_use():
    found, _ = read([2.0, -3.0, None])
    inside = found.within(found.values > 0, "positive numbers")
    np.testing.assert_array_equal(inside.values[:, 0], [2.0, np.nan, np.nan])
    assert inside.missing.tolist() == [False, False, True]
    assert inside.unusable[1].warning == (
        "The target -3.0 is outside of what the model predicts (positive numbers); it "
        "has no log_prob."
    )


def test_no_rows_have_no_targets():
    found = KnownTargets(np.zeros((0, 1)), {})
    assert found.known.shape == found.missing.shape == (0,)
