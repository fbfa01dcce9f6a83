"""Sheets become tables; workbooks that would exhaust memory are refused."""

import datetime
import sys
import zipfile
from contextlib import suppress

import pytest

from tests.tables.workbooks import Days, write_ods, write_xlsx
from tfbbb.tables import TableError, TableScan, read_table, workbook_file
from tfbbb.tables.dialect import Dialect

ROWS = [["name", "age", "rate"], ["Ada", 36, 0.5], ["Bob", None, "NA"]]
PEOPLE = {"name": ["Ada", "Bob"], "age": [36, None], "rate": [0.5, None]}
WRITERS = pytest.mark.parametrize(
    ("write", "suffix"), [(write_xlsx, "xlsx"), (write_ods, "ods")]
)


@WRITERS
def test_the_first_sheet_with_rows_is_read(tmp_path, write, suffix):
    sheets = {"empty": [], "people": ROWS, "notes": [["x"], [1]]}
    path = write(tmp_path / f"table.{suffix}", sheets)
    scan = TableScan(path)
    table = read_table(path)
    assert table.to_pydict() == PEOPLE
    assert [str(type_) for type_ in table.schema.types] == ["string", "int64", "double"]
    assert scan.dialect == Dialect(sheet="people", other_sheets=("empty", "notes"))
    assert scan.header() == ["name", "age", "rate"]
    said = []
    read_table(path, notify=said.append)
    assert said == ["Sheet 'people'. The sheets 'empty', 'notes' are not read."]


@WRITERS
def test_a_named_sheet_is_read(tmp_path, write, suffix):
    path = write(tmp_path / f"table.{suffix}", {"a": [["x"], [1]], "people": ROWS})
    assert read_table(path, sheet="people").to_pydict() == PEOPLE
    with pytest.raises(TableError, match="no sheet 'b'; its sheets are 'a', 'people'"):
        read_table(path, sheet="b")


def test_a_sheet_of_a_csv_file_is_refused(tmp_path):
    (tmp_path / "table.csv").write_text("a\n1\n")
    with pytest.raises(TableError, match=r"leave out `sheet`\. Received: sheet='x'"):
        read_table(tmp_path / "table.csv", sheet="x")


def test_the_column_type_fits_all_cells(tmp_path):
    rows = [
        ["whole", "part", "flag", "day", "time", "mixed", "code", "none"],
        [1, 1.5, True, Days(43831), Days(43831.5), 7, "007", "#N/A"],
        [2.0**60, 2, False, Days(43832), Days(43832), "x", "012", None],
    ]
    path = write_xlsx(tmp_path / "table.xlsx", {"a": rows})
    table = read_table(path)
    assert [str(type_) for type_ in table.schema.types] == [
        *("int64", "double", "bool", "date32[day]", "timestamp[s]"),
        *("string", "string", "null"),
    ]
    assert table.column("day").to_pylist()[0] == datetime.date(2020, 1, 1)
    assert table.column("time").to_pylist()[0] == datetime.datetime(2020, 1, 1, 12)
    assert table.column("mixed").to_pylist() == ["7", "x"]
    assert table.column("code").to_pylist() == ["007", "012"]


@pytest.mark.parametrize(
    ("above", "header_row"),
    [([["Report"]], 2), ([[], [None, None, "Report"], []], 4), ([[], []], 3)],
)
def test_titles_and_blank_rows_above_the_header_are_skipped(
    tmp_path, above, header_row
):
    shifted = [[None, None, *row] for row in ROWS]
    above = [[None, None, *row] for row in above]
    path = write_xlsx(tmp_path / "table.xlsx", {"a": [*above, *shifted]})
    scan = TableScan(path)
    assert read_table(path).to_pydict() == PEOPLE
    assert scan.dialect == Dialect(sheet="a", header_line=header_row)


@pytest.mark.parametrize(
    ("rows", "columns", "note"),
    [
        ([["x", "x"], [1, 2]], {"x": [1], "x_2": [2]}, "has its name: 'x_2'"),
        ([["x", "y"], ["m", "kg"], [1, 2], [3, 4]], {"x": [1, 3], "y": [2, 4]}, "unit"),
        ([[1.5], [0.5], [2.5]], {"column 1": [1.5, 0.5, 2.5]}, "has values like"),
    ],
)
@WRITERS
def test_headers_are_completed(tmp_path, rows, columns, note, write, suffix):
    path = write(tmp_path / f"table.{suffix}", {"a": rows})
    said = []
    assert read_table(path, notify=said.append).to_pydict() == columns
    assert note in said[0]


@pytest.mark.parametrize(
    ("below", "note"),
    [
        ([[], ["Note: preliminary"]], "Row 5, 'Note: preliminary': left out"),
        ([["Source:", "the office", None], ["* in euros"]], "Row 4 and 1 more, "),
    ],
)
@WRITERS
def test_rows_below_the_table_are_left_out(tmp_path, below, note, write, suffix):
    rows = [*ROWS[:2], ["Bob", 0, 1.5], *below]
    path = write(tmp_path / f"table.{suffix}", {"a": rows})
    said = []
    assert read_table(path, notify=said.append).num_rows == 2
    assert note in said[0]


@pytest.mark.parametrize("folder", ["", "book/"])
def test_the_sheets_may_be_in_any_folder(tmp_path, folder):
    path = write_xlsx(tmp_path / "first.xlsx", {"people": ROWS})
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(tmp_path / "table.xlsx", "w") as archive:
        for name, content in sorted(files.items(), reverse=True):
            moved = content.replace(
                b"xl/workbook.xml", f"{folder}workbook.xml".encode()
            )
            archive.writestr(name.replace("xl/", folder), moved)
    assert read_table(tmp_path / "table.xlsx").to_pydict() == PEOPLE


@pytest.mark.parametrize(
    ("sheets", "message"),
    [
        ({"a": [], "b": []}, "empty: none of its sheets 'a', 'b' has rows"),
        ({"a": [["x", "y"]]}, "has a header but no rows"),
    ],
)
@WRITERS
def test_sheets_without_a_table_are_refused(tmp_path, sheets, message, write, suffix):
    with pytest.raises(TableError, match=message):
        read_table(write(tmp_path / f"table.{suffix}", sheets))


def test_xml_that_would_fill_memory_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(workbook_file, "MAX_BYTES", 2**16)
    bomb = {"xl/more.xml": b" " * 2**17}
    path = write_xlsx(tmp_path / "table.xlsx", {"a": ROWS}, **bomb)
    assert path.stat().st_size < 2**13
    with pytest.raises(TableError, match="more than 65536 bytes of XML"):
        read_table(path)


def test_an_archive_that_understates_its_size_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(workbook_file, "MAX_BYTES", 2**16)
    path = write_xlsx(
        tmp_path / "table.xlsx", {"a": ROWS}, **{"xl/more.xml": b" " * 2**17}
    )
    content = path.read_bytes()
    stated = (2**17).to_bytes(4, "little")
    assert content.count(stated) == 2
    path.write_bytes(content.replace(stated, (9).to_bytes(4, "little")))
    with zipfile.ZipFile(path) as archive:
        assert archive.getinfo("xl/more.xml").file_size == 9
    with pytest.raises(TableError, match="more than 65536 bytes of XML"):
        read_table(path)


def test_cells_far_apart_are_refused(tmp_path):
    sheet = (
        '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
        '<sheetData><row r="1"><c r="A1"><v>1</v></c></row><row r="1048576">'
        '<c r="XFD1048576"><v>2</v></c></row></sheetData></worksheet>'
    )
    path = tmp_path / "table.xlsx"
    write_xlsx(path, {"a": ROWS})
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    files["xl/worksheets/sheet1.xml"] = sheet.encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    with pytest.raises(TableError, match="more than 16777216 cells"):
        read_table(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            b"a,b\n1,2\n",
            "cannot be read as a spreadsheet, whatever its suffix: File is not a zip",
        ),
        (b"\xd0\xcf\x11\xe0" + bytes(99), "an old spreadsheet, or one with a password"),
        (b"PAR1" + bytes(99), "holds Parquet, not an Excel workbook; rename"),
    ],
)
def test_other_files_are_refused(tmp_path, content, message):
    (tmp_path / "table.xlsx").write_bytes(content)
    with pytest.raises(TableError, match=message):
        read_table(tmp_path / "table.xlsx")


@WRITERS
def test_a_damaged_workbook_is_refused(tmp_path, write, suffix):
    path = write(tmp_path / f"table.{suffix}", {"a": ROWS})
    content = path.read_bytes()
    for place in range(0, len(content), 31):
        damaged = bytes(
            [*content[:place], content[place] ^ 0xFF, *content[place + 1 :]]
        )
        path.write_bytes(damaged)
        # No other error is raised.
        with suppress(TableError):
            read_table(path)


def test_a_missing_library_is_named(tmp_path, monkeypatch):
    path = write_xlsx(tmp_path / "table.xlsx", {"a": ROWS})
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    with pytest.raises(TableError, match=r"pip install 'tfbbb\[excel\]'"):
        read_table(path)
