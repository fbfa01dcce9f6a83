import numpy as np
import pyarrow as pa
import pytest

from tests.small_disk import small_files
from tests.tables.workbooks import write_xlsx
from tfbbb.tables.scan import TableScan
from tfbbb.tables.stored_table import StoredTable

ROWS = 40


def table():
    words = pa.array(["x", "y", None, ""] * (ROWS // 4))
    return pa.table(
        {
            "a.b": np.arange(ROWS) / 3,
            "a": words,
            "levels": words.dictionary_encode(),
            "code": pa.array(range(ROWS), pa.int64()),
            "nothing": pa.array([None] * ROWS),
            "y": [float(number % 7) for number in range(ROWS)],
        }
    )


@pytest.fixture
def stored(tmp_path):
    batches = [
        # Each batch has its own dictionary.
        table().slice(start, 9).unify_dictionaries().combine_chunks().to_batches()[0]
        for start in range(0, ROWS, 9)
    ]
    return StoredTable.write(tmp_path / "table.arrow", batches)


def test_every_column_is_read_as_it_was_written(stored):
    assert (stored.num_rows, stored.column_names) == (ROWS, table().column_names)
    for name in table().column_names:
        assert stored.column(name).to_pylist() == table().column(name).to_pylist()


def test_rows_are_read_in_blocks_and_taken_in_any_order(stored):
    blocks = list(stored.tables())
    assert max(block.num_rows for block in blocks) == 9
    assert pa.concat_tables(blocks).column("code").to_pylist() == list(range(ROWS))
    rows = np.array([39, 0, 17, 17, 4])
    assert stored.take(rows).column("code").to_pylist() == rows.tolist()
    assert stored.take(rows[:0]).num_rows == 0


def test_an_interrupted_write_leaves_no_table(tmp_path):
    def broken():
        yield from table().to_batches()
        raise ConnectionError

    with pytest.raises(ConnectionError):
        StoredTable.write(tmp_path / "table.arrow", broken())
    assert not list(tmp_path.iterdir())


def test_a_file_is_stored_again_only_after_a_change(tmp_path):
    path, scratch = tmp_path / "table.csv", tmp_path / "scratch"
    path.write_text("a,b\n1,x\n2,y\n")
    stored = StoredTable.from_scan(TableScan(path), scratch)
    assert stored.column("a").to_pylist() == ["1", "2"]
    written = stored.path.stat().st_ino
    assert StoredTable.from_scan(TableScan(path), scratch).path.stat().st_ino == written
    path.write_text("a,b\n1,x\n2,y\n3,z\n")
    assert StoredTable.from_scan(TableScan(path), scratch).num_rows == 3


def test_each_sheet_of_a_workbook_is_stored(tmp_path):
    path = tmp_path / "book.xlsx"
    write_xlsx(path, {"one": [["a"], [1], [2]], "two": [["a"], [1000], [2000]]})
    stored = [
        StoredTable.from_scan(TableScan(path, sheet=sheet), tmp_path)
        for sheet in ("one", "two", None)
    ]
    read = [table.column("a").to_pylist() for table in stored]
    assert read == [["1", "2"], ["1000", "2000"], ["1", "2"]]


def test_a_full_disk_error_names_the_directory(tmp_path):
    source = tmp_path / "table.csv"
    source.write_text("a,b\n" + "1.25,x\n" * 1000)
    scan = TableScan(source)
    with small_files(100), pytest.raises(OSError, match="too large") as caught:
        StoredTable.from_scan(scan, tmp_path / "scratch")
    assert caught.value.filename == str(tmp_path / "scratch")
