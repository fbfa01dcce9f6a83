import csv
import gzip
import io

import numpy as np
import pandas
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tables.files import SAME_FILE, written
from tfbbb.tables import TableError, TableScan, read_table

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
# Words that the reader does not take for a number, a date or a missing value.
TEXTS = st.text(
    st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=12
).map(lambda text: f"<{text}>")


@settings(SAME_FILE, max_examples=50)
@given(rows=st.lists(st.tuples(NUMBERS, TEXTS), min_size=1, max_size=20))
def test_csv_numbers_and_texts_survive_a_round_trip(tmp_path, rows):
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["number", "text"])
    writer.writerows((repr(number), word) for number, word in rows)
    table = read_table(written(tmp_path, text.getvalue()))
    assert table.column("number").cast(pa.float64()).to_pylist() == [r[0] for r in rows]
    assert table.column("text").to_pylist() == [r[1] for r in rows]


def test_a_compressed_csv_file_reads_like_the_plain_file(tmp_path):
    content = "a,b\n1,x\n2,y\n"
    plain = read_table(written(tmp_path, content))
    assert read_table(written(tmp_path, content, "table.CSV.gz")).equals(plain)


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
    assert note.startswith("The first column has no name and counts the rows")


def test_tables_without_an_index_cause_no_note(tmp_path):
    notes = []
    read_table(written(tmp_path, "a,b\n0,1\n1,2\n"), notify=notes.append)
    assert notes == []


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


def test_text_columns_keep_codes_as_text(tmp_path):
    path = written(tmp_path, "code,n\n007,1\n")
    table = read_table(path, text_columns=["code", "elsewhere"])
    assert table.to_pydict() == {"code": ["007"], "n": [1]}


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


@pytest.mark.parametrize("name", ["table.csv", "table.parquet"])
def test_a_missing_file_is_named(tmp_path, name):
    with pytest.raises(TableError, match=rf"{name} does not exist\."):
        read_table(tmp_path / name)


def test_a_directory_is_refused(tmp_path):
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
        (["0000001", "0000002"], pa.string()),
        (['"007"', '"12"'], pa.string()),
        # Numbers, dates and times.
        (["0", "0.5", "-01"], pa.float64()),
        (["0", "10", "-5"], pa.int64()),
        (["2020-01-02", "2020-03-04"], pa.date32()),
        (["01:30:00", "02:30:00"], pa.time32("s")),
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


def test_a_code_far_down_a_file_makes_its_column_text(tmp_path):
    path = tmp_path / "codes.csv"
    cells = [f"{place % 90_000 + 10_000}" for place in range(1_000_000)]
    path.write_text("code\n" + "\n".join([*cells, "01569"]) + "\n")
    codes = read_table(path)["code"]
    assert codes.type == pa.string()
    assert [codes[0].as_py(), codes[-1].as_py()] == ["10000", "01569"]


def test_a_cell_may_be_long(tmp_path):
    path = tmp_path / "table.csv"
    long = "x" * 2**18
    path.write_text(f"a\n{long}\ny\n")
    assert read_table(path).to_pydict() == {"a": [long, "y"]}


@pytest.mark.parametrize(
    "end", [",,\n" * 3, '"","",""\n' * 3, " , ,\n" * 3, ",,,,\n" * 3, ",\n" * 3]
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
    assert "The last 3 rows, without values, are left out" in scan.dialect.describe()


@pytest.mark.parametrize("text", ["a,b\n,\n,\n", 'a\n1\n""\n""\n'])
def test_rows_without_values_stay_in_tables_without_others(text, tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(text)
    assert read_table(path).num_rows == text.count("\n") - 1
