import numpy as np
import pyarrow as pa
import pytest

from tfbbb.tables import TableError
from tfbbb.tables.groups_and_times import group_repeated_rows, read_groups


def test_rows_with_equal_values_are_a_group():
    table = pa.table(
        {
            "x": [0.0, 1.0, -0.0, None, float("nan"), 1.0],
            "n": pa.array([1, 2, 1, 3, 3, 2], pa.int64()),
            "word": ["a", "b", "a", None, None, "c"],
            "yes": [True, False, True, None, None, False],
        }
    )
    groups = group_repeated_rows(table, table.column_names)
    assert groups.tolist() == [0, 1, 0, 2, 2, 3]
    assert group_repeated_rows(table, ["x"]).tolist() == [0, 1, 0, 2, 2, 1]


def test_values_in_other_columns_are_not_equal():
    table = pa.table({"a": [1.0, 2.0], "b": [2.0, 1.0]})
    assert group_repeated_rows(table, ["a", "b"]) is None


def test_the_groups_are_those_of_a_dictionary_of_rows():
    generator = np.random.default_rng(0)
    numbers = generator.integers(0, 12, 3000)
    words = np.array(["a", "b", "c"])[generator.integers(0, 3, 3000)]
    halves = [pa.array(words[:1000]), pa.array(words[1000:])]
    chunked = pa.chunked_array([half.dictionary_encode() for half in halves])
    table = pa.table({"x": numbers * 0.1, "word": chunked, "time": numbers})
    table = table.set_column(2, "time", table["time"].cast(pa.timestamp("s")))
    known = {}
    expected = [
        known.setdefault(row, len(known)) for row in zip(numbers, words, strict=True)
    ]
    assert group_repeated_rows(table, table.column_names).tolist() == expected


def test_hashes_of_many_rows_are_distinct():
    numbers = np.arange(200_000)
    table = pa.table({"x": numbers % 1000, "y": numbers // 1000})
    assert group_repeated_rows(table, ["x", "y"]) is None


@pytest.mark.parametrize("values", [["b", "a", "b"], [2.5, 1.0, 2.5], [7, 8, 7]])
def test_equal_values_of_a_column_are_a_group(values):
    groups = read_groups(pa.table({"g": values}), "g")
    assert groups[0] == groups[2] != groups[1]


@pytest.mark.parametrize("values", [["a", None], ["a", ""], [1.0, float("nan")]])
def test_a_row_without_a_group_is_refused(values):
    with pytest.raises(TableError, match="group column 'g' has no value in row 2"):
        read_groups(pa.table({"g": values}), "g")
