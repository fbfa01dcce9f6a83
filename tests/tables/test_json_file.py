"""JSON lines become columns; what is no table is refused with its line."""

import functools
import json

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tables import files
from tests.tables.files import SAME_FILE
from tfbbb.tables import Column, TableError, TableScan, json_file, read_table
from tfbbb.tables.scan import read_cells

written = functools.partial(files.written, name="table.jsonl")
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5)
)


def test_keys_become_columns_with_types_of_all_rows(tmp_path):
    path = written(
        tmp_path,
        '\ufeff{"n": 1, "x": 1, "t": "noon", "b": true, "e": null}\n'
        "\n"
        '{"x": 2.5, "n": null, "later": "é"}\r\n',
        name="table.ndjson",
    )
    scan, table = TableScan(path), read_table(path)
    assert [str(type_) for type_ in table.schema.types] == [
        *("int64", "double", "string", "bool", "null", "string")
    ]
    assert scan.header() == scan.schema.names
    assert table.to_pylist() == [
        {"n": 1, "x": 1.0, "t": "noon", "b": True, "e": None, "later": None},
        {"n": None, "x": 2.5, "t": None, "b": None, "e": None, "later": "é"},
    ]
    assert scan.dialect is None


def test_a_number_may_be_nan(tmp_path):
    path = written(tmp_path, '{"a": 7.5, "b": 1}\n{"a": NaN, "b": 2}\n')
    assert str(read_table(path)["a"].to_pylist()) == "[7.5, nan]"


def test_booleans_are_texts_where_training_had_texts(tmp_path):
    path = written(tmp_path, '{"a": true, "b": true}\n{"a": null, "b": "x"}\n')
    table = read_cells(path)
    assert table.to_pydict() == {"a": ["true", None], "b": ["true", "x"]}
    # As booleans of other files are, in a column that was text in training.
    column = Column("a", "categorical", categories=("true", "false"))
    assert column.values(table).tolist() == ["true", ""]


def is_text_of(cell, value):
    """Whether a cell is what a CSV file would have for a value."""
    if isinstance(value, bool):
        return cell == str(value).lower()
    if isinstance(value, int | float):
        return float(cell) == float(value)
    return cell == value


@settings(SAME_FILE, max_examples=40)
@given(
    rows=st.lists(
        st.dictionaries(st.sampled_from("abc"), SCALARS, min_size=1),
        min_size=1,
        max_size=30,
    ),
    ascii=st.booleans(),
)
def test_rows_survive_a_round_trip_in_blocks_of_any_size(
    tmp_path, monkeypatch, rows, ascii
):
    lines = [json.dumps(row, ensure_ascii=ascii) for row in rows]
    path = written(tmp_path, "\n".join(lines))
    monkeypatch.setattr(json_file, "CELLS_PER_BATCH", 8)
    table = read_cells(path)
    assert {*table.column_names} == {name for row in rows for name in row}
    for name in table.column_names:
        values = [row.get(name) for row in rows]
        assert all(map(is_text_of, table.column(name).to_pylist(), values))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "table.jsonl is empty"),
        ("\n\n", "has a header but no rows"),
        ('{"a": 1}\n{"a": 1\n', "line 2 is not a JSON object: Expecting ',' delimiter"),
        ("a,b\n1,2\n", "line 1 is not a JSON object: .* Received: 'a,b'"),
        ("[1, 2]\n", "line 1 is not a JSON object; write one object per line"),
        ('{"a": 1}\n7\n', "line 2 is not a JSON object; write one object per line"),
        ('{"a": 1}\n{"a": {"b": 1}}\n', "line 2 has an object or an array at .* 'a'"),
        ('{"a": 1, "b": []}\n', "line 1 has an object or an array at the key 'b'"),
        ('{"a": ' + "[" * 100_000, "line 1 is not a JSON object: .* nested too deeply"),
        (
            '{"b": 1}\n{"b": 1, "a": ' + "[" * 99_999 + "]" * 99_999 + "}",
            "line 2 is not a JSON object: .* nested too deeply",
        ),
        (b'{"a": "x"}\n{"a": "\xff"}\n', "line 2 is not UTF-8 text"),
        (r'{"a": "\ud800"}', "line 1 has half a surrogate pair"),
        ('{"": 1}\n', "column 1 of 1 has no name"),
        ("{}\n{}\n", "has a header but no rows"),
    ],
)
def test_what_is_no_table_is_refused_with_the_line(tmp_path, content, message):
    with pytest.raises(TableError, match=message):
        read_table(written(tmp_path, content))


def test_lines_with_ever_other_keys_are_refused(tmp_path):
    rows = "".join(f'{{"key{i}": 1}}\n' for i in range(20_000))
    with pytest.raises(TableError, match="20000 different keys, most of them missing"):
        read_table(written(tmp_path, rows))


def test_a_line_longer_than_a_block_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(json_file, "BLOCK_BYTES", 64)
    path = written(tmp_path, '{"a": 1}\n{"a": "' + "x" * 200)
    with pytest.raises(TableError, match="line 2 is longer than 64 bytes"):
        read_table(path)


def test_large_integers_are_numbers(tmp_path):
    path = written(tmp_path, '{"a": 1}\n{"a": 123456789012345678901234567890}\n')
    assert read_table(path).schema.types == [pa.float64()]
