import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tfbbb.tables import Schema, TableError
from tfbbb.tables.given_table import as_source

COLUMNS = {"x": [1.5, None, 3.0], "word": ["a", "b", None]}
TABLE = pa.table(COLUMNS)


class Polars:
    """A table with the Arrow stream interface alone, as frames of polars have."""

    def __arrow_c_stream__(self, requested_schema=None):
        return TABLE.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize(
    "given",
    [
        TABLE,
        TABLE.to_batches()[0],
        Polars(),
        pd.DataFrame(COLUMNS, index=[7, 8, 9]),
        pd.DataFrame(COLUMNS).astype({"word": "category"}),
        pa.table({"x": TABLE["x"], "word": TABLE["word"].dictionary_encode()}),
        COLUMNS,
        {"x": np.array([[1.5], [np.nan], [3.0]]), "word": pd.Series(COLUMNS["word"])},
        {"x": TABLE["x"], "word": np.array(["a", "b", np.nan], dtype=object)},
        [{"x": 1.5, "word": "a"}, {"word": "b"}, {"x": 3.0, "word": None}],
    ],
)
def test_every_kind_of_table_is_converted_alike(given):
    table = as_source(given)
    assert table.column_names == ["x", "word"]
    for name, values in COLUMNS.items():
        assert table.column(name).to_pylist() == values


@pytest.mark.parametrize(
    ("given", "received"),
    [
        (np.ones((3, 2)), "ndarray"),
        ([[1.0, 2.0]], "list"),
        ([], "list"),
        (pd.Series([1.0]), "Series"),
        ("table.csv", "str"),
        (None, "NoneType"),
    ],
)
def test_a_value_that_is_not_a_table_is_refused(given, received):
    with pytest.raises(TableError, match=rf"A table must be .*Received: {received}$"):
        as_source(given)


@pytest.mark.parametrize(
    "given",
    [
        {"x": [1.0, "a"]},
        {"x": [1.0], "y": [1.0, 2.0]},
        {"x": 1.0},
        pd.DataFrame([[1.0, 2.0]], columns=["x", "x"]),
    ],
)
def test_invalid_columns_are_refused(given):
    with pytest.raises(TableError, match="The table cannot be read"):
        as_source(given)


def test_schemas_are_inferred_from_and_read_pandas_frames():
    frame = pd.DataFrame({"x": np.arange(12.0), "y": np.arange(12.0) * 2.0})
    schema = Schema.infer(frame, "y")
    np.testing.assert_array_equal(schema.inputs(frame[:2]), [[0.0], [1.0]])
    np.testing.assert_array_equal(schema.targets(frame[:2]), [[0.0], [2.0]])
    with pytest.raises(TableError, match="Received: ndarray"):
        Schema.infer(frame.to_numpy(), "y")
