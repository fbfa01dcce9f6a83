import gzip
import io
import json
import pickle
import string

import numpy as np
import pandas
import pyarrow as pa
import pyarrow.feather
import pyarrow.orc
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tables.files import SAME_FILE, written
from tfbbb.tables import TableError, TableScan, csv_file, read_table
from tfbbb.tables.format import BEGINNING_BYTES, other_format
from tfbbb.tables.plain_values import PlainTypes


def test_a_parquet_file_keeps_its_types(tmp_path):
    table = pa.table(
        {
            "flag": [True, None],
            "word": pa.array(["a", "b"]).dictionary_encode(),
            "day": pa.array([0, 1], pa.date32()),
        }
    )
    pa.parquet.write_table(table, tmp_path / "table.parquet")
    assert read_table(tmp_path / "table.parquet").schema.types == table.schema.types


def test_the_pandas_index_in_a_parquet_file_is_left_out(tmp_path):
    frame = pandas.DataFrame({"a": [1, 2, 3]})
    frame[frame["a"] > 1].to_parquet(tmp_path / "table.parquet")
    assert read_table(tmp_path / "table.parquet").to_pydict() == {"a": [2, 3]}


@pytest.mark.parametrize("index", [[1, 1], [-1, 0], [0.5, 1], ["x", "y"]])
def test_a_first_column_that_is_no_index_gets_a_name(tmp_path, index):
    pandas.DataFrame({"a": [1, 2]}, index=index).to_csv(tmp_path / "table.csv")
    table = read_table(tmp_path / "table.csv")
    assert table.to_pydict() == {"column 1": index, "a": [1, 2]}


@pytest.mark.parametrize("index", [[0, 1, 2], [1, 2, 3], [7, 0, 31]])
def test_the_pandas_index_in_a_csv_file_is_left_out(tmp_path, index):
    pandas.DataFrame({"a": [1, 2, 3]}, index=index).to_csv(tmp_path / "table.csv")
    notes = []
    table = read_table(tmp_path / "table.csv", notify=notes.append)
    assert table.to_pydict() == {"a": [1, 2, 3]}
    (note,) = notes
    assert "The first column has no name and counts the rows" in note


@pytest.mark.parametrize("word", ["", "NA", " NA", '"NaN"', "null", "#N/A", '""'])
def test_missing_words_are_missing_in_numbers_and_texts(tmp_path, word):
    path = written(tmp_path, f"number,text\n1.5,x\n{word},{word}\n2,y\n")
    assert read_table(path).to_pydict() == {
        "number": [1.5, None, 2.0],
        "text": ["x", None, "y"],
    }


@pytest.mark.parametrize("word", ["None", "?", "-"])
def test_other_words_are_text(tmp_path, word):
    assert read_table(written(tmp_path, f"a\n{word}\nx\n")).to_pydict() == {
        "a": [word, "x"]
    }


def test_the_column_type_fits_all_cells(tmp_path):
    path = written(
        tmp_path,
        "int,float,quoted,flag,day,text\n"
        '1, 2.5,"3",true,2020-01-31,"a, ""b"""\n'
        '-4,1e3,"5",False,2021-02-01,"two\nlines"\n',
    )
    table = read_table(path)
    assert [str(type_) for type_ in table.schema.types] == [
        *("int64", "double", "int64", "bool", "date32[day]", "string")
    ]
    assert table.column("text").to_pylist() == ['a, "b"', "two\nlines"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", r"table.csv is empty\."),
        ("\n\n", r"table.csv is empty\."),
        ("a,b\n", "has a header but no rows"),
        ('a,b\n1,"x\ny"\n2,3,4\n', "line 4 has 3 cells, but the header has 2 cells"),
        ('a,b\n1,2\n3,"x\n5,6\n', "line 3: unexpected end of data"),
        (b"a,b\n1,x\n2,\x81\n", "not UTF-8 text: line 3 "),
        (b"a\x81,b\n1,2\n", "not UTF-8 text: line 1 "),
        (b"a,b\n1,2\n\0,\xff\n", "not UTF-8 text: line 3 "),
        ("a,b\n1,ä\n".encode("utf-16") + b"\0", "not UTF-16 text: line 3 "),
        ("a,b\n1,2\n".encode("utf-32"), "is UTF-32 text; save it as UTF-8"),
        (
            "a;b\n1;2\n3;4;5\n",
            r"line 3 has 3 cells, .* 2 cells \(the cells are separated by semicolons\)",
        ),
        ("a|b\n1\n2\n", r"line 2 has 1 cell, .* 2 cells \(.* by vertical bars\)"),
    ],
)
def test_a_malformed_csv_file_is_refused_with_the_line(tmp_path, content, message):
    with pytest.raises(TableError, match=message):
        read_table(written(tmp_path, content))


def test_a_missing_file_and_a_directory_are_refused(tmp_path):
    with pytest.raises(TableError, match=r"table.csv does not exist\."):
        read_table(tmp_path / "table.csv")
    (tmp_path / "table.csv").mkdir()
    with pytest.raises(TableError, match="is a directory, not a file"):
        read_table(tmp_path / "table.csv")


def test_an_unknown_suffix_is_refused_with_the_known_ones(tmp_path):
    path = written(tmp_path, "a\n1\n", "table.xls")
    with pytest.raises(TableError, match=r"must end in \.csv, .*, \.xlsx or \.ods\."):
        read_table(path)


def test_damaged_files_are_refused(tmp_path):
    rows = "".join(f"{x}\n" for x in np.random.default_rng(0).normal(size=1000))
    whole = gzip.compress(f"a\n{rows}".encode())
    (tmp_path / "cut.csv.gz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "plain.csv.gz").write_text("a\n1\n")
    (tmp_path / "text.parquet").write_text("a\n1\n")
    for path in tmp_path.iterdir():
        with pytest.raises(TableError, match=f"{path.name} cannot be read as"):
            read_table(path)


@pytest.mark.parametrize(
    ("cells", "type_"),
    [
        (["01569", "10001", ""], pa.string()),
        (['"007"', '"12"'], pa.string()),
        # Numbers, dates and times.
        (["0", "0.5", "-01"], pa.float64()),
        (["2020-01-02", "2020-03-04"], pa.date32()),
    ],
)
def test_codes_with_leading_zeros_stay_text(tmp_path, cells, type_):
    path = tmp_path / "codes.csv"
    path.write_text("code,size\n" + "".join(f"{cell},1\n" for cell in cells))
    table = read_table(path)
    assert table.schema.types == [type_, pa.int64()]
    if pa.types.is_string(type_):
        texts = [cell.strip('"') or None for cell in cells]
        assert table["code"].to_pylist() == texts


@pytest.mark.parametrize(
    "end", [",,\n" * 3, '"","",""\n' * 3, " , ,\n" * 3, ",,,,\n" * 3]
)
def test_rows_without_values_at_the_end_are_left_out_and_counted(end, tmp_path):
    path = tmp_path / "table.csv"
    # Rows without values in between are kept.
    rows = "".join(f"{i},{i / 8},x{i}\n" for i in range(1, 9))
    path.write_text(f"a,b,c\n{rows},,\n{rows}{end}")
    scan = TableScan(path)
    table = read_table(path)
    assert table["a"].to_pylist() == [*range(1, 9), None, *range(1, 9)]
    assert sum(batch.num_rows for batch in scan.batches()) == 17
    assert (
        " and 2 more: left out, as no row below has a value" in scan.dialect.describe()
    )


def test_many_rows_without_values_are_left_out_at_the_end_alone(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a,b\n" + ("1,2\n" + ",\n" * 300) * 2)
    scan = TableScan(path)
    assert scan.num_rows == 302
    assert "Line 304 and 299 more: left out, as no row" in scan.dialect.describe()


@pytest.mark.parametrize("text", ["a,b\n,\n,\n", 'a\n1\n""\n""\n'])
def test_rows_without_values_stay_in_tables_without_others(text, tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(text)
    assert read_table(path).num_rows == text.count("\n") - 1


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
    st.sampled_from(['"two\nlines"', '"a\r\n;"', '"x ""y"""', '5"', '6" 7"', '"a"b']),
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
    (tmp_path / "table.csv").write_bytes(text.encode())
    shrink_blocks(monkeypatch, 2**20)
    whole = read_table(tmp_path / "table.csv")
    shrink_blocks(monkeypatch, 150)
    scan = TableScan(tmp_path / "table.csv")
    types = PlainTypes()
    for batch in scan.batches():
        types.add(batch)
    typed = [types.convert(batch) for batch in scan.batches()]
    assert pa.Table.from_batches(typed).equals(whole)
    assert scan.num_rows == 12
    assert read_table(tmp_path / "table.csv").equals(whole)


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


def test_a_shuffled_pandas_index_across_blocks_is_left_out(tmp_path, monkeypatch):
    shrink_blocks(monkeypatch, 64)
    index = np.random.default_rng(0).permutation(100)
    (tmp_path / "table.csv").write_text(",a\n" + "".join(f"{i},1\n" for i in index))
    scan = TableScan(tmp_path / "table.csv")
    assert scan.schema.names == ["a"]
    assert "counts the rows" in scan.dialect.describe()
    with (tmp_path / "table.csv").open("a") as file:
        file.write("7,1\n")
    scan = TableScan(tmp_path / "table.csv")
    assert scan.schema.names == ["column 1", "a"]
    assert "counts the rows" not in scan.dialect.describe()


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


ROWS = [{"id": i, "a": i / 2, "word": "x"} for i in range(40)]
MANY = [{"id": i, "text": "x" * 50} for i in range(3000)]
LINES = "\n".join(map(json.dumps, ROWS))
JSON_LINES = {
    "lines": LINES,
    "lines with a byte order mark": f"\ufeff{LINES}",
    "lines after an empty one": f"\n  {LINES}",
    "one line": json.dumps(ROWS[0]),
    "a very long line": json.dumps({"text": "x" * BEGINNING_BYTES}),
    "lines of objects": '{"a": {"b": 1}}\n{"a": {"b": 2}}\n',
}
JSON = {
    "an array": json.dumps(ROWS),
    "an indented array": json.dumps(ROWS, indent=2),
    "a long array": json.dumps(MANY),
    "columns": json.dumps({"id": [1, 2], "a": [3, 4]}),
}
HEADERS = [
    '"{a}","[b]"', '"{""a"": 1}",b', "{a},b", "[mg],b", "[1],[2]", "[1]", "{},b",
    "ORCID,b", "PAR1,PAR2", "ARROW1,b", "BZh,b", "<html_tags,b", "FEA1,b",
]  # fmt: skip


def content_by(write, *arguments):
    file = io.BytesIO()
    write(*arguments, file)
    return file.getvalue()


TABLE = pa.Table.from_pylist(ROWS)
OTHERS = {
    "an HTML page": b"<!DOCTYPE html>\n<html><body>a,b</body></html>\n",
    "XML": b'<?xml version="1.0"?>\n<rows>\n<row a="1"/>\n</rows>\n',
    "a Python pickle": pickle.dumps(ROWS),
    "a ZIP archive": b"PK\x03\x04".ljust(30, b"\0") + b"table.csv",
    "an Excel workbook": b"PK\x03\x04".ljust(30, b"\0") + b"[Content_Types].xml",
    "a tar archive": b"a.csv".ljust(257, b"\0") + b"ustar\x0000",
}


@pytest.mark.parametrize("text", JSON.values(), ids=JSON.keys())
def test_json_is_recognised_and_refused(tmp_path, text):
    path = tmp_path / "table.csv.gz"
    path.write_bytes(gzip.compress(text.encode()))
    message = "table.* holds JSON, not CSV; save the table as CSV or Parquet."
    with pytest.raises(TableError, match=message):
        read_table(path)
    with pytest.raises(TableError, match=message):
        TableScan(path).header()


@pytest.mark.parametrize(
    "content",
    [*(text.encode() for text in JSON_LINES.values()), LINES.encode("utf-16")],
    ids=[*JSON_LINES, "UTF-16"],
)
def test_json_lines_in_a_csv_file_are_recognised(tmp_path, content):
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    message = "holds JSON lines, not CSV; rename the file to a name that ends in .jsonl"
    with pytest.raises(TableError, match=message):
        read_table(path)


@pytest.mark.parametrize("header", HEADERS)
def test_csv_headers_that_resemble_other_formats_are_read(tmp_path, header):
    path = tmp_path / "table.csv"
    path.write_text(f"{header}\n" + ("1,2\n" if "," in header else "1\n") * 30)
    assert read_table(path).num_rows == 30
    assert other_format(path.read_bytes()[:16]) is None


@pytest.mark.parametrize(("what", "content"), OTHERS.items())
def test_other_formats_are_recognised_and_refused(tmp_path, what, content):
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    with pytest.raises(TableError, match=f"holds {what}, not CSV"):
        read_table(path)


def test_a_wrong_suffix_error_names_the_right_suffix(tmp_path):
    path = tmp_path / "table.csv"
    pyarrow.parquet.write_table(TABLE, path)
    message = r"holds Parquet, not {}; rename the file to a name that ends in .parquet"
    for suffix, what in [("csv", "CSV"), ("jsonl", "JSON lines"), ("feather", "Arrow")]:
        wrong = path.rename(tmp_path / f"table.{suffix}")
        with pytest.raises(TableError, match=message.format(f"{what}.*")):
            read_table(wrong)
        wrong.rename(path)
