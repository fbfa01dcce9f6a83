import dataclasses

import numpy as np
import pyarrow as pa

from tfbbb.tables.column import Column, infer_column
from tfbbb.tables.row_warnings import ColumnFaults, ReadColumns, RowWarnings

TRAINING = np.array([[0.0, -5.0, 1.0], [1.0, 5.0, 3.0]])
COLUMNS = [
    infer_column(pa.table({name: TRAINING[:, i]}), name)[0]
    for i, name in enumerate("abc")
]
# A model of a Keras program knows no range.
COLUMNS.append(dataclasses.replace(COLUMNS[0], name="d", low=None, high=None))
ROWS = np.float32(
    [
        [0.0, -5.0, 1.0, 1e9],
        [1.5, np.nan, 3.0, -1e9],
        [1.0, 5.0, 0.5, 0.0],
        [np.nan, 0.0, 7.0, 0.0],
    ]
)


def test_every_value_outside_of_training_has_a_warning():
    assumed = "has no value; the mean of training is assumed."
    columns = {column.name: ROWS[:, i] for i, column in enumerate(COLUMNS)}
    assert RowWarnings(COLUMNS).find(columns).by_row() == [
        [],
        [
            "Column 'a' is 1.5, outside the range of training, 0 to 1.",
            f"Column 'b' {assumed}",
        ],
        ["Column 'c' is 0.5, outside the range of training, 1 to 3."],
        [
            f"Column 'a' {assumed}",
            "Column 'c' is 7, outside the range of training, 1 to 3.",
        ],
    ]


def test_a_column_that_is_not_as_in_training_in_most_rows_has_one_sentence():
    columns = [
        *COLUMNS[:1],
        Column("kind", "categorical", categories=("x", "y")),
        Column("gaps", "numeric", missing=True),
    ]
    table = {
        "a": ["0.5", "big", "9", ""],
        "kind": ["x", "z", "z", "z"],
        "gaps": ["", "", "", "no"],
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
