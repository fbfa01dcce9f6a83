import dataclasses

import numpy as np

from tfbbb.tables.column import Column
from tfbbb.tables.row_warnings import RowWarnings

TRAINING = np.array([[0.0, -5.0, 1.0], [1.0, 5.0, 3.0]])
COLUMNS = [Column.from_numbers(name, TRAINING[:, i]) for i, name in enumerate("abc")]
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


def test_a_matrix_has_the_warnings_of_its_columns():
    warnings = RowWarnings(COLUMNS)
    columns = {column.name: ROWS[:, i] for i, column in enumerate(COLUMNS)}
    assert warnings.find_in_matrix(ROWS) == warnings.find(columns)


def test_every_value_outside_of_training_has_a_warning():
    assumed = "has no value; the mean of training is assumed."
    assert RowWarnings(COLUMNS).find_in_matrix(ROWS) == [
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
