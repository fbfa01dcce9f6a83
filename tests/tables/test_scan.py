import string

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tables.files import SAME_FILE
from tfbbb.tables import (
    TableError,
    csv_file,
    read_table,
)
from tfbbb.tables.plain_values import PlainTypes
from tfbbb.tables.scan import TableScan

# Cells of every type that a CSV column may have.
CELLS = st.one_of(
    st.integers(0, 1).map(str),
    st.integers(-(10**12), 10**12).map(str),
    st.floats(allow_nan=False).map(repr),
    st.sampled_from(["true", "false", "NA", "", " 7", "12:30:00", "x", '"1"']),
    st.dates().map(str),
    st.datetimes().map(lambda time: str(time.replace(microsecond=0))),
    st.datetimes().map(str),
    st.sampled_from(["2020-01-01T10:00:00Z", "2020-01-01T10:00:00.5Z"]),
)
# A column whose cells have few types, so that the column is not always text.
COLUMN = st.lists(CELLS, min_size=1, max_size=3).flatmap(
    lambda cells: st.lists(st.sampled_from(cells), min_size=12, max_size=12)
)


def shrink_blocks(monkeypatch, size):
    monkeypatch.setattr(csv_file, "BLOCK_BYTES", size)


@settings(SAME_FILE, max_examples=40)
@given(columns=st.lists(COLUMN, min_size=1, max_size=4))
def test_types_do_not_depend_on_the_block_size(tmp_path, monkeypatch, columns):
    # The last cell is never empty: the line of an empty last cell is blank.
    rows = [*zip(*columns, ["z"] * 12, strict=True)]
    names = string.ascii_lowercase[: len(rows[0])]
    text = "".join(",".join(row) + "\n" for row in [names, *rows])
    (tmp_path / "table.csv").write_text(text)
    shrink_blocks(monkeypatch, 2**20)
    whole = read_table(tmp_path / "table.csv")
    shrink_blocks(monkeypatch, 150)
    scan = TableScan(tmp_path / "table.csv")
    types = scan.collect(PlainTypes, PlainTypes.add)
    typed = [types.convert(batch) for batch in scan.batches()]
    assert pa.Table.from_batches(typed).equals(whole)
    assert scan.num_rows == 12
    assert read_table(tmp_path / "table.csv").equals(whole)


def test_a_late_wider_cell_widens_the_column_type(tmp_path, monkeypatch):
    rows = ["1,,2020-01-01\n"] * 100 + ["2.5,x,2020-01-01T10:00:00\n", "1,y,\n"]
    (tmp_path / "table.csv").write_text("a,b,c\n" + "".join(rows))
    shrink_blocks(monkeypatch, 64)
    types = read_table(tmp_path / "table.csv").schema.types
    assert types == [pa.float64(), pa.string(), pa.timestamp("s")]


@pytest.mark.parametrize("write", ["stream", "file", "compressed", "parquet"])
def test_binary_formats_yield_their_rows_in_batches(tmp_path, write):
    generator = np.random.default_rng(0)
    texts = pa.array(["a", None] * 100_000)
    table = pa.table(
        {
            "number": generator.normal(size=200_000),
            "text": texts.dictionary_encode(),
            # Polars writes string views; the reader returns them as strings.
            "view": texts.cast(pa.string_view()),
        }
    )
    path = tmp_path / ("table.parquet" if write == "parquet" else "table.arrow")
    if write == "parquet":
        pa.parquet.write_table(table, path)
    elif write == "stream":
        with pa.ipc.new_stream(path, table.schema) as writer:
            writer.write(table)
    else:
        options = pa.ipc.IpcWriteOptions(
            compression="zstd" if write == "compressed" else None
        )
        with pa.ipc.new_file(path, table.schema, options=options) as writer:
            writer.write(table)
    table = table.set_column(2, "view", texts)
    scan = TableScan(path)
    batches = [*scan.batches()]
    assert len(batches) > 2
    assert pa.Table.from_batches(batches).equals(table)
    assert scan.num_rows == len(table)
    assert read_table(path).equals(table)
    assert scan.head(3).equals(table.slice(0, 3))
    assert scan.head(3, skip=150_000).equals(table.slice(150_000, 3))
    assert scan.head(3, skip=200_000).equals(table.slice(0, 0))


def test_a_shuffled_pandas_index_across_blocks_is_left_out(tmp_path, monkeypatch):
    shrink_blocks(monkeypatch, 64)
    index = np.random.default_rng(0).permutation(100)
    (tmp_path / "table.csv").write_text(",a\n" + "".join(f"{i},1\n" for i in index))
    scan = TableScan(tmp_path / "table.csv")
    assert scan.schema.names == ["a"]
    assert scan.without_index
    with (tmp_path / "table.csv").open("a") as file:
        file.write("7,1\n")
    scan = TableScan(tmp_path / "table.csv")
    assert scan.schema.names == ["column 1", "a"]
    assert not scan.without_index


def test_arrow_files_with_wrong_offsets_are_refused(tmp_path):
    path = tmp_path / "table.arrow"
    batch = pa.record_batch({"text": ["abc", "def", "ghi"]})
    with pa.ipc.new_file(path, batch.schema) as writer:
        writer.write(batch)
    offsets = np.array([0, 3, 6, 9], np.int32).tobytes()
    wrong = np.array([0, 3, 6, 2**30], np.int32).tobytes()
    content = path.read_bytes()
    assert content.count(offsets) == 1
    path.write_bytes(content.replace(offsets, wrong))
    with pytest.raises(TableError, match="cannot be read as arrow"):
        read_table(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a" * 1000, "longer than 64 characters"),
        (b'a\n1\n"' + b"x\n" * 1000, "unexpected end of data"),
        (b"a,b", "has a header but no rows"),
    ],
)
def test_endless_rows_are_refused(tmp_path, monkeypatch, content, message):
    (tmp_path / "table.csv").write_bytes(content)
    shrink_blocks(monkeypatch, 64)
    with pytest.raises(TableError, match=message):
        read_table(tmp_path / "table.csv")


def test_a_row_may_be_longer_than_a_block(tmp_path, monkeypatch):
    (tmp_path / "table.csv").write_text('a\n"' + "x\n" * 1000 + '"\n')
    shrink_blocks(monkeypatch, 64)
    assert read_table(tmp_path / "table.csv")["a"].to_pylist() == ["x\n" * 1000]


def test_an_unknown_format_is_refused_with_the_known_ones(tmp_path):
    with pytest.raises(ValueError, match=r"parquet, .*\. Received: format='xls'"):
        TableScan(tmp_path / "table.xls", format="xls")


QUOTED = st.text(st.sampled_from('a,;"\n\r '), max_size=6)
# A quote inside a cell without quotes is a character like any other.
CELL = QUOTED.map(lambda text: '"{}"'.format(text.replace('"', '""'))) | (
    st.sampled_from(["a", "", "NA", '5"', 'a"b"', '6" 7"', '"a"b'])
)


@settings(SAME_FILE, max_examples=40)
@given(
    rows=st.lists(st.tuples(CELL, CELL), min_size=4, max_size=12),
    line_end=st.sampled_from(["\n", "\r\n"]),
    size=st.integers(40, 120),
)
def test_rows_do_not_depend_on_the_block_size(
    tmp_path, monkeypatch, rows, line_end, size
):
    text = line_end.join(["left,right", *map(",".join, rows), "x,y", ""])
    path = tmp_path / "table.csv"
    path.write_bytes(text.encode())
    shrink_blocks(monkeypatch, len(text) + 1)
    whole = read_table(path)
    shrink_blocks(monkeypatch, size)
    longest = max(len(",".join(row)) for row in rows)
    if 2 * longest < size:
        assert read_table(path).equals(whole)


@pytest.mark.parametrize(("stray", "is_cut"), [("1,x\n", True), ('1,5" x\n', False)])
def test_files_are_cut_into_blocks_where_quotes_allow(
    tmp_path, monkeypatch, stray, is_cut
):
    shrink_blocks(monkeypatch, 64)
    rows = [stray, *['1,"x\n, y"\n'] * 40, stray * 30]
    (tmp_path / "table.csv").write_text("a,b\n" + "".join(rows))
    scan = TableScan(tmp_path / "table.csv")
    assert scan.num_rows == 71
    assert scan._file._is_irregular != is_cut
