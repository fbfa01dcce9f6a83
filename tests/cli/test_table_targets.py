"""The targets of tables that commands read."""

import pyarrow as pa
import pytest

from tfbbb.cli.table_targets import read_labels_or_numbers
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
