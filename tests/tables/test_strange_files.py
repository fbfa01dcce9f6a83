"""Files as people write them are read as they were meant, or a note says otherwise."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tables.files import SAME_FILE, written
from tests.tables.strange_files import strange_files
from tfbbb.tables import TableError, TableScan, read_table
from tfbbb.tables.plain_values import typed_table

GUESSED = "The file does not state its encoding"


@settings(SAME_FILE, max_examples=60)
@given(file=strange_files(), suffix=st.sampled_from(["csv", "txt", "data", "csv.gz"]))
def test_strange_files_are_read_as_meant_or_a_note_says(tmp_path, file, suffix):
    path = written(tmp_path, file.text.encode(file.encoding), f"table.{suffix}")
    if file.is_refused:
        with pytest.raises(TableError, match=r"has . cells?, but the .* has 3 cells"):
            read_table(path)
        return
    table = read_table(path)
    assert table.column_names == file.names
    rows = [[*row.values()] for row in table.to_pylist()]
    assert [row[-2:] for row in rows] == [row[-2:] for row in file.rows]
    scan = TableScan(path)
    assert typed_table(pa.Table.from_batches(scan.batches())).equals(table)
    dialect = scan.dialect
    if rows != file.rows:
        # Letters are wrong in another encoding only, which the note says is guessed.
        assert dialect.encoding != file.encoding
        assert dialect.remarks[0].startswith(GUESSED)
