import pyarrow as pa

from tfbbb.tables.column import Column, infer_column
from tfbbb.tables.row_warnings import ColumnFaults, ReadColumns, RowWarnings


def test_a_column_that_is_not_as_in_training_in_most_rows_has_one_sentence():
    columns = [
        infer_column(pa.table({"a": [0.0, 1.0]}), "a")[0],
        Column("kind", "categorical", categories=("x", "y")),
        Column("gaps", "numeric", missing=True),
        # A model of a Keras program knows no range.
        Column("free", "numeric"),
    ]
    table = {
        "a": ["0.5", "big", "9", ""],
        "kind": ["x", "z", "z", "z"],
        "gaps": ["", "", "", "no"],
        "free": ["1e9", "-1e9", "0", "0"],
    }
    read = ReadColumns.read(columns, pa.table(table))
    found = RowWarnings(columns).find(read, read.unreadable).by_column()
    assert found.describe() == [
        "Column 'a' is not as in training in 3 of 4 rows: 1 cannot be read, such as "
        "'big', which is not a number; 1 lack a value; 1 are outside the range of "
        "training, 0 to 1, such as 9.",
        "Column 'kind' is not as in training in 3 of 4 rows: 3 have a category unseen "
        "in training, such as 'z'.",
        "Column 'gaps' is not as in training in 4 of 4 rows: 1 cannot be read, such as "
        "'no', which is not a number; 3 lack a value.",
    ]
    assert found.useless(blank=False) == ["gaps"]
    halves = [ColumnFaults(4, found.columns), ColumnFaults(4, {})]
    joined = ColumnFaults.joined(halves)
    assert joined.num_rows == 8
    assert joined.describe() == joined.useless(blank=True) == []


def test_only_a_column_without_any_known_value_is_useless():
    def useless(blank, **kinds):
        faults = {kind: (number, "") for kind, number in kinds.items()}
        return ColumnFaults(4, {"a": faults}).useless(blank=blank) == ["a"]

    assert useless(False, unreadable=4)
    assert useless(False, unseen=3, missing=1)
    assert not useless(True, unseen=3)
    # A number that training had in some rows may be missing in all, and dates go on.
    assert not useless(True, empty=4)
    assert not useless(True, outside=4)
    assert useless(True, missing=4)
    assert not useless(False, missing=4)
