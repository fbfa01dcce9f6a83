"""The targets of tables that commands read."""

import pyarrow as pa
import pytest

from tfbbb.cli.table_targets import (
    describe_unseen,
    read_labels_or_numbers,
    without_unseen_classes,
)
from tfbbb.tables import TableError
from tfbbb.tables.notations import infer_notation

TABLE = pa.table({"price": ["$1,200.50", "$80"], "fast": ["yes", "no"]})


def test_written_numbers_are_numbers():
    notation = infer_notation(TABLE["price"].combine_chunks()).notation
    found = read_labels_or_numbers(TABLE, "price", None, notation)
    assert found.tolist() == [1200.5, 80.0]


def test_classes_are_labels():
    found = read_labels_or_numbers(TABLE, "fast", ["no", "yes"], None)
    assert found.tolist() == ["yes", "no"]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [("speed", "no target column 'speed'"), ("price", "has the class '\\$1,200.50'")],
)
def test_what_is_no_target_is_refused(name, sentence):
    with pytest.raises(TableError, match=sentence):
        read_labels_or_numbers(TABLE, name, ["no", "yes"], None)


@pytest.mark.parametrize(
    ("values", "unseen"),
    [
        (["no", "maybe", None, "yes"], {1: "maybe"}),
        (["maybe", "perhaps"], {0: "maybe", 1: "perhaps"}),
        (["no", "yes"], {}),
        ([1.5, 2.0], {0: "1.5", 1: "2"}),
    ],
)
def test_unseen_classes_are_emptied(values, unseen):
    table, found = without_unseen_classes(
        pa.table({"y": values}), "y", ["no", "yes"], None
    )
    assert found == unseen
    kept = [None if row in unseen else value for row, value in enumerate(values)]
    assert table["y"].to_pylist() == kept


def test_unseen_classes_are_counted_with_an_example():
    assert describe_unseen("y", {4: "fir"}, 9, "it is left out") == (
        "1 of 9 rows has a class of 'y' that training did not have, such as 'fir' in "
        "row 5; it is left out."
    )


def test_targets_of_numbers_have_no_unseen_classes():
    assert without_unseen_classes(TABLE, "price", None, None) == (TABLE, {})
