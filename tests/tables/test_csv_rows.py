"""Lines that are no rows are left out, short rows are filled, and both are said."""

import pyarrow as pa
import pytest

from tests.tables.files import written
from tfbbb.tables import TableError, TableScan, csv_file, read_table
from tfbbb.tables.plain_values import typed_table

ROWS = "".join(f"{['north', 'south'][i % 2]},{i},{i * 2}.5\n" for i in range(8))
HEADER = "place,size,price\n"
SIZES = list(range(8))


def read(path):
    """The columns and the notes of a file, read in one go and in blocks."""
    notes = []
    table = read_table(path, notify=notes.append)
    scan = TableScan(path)
    assert scan.num_rows == table.num_rows
    assert typed_table(pa.Table.from_batches(scan.batches())).equals(table)
    return table.to_pydict(), " ".join(notes)


@pytest.fixture(params=[None, 70], autouse=True)
def block_size(request, monkeypatch):
    if request.param is not None:
        monkeypatch.setattr(csv_file, "BLOCK_BYTES", request.param)


@pytest.mark.parametrize(
    ("below", "note"),
    [
        ("\nSource: Office of Examples, 2024\n", "Line 11, 'Source: Office"),
        ("Source: Office; all rights, etc., a, b, c\n", "Line 10, 'Source: Office"),
        ("\n* provisional figures\n", "Line 11, '* provisional figures'"),
        ("Figures of 2024: not yet audited by anyone\n", "Line 10, 'Figures of 2024"),
        (
            "\nNote,,\nLast updated: 2024-01-01,,\n",
            "Line 11 and 1 more, 'Note': left out as a footer",
        ),
        (
            ",,\n,,\nData from database: WDI,,\n",
            "Line 10 and 1 more: left out as empty above",
        ),
        (
            "\nThese figures, for 2024, may change\n",
            "Line 11, 'These figures, for 2024, may change'",
        ),
        ("Total,,72.5\n", "Line 10, 'Total': left out, as it sums up"),
        ("Grand total:,28,60.0\n", "Line 10, 'Grand total:'"),
        ("mean,3.5,7.5\n", "Line 10, 'mean'"),
        ("----\n(8 rows)\n", "Line 10 and 1 more, '----'"),
        (",28,60\n", "Line 10, '28': left out, as it sums up"),
        ("Total,28,60\nMean,3.5,7.5\n", "Line 10 and 1 more, 'Total'"),
        ("Total,28,60\n,,\n,,\n", "Line 10, 'Total': left out"),
        ("Source: x,,\n,,\n,,\n", "Line 10, 'Source: x': left out"),
        ("Total,28,60\nSource: x\n", "Line 11, 'Source: x': left out as a footer"),
    ],
)
def test_footers_and_sums_are_left_out(tmp_path, below, note):
    columns, notes = read(written(tmp_path, HEADER + ROWS + below))
    assert columns["size"] == SIZES
    assert columns["price"] == [2 * size + 0.5 for size in SIZES]
    assert note in notes


@pytest.mark.parametrize(
    ("last", "cells"),
    [
        ("total,4,5\n", ["total", 4, 5]),
        ("Saint Lucia,,\n", ["Saint Lucia", None, None]),
        (",4,5\n", [None, 4, 5]),
        (",28,5\n", [None, 28, 5]),
        ("unknown,4,5\n", ["unknown", 4, 5]),
        ("\nnorth,4,5\n", ["north", 4, 5]),
    ],
)
def test_a_last_row_of_the_table_is_kept(tmp_path, last, cells):
    columns, notes = read(written(tmp_path, HEADER + ROWS + last))
    assert [column[-1] for column in columns.values()] == cells
    assert "left out" not in notes


def test_the_value_of_a_column_that_does_not_vary_is_no_mean(tmp_path):
    columns, notes = read(written(tmp_path, HEADER + "a,7,2\nb,7,3\nc,7,4\n,7,\n"))
    assert columns["size"] == [7, 7, 7, 7]
    assert notes == ""


def test_sums_of_categories_inside_are_kept(tmp_path):
    rows = "men,1,2\nwomen,3,4\ntotal,4,6\nmen,1,1\nwomen,1,1\ntotal,2,2\n"
    columns, notes = read(written(tmp_path, HEADER + rows))
    assert columns["size"] == [1, 3, 4, 1, 1, 2]
    assert notes == ""


def test_comments_and_repeated_headers_inside_are_left_out(tmp_path):
    inside = "# sensor replaced\n" + HEADER + "// cleaned, moved, read, again\n"
    columns, notes = read(written(tmp_path, HEADER + ROWS + inside + ROWS))
    assert columns["size"] == [*SIZES, *SIZES]
    assert "Line 10 and 1 more, '# sensor replaced': left out as a comment" in notes
    assert "Line 11: left out, as it repeats the names of the columns." in notes


def test_a_late_repeated_header_changes_no_type(tmp_path):
    columns, notes = read(written(tmp_path, HEADER + ROWS * 9 + HEADER))
    assert columns["size"] == SIZES * 9
    assert "Line 74: left out, as it repeats the names" in notes


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["1", "2", "3", "4", "5", "6", "7", "8"], ["place", "size", "price"]),
        (
            ["a", "b", "c", "d", "e", "f", "g", "h"],
            ["row names", "place", "size", "price"],
        ),
    ],
)
@pytest.mark.parametrize("delimiter", ",\t")
def test_row_names_of_r_are_a_column_unless_they_count(
    tmp_path, names, expected, delimiter
):
    rows = "".join(
        f'"{name}",{row}\n' for name, row in zip(names, ROWS.splitlines(), strict=True)
    )
    content = (HEADER + rows).replace(",", delimiter)
    columns, notes = read(written(tmp_path, content))
    assert list(columns) == expected
    assert columns["size"] == SIZES
    assert "one cell more than the header, as R writes them" in notes


@pytest.mark.parametrize(
    ("content", "names", "notes"),
    [
        ("a,,c\n1,2,3\n", ["a", "column 2", "c"], "no name for it: 'column 2'"),
        (
            ",,c\n0,1,2\n",
            ["column 1", "column 2", "c"],
            "no name for it: 'column 1', 'column 2'",
        ),
        ("a,a,a_2\n1,2,3\n", ["a", "a_3", "a_2"], "has its name: 'a_3'"),
        ("a,,c,\n1,,3,\n", ["a", "c"], "neither a name nor values: column 2, 4."),
        ("a,,c\n" + "1,,3\n" * 50 + "1,2,3\n", ["a", "column 2", "c"], "'column 2'"),
        ("a,,column 2\n1,2,3\n", ["a", "column 2_2", "column 2"], "'column 2_2'"),
    ],
)
def test_columns_get_names_of_their_own(tmp_path, content, names, notes):
    path = written(tmp_path, content)
    columns, said = read(path)
    assert list(columns) == names
    assert notes in said
    assert TableScan(path).schema.names == names


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("x,1,2\ny,1,2,3\nz,1,2\n", "line 3 has 4 cells, but the header has 3 cells."),
        ("x,1,2,3\ny,1,2\nz,4,5,6\n", "has 3 cells; line 4 differs from it, too."),
        ("x,1,2,3\ny,1,2\n" + "z,4,5,6\n" * 9, "9 more lines differ from it"),
        ("x\ny\nz\n", "line 2 has 1 cell, but the header has 3 cells"),
        ("x,1\ny,2\nz,3\n", "line 2 has 2 cells, but the header has 3 cells"),
    ],
)
def test_rows_that_nothing_explains_are_refused(tmp_path, rows, message):
    with pytest.raises(TableError, match=message):
        read_table(written(tmp_path, HEADER + rows))


@pytest.mark.parametrize(
    ("beginning", "encoding"),
    [("code,size\n", "utf-8"), ("code,größe\n", "cp1252"), ("code,größe\n", "utf-16")],
)
@pytest.mark.parametrize("comment", ["", "# checked\n"])
def test_a_late_code_makes_its_column_text(tmp_path, beginning, encoding, comment):
    path = tmp_path / "codes.csv"
    rows = "".join(f"{10_000 + place},1\n" for place in range(3000))
    path.write_text(f"{beginning}{rows}{comment}01569,1\n", encoding=encoding)
    table = read_table(path)
    assert table.schema.types == [pa.string(), pa.int64()]
    assert table["code"][-1].as_py() == "01569"
