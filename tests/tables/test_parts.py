import pyarrow as pa
import pyarrow.parquet
import pytest

from tfbbb.tables import TableError
from tfbbb.tables.format import part_path
from tfbbb.tables.scan import TableScan


def scan_of(directory, *texts, **options):
    for number, text in enumerate(texts, start=1):
        part_path(directory, number, "csv").write_text(text)
    return TableScan(directory, format="parts", **options)


def table_of(scan):
    return pa.Table.from_batches(scan.batches(), scan.schema)


def test_rows_of_files_follow_one_another(tmp_path):
    scan = scan_of(tmp_path, "a,b\n1,x\n2,y\n", "b,a\nz,3\n")
    assert table_of(scan).to_pydict() == {"a": [1, 2, 3], "b": ["x", "y", "z"]}
    assert (scan.num_rows, scan.part_rows) == (3, (2, 1))
    assert scan.header() == ["a", "b"]


def test_files_of_other_formats_are_parts(tmp_path):
    table = pa.table({"a": [1.5], "b": ["x"]})
    pa.parquet.write_table(table, part_path(tmp_path, 1, "parquet"))
    part_path(tmp_path, 2, "jsonl").write_text('{"a": 2, "b": "y"}\n')
    scan = TableScan(tmp_path, format="parts")
    assert table_of(scan).to_pydict() == {"a": [1.5, 2.0], "b": ["x", "y"]}


@pytest.mark.parametrize(
    ("first", "second", "together"),
    [
        ("1", "2.5", [1.0, 2.5]),
        ("2.5", "1", [2.5, 1.0]),
        ("NA", "2.5", [None, 2.5]),
        ("x", "7", ["x", "7"]),
        ("2020-01-01", "NA", ["2020-01-01", None]),
    ],
)
def test_type_of_a_column_fits_all_files(tmp_path, first, second, together):
    scan = scan_of(tmp_path, f"a,b\n{first},0\n", f"a,b\n{second},0\n")
    found = table_of(scan)["a"].to_pylist()
    assert [
        v if v is None or v == w else str(v)
        for v, w in zip(found, together, strict=True)
    ] == (together)


def test_text_columns_are_those_of_every_file(tmp_path):
    scan = scan_of(tmp_path, "a\n007\n", "a\n008\n", text_columns=("a",))
    assert table_of(scan)["a"].to_pylist() == ["007", "008"]


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ('a,b\n1,"x\ny"\n\nold,z\n', r"00002.csv, line 5: the column 'a' has values of "
         r"type number in .*00001.csv, but of type text.*Received: 'old'"),
        ("a\n1\n", r"00002.csv, line 1: .* has no column 'b'. Received: 'a'"),
        ("a,b,c\n1,2,3\n", r"00002.csv, line 1: .* has no column 'c'; it has 'a', 'b'"),
        ("a,b\n", r"00002.csv has a header but no rows"),
        ("a,b\n1,2\n3,4,5\n", r"00002.csv: line 3 has 3 cells"),
    ],
    ids=str,
)  # fmt: skip
def test_files_of_other_columns_are_refused(tmp_path, second, message):
    with pytest.raises(TableError, match=message):
        _ = scan_of(tmp_path, "a,b\n1,x\n", second).schema


def test_directory_without_files_is_refused(tmp_path):
    with pytest.raises(TableError, match="has no files"):
        TableScan(tmp_path, format="parts")
