import io

import pyarrow as pa
import pytest

from tfbbb.data import TableError, read_table
from tfbbb.data.writing import write_csv, write_table

TABLE = pa.table(
    {
        "plain": pa.array([0.1, 2.5], pa.float32()),
        "a, b": ['quoted "text"', "two\nlines"],
        "whole": [1, None],
        "flag": [True, False],
    }
)


@pytest.mark.parametrize("name", ["table.csv", "table.parquet"])
def test_a_table_survives_a_round_trip(tmp_path, name):
    write_table(TABLE, tmp_path / name)
    table = read_table(tmp_path / name)
    assert table.column_names == TABLE.column_names
    assert table.drop_columns("plain").equals(TABLE.drop_columns("plain"))
    assert table["plain"].cast(pa.float32()).equals(TABLE["plain"])


def test_csv_has_the_shortest_digits_and_quotes_where_needed():
    file = io.BytesIO()
    write_csv(TABLE.select(["plain", "whole", "a, b"]).slice(0, 1), file)
    assert file.getvalue() == b'plain,whole,"a, b"\n0.1,1,"quoted ""text"""\n'
    assert not file.closed


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
        ("table.xlsx", r"must end in \.csv or \.parquet"),
        ("nowhere/table.csv", "no such directory"),
        ("folder.csv", "is a directory"),
    ],
)
def test_an_unwritable_path_is_named(tmp_path, path, message):
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(TableError, match=message):
        write_table(TABLE, tmp_path / path)
