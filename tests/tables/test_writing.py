import codecs
import datetime as dt
import io
import json
import zipfile
from xml.etree import ElementTree

import pyarrow as pa
import pytest

from tfbbb.tables import TableError, TableScan, read_table
from tfbbb.tables.writing import check_writable, write_csv, write_rows, write_table

TABLE = pa.table(
    {
        "plain": pa.array([0.1, 2.5], pa.float32()),
        "a, b": ['quoted "text"', "two\nlines"],
        "whole": [1, None],
        "flag": [True, False],
    }
)


@pytest.mark.parametrize("suffix", ["csv", "tsv", "csv.gz", "arrow", "parquet"])
def test_a_table_survives_a_round_trip(tmp_path, suffix):
    path = tmp_path / f"table.{suffix}"
    write_table(TABLE, path)
    table = read_table(path)
    assert table.column_names == TABLE.column_names
    assert table.drop_columns("plain").equals(TABLE.drop_columns("plain"))
    assert table["plain"].cast(pa.float32()).equals(TABLE["plain"])


def test_csv_has_the_shortest_digits_and_quotes_where_needed():
    file = io.BytesIO()
    write_csv(TABLE.select(["plain", "whole", "a, b"]).slice(0, 1), file)
    assert file.getvalue() == b'plain,whole,"a, b"\n0.1,1,"quoted ""text"""\n'
    assert not file.closed


@pytest.mark.parametrize("mark", [b"", codecs.BOM_UTF8])
def test_csv_begins_with_a_mark_where_the_given_file_does(tmp_path, mark):
    path = tmp_path / "given.csv"
    path.write_bytes(mark + b"a,b\n1,2\n")
    dialect = TableScan(path).dialect
    assert dialect.is_plain
    file = io.BytesIO()
    write_rows(read_table(path).to_reader(), file, "csv", dialect)
    assert file.getvalue() == path.read_bytes()


def test_a_replaced_file_has_default_permissions(tmp_path):
    path = tmp_path / "table.csv"
    (tmp_path / "other").write_text("")
    path.write_text("old")
    write_table(TABLE, path)
    assert path.read_text().startswith("plain,")
    assert path.stat().st_mode == (tmp_path / "other").stat().st_mode


def test_a_failed_write_keeps_the_old_file(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("old")
    broken = pa.table({"a": [1], "nested": [[1]]})
    with pytest.raises(pa.ArrowNotImplementedError):
        write_table(broken, path)
    assert [file.read_text() for file in tmp_path.iterdir()] == ["old"]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("table.xls", r"must end in \.csv, .*, \.feather or \.xlsx\."),
        ("table.ods", r"must end in \.csv, .*, \.feather or \.xlsx\."),
        ("nowhere/table.csv", "no such directory"),
        ("folder.csv", "is a directory"),
    ],
)
def test_an_unwritable_path_is_named(tmp_path, path, message):
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(TableError, match=message):
        write_table(TABLE, tmp_path / path)


MORE = TABLE.append_column("day", pa.array([dt.date(2024, 2, 29), None])).append_column(
    "formula", pa.array(["=1+1", "https://example.org"])
)


def test_json_lines_have_an_object_per_row(tmp_path):
    table = MORE.append_column("odd", pa.array([float("nan"), 1.0]))
    write_table(table, tmp_path / "table.jsonl")
    first, second = map(json.loads, (tmp_path / "table.jsonl").open())
    assert list(first) == table.column_names
    assert (first["odd"], second["odd"]) == (None, 1.0)
    assert (first["day"], second["whole"]) == ("2024-02-29", None)
    assert second["a, b"] == "two\nlines"


def test_an_excel_file_holds_the_values_of_the_table(tmp_path):
    pytest.importorskip("xlsxwriter")
    write_table(MORE, tmp_path / "table.xlsx")
    with zipfile.ZipFile(tmp_path / "table.xlsx") as archive:
        sheet = ElementTree.fromstring(archive.read("xl/worksheets/sheet1.xml"))
    space = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
    rows = [
        {cell.get("r"): "".join(cell.itertext()) for cell in row}
        for row in sheet.iter(f"{space}row")
    ]
    assert list(rows[0].values()) == MORE.column_names
    # 29 February 2024 is day 45351 of Excel.
    expected = {"A2": "0.1", "B2": 'quoted "text"', "C2": "1", "D2": "1", "E2": "45351"}
    found = {name: rows[1][name] for name in expected}
    assert float(found.pop("A2")) == pytest.approx(0.1)
    del expected["A2"]
    assert found == expected
    assert rows[1]["F2"] == "=1+1"
    assert not list(sheet.iter(f"{space}f"))
    assert "C3" not in rows[2]


def test_an_excel_file_without_its_library_is_refused_before_any_work(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(TableError, match=r"pip install 'tfbbb\[excel\]'"):
        check_writable(tmp_path / "table.xlsx")
