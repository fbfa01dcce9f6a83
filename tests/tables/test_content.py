"""Files that are not CSV are recognised by their first bytes and refused by format."""

import gzip
import io
import json
import pickle

import numpy as np
import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet
import pytest

from tfbbb.tables import TableError, read_table
from tfbbb.tables.format import (
    BEGINNING_BYTES,
    other_format,
)
from tfbbb.tables.scan import TableScan

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
    "long arrays": json.dumps([[row["id"], row["text"]] for row in MANY]),
    "long lines": "\n".join(json.dumps([row["text"]] * 5000) for row in MANY[:2]),
    "columns": json.dumps({"id": [1, 2], "a": [3, 4]}),
    "arrays": "[[1, 2], [3, 4]]",
    "lines of arrays": "[1, 2]\n[3, 4]\n",
    "deep arrays": "[" * 100_000,
}
HEADERS = [
    '"{a}","[b]"', '"{""a"": 1}",b', "{a},b", "[mg],b", "[1],[2]", "[1]", "{},b",
    "ORCID,b", "PAR1,PAR2", "ARROW1,b", "BZh,b", "<html_tags,b", "FEA1,b",
]  # fmt: skip


def written(write, *arguments):
    file = io.BytesIO()
    write(*arguments, file)
    return file.getvalue()


TABLE = pa.Table.from_pylist(ROWS)
OTHERS = {
    "an HTML page": b"<!DOCTYPE html>\n<html><body>a,b</body></html>\n",
    "XML": b'<?xml version="1.0"?>\n<rows>\n<row a="1"/>\n</rows>\n',
    "an ORC file": written(pyarrow.orc.write_table, TABLE),
    "a Python pickle": pickle.dumps(ROWS),
    "a NumPy array": written(lambda rows, file: np.save(file, rows), np.ones(3)),
    "an RTF document": b"{\\rtf1\\ansi hello\n}",
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
