"""What a CSV file does not state is found, checked against all rows, and said."""

import csv
import io

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tables.files import SAME_FILE, written
from tfbbb.tables import (
    TableError,
    TableScan,
    csv_file,
    read_table,
)
from tfbbb.tables.dialect import Dialect

PLAIN = Dialect()
SEMICOLONS = Dialect(delimiter=";", decimal_mark=",")


def read(path, **options):
    """The dialect and the columns of a file."""
    return TableScan(path, **options).dialect, read_table(path, **options).to_pydict()


@pytest.mark.parametrize(
    ("content", "dialect", "columns"),
    [
        ("a,b\n1.5,x\n", PLAIN, {"a": [1.5], "b": ["x"]}),
        ("a;b\n1,5;x\n2;y\n", SEMICOLONS, {"a": [1.5, 2], "b": ["x", "y"]}),
        ("a;b\n1,234;NA\n", SEMICOLONS, {"a": [1.234], "b": [None]}),
        ("a;b\n-,5;1e3\n", SEMICOLONS, {"a": [-0.5], "b": [1e3]}),
        ("a;b\n1.5;2\n", Dialect(delimiter=";"), {"a": [1.5], "b": [2]}),
        ("a;b\n1.234,5;2,5\n", SEMICOLONS, {"a": ["1.234,5"], "b": [2.5]}),
        # Both marks: a column of each, so neither is the mark of the file.
        ("a;b\n1,5;2.5\n", Dialect(delimiter=";"), {"a": ["1,5"], "b": [2.5]}),
        # Points that group digits are no decimal points.
        ("a;b\n1,5;2.500\n", SEMICOLONS, {"a": [1.5], "b": ["2.500"]}),
        # Commas that may group digits, in a file that is not separated by semicolons.
        ("a\tb\n1,234\t5\n", Dialect(delimiter="\t"), {"a": ["1,234"], "b": [5]}),
        ("a\tb\n1,5\tx, y\n", Dialect("utf-8", "\t", ","), {"a": [1.5], "b": ["x, y"]}),
        ("a|b\nx, y|1\n", Dialect(delimiter="|"), {"a": ["x, y"], "b": [1]}),
        ("sep=;\na;b\n1;2\n", Dialect("utf-8", ";", ".", 2), {"a": [1], "b": [2]}),
        ("sep=;\na\n1,5\n", Dialect("utf-8", ";", ",", 2), {"a": [1.5]}),
        ("\n\na,b\n1,2\n", Dialect(header_line=3), {"a": [1], "b": [2]}),
        ("Sales\n\na,b\n1,2\n", Dialect(header_line=3), {"a": [1], "b": [2]}),
        ("Sales,\na,b\n1,2\n", Dialect(header_line=2), {"a": [1], "b": [2]}),
        ('# "x\n#\r\na;b\n1;2\n', Dialect("utf-8", ";", ".", 3), {"a": [1], "b": [2]}),
        ("one\n1\n2\n", PLAIN, {"one": [1, 2]}),
    ],
)  # fmt: skip
def test_the_dialect_is_found(tmp_path, content, dialect, columns):
    assert read(written(tmp_path, content)) == (dialect, columns)


@pytest.mark.parametrize(
    ("content", "columns"),
    [
        ("a;b,c\n1;2,3\n", {"a;b": ["1;2"], "c": [3]}),
        ("# a,b\nx,1\n", {"# a": ["x"], "b": [1]}),
        (",a\n0,5\n1,6\n", {"a": [5, 6]}),
        ("5.1,3.5\n4.9,3\n", {"5.1": [4.9], "3.5": [3]}),
        ('a,b\n"1,5",2\n', {"a": ["1,5"], "b": [2]}),
    ],
)
def test_what_commas_separate_is_read_with_commas(tmp_path, content, columns):
    dialect, found = read(written(tmp_path, content))
    assert found == columns
    assert (dialect.delimiter, dialect.header_line) == (",", 1)


def test_the_suffix_decides_between_two_possible_delimiters(tmp_path):
    content = "last, first\tage\nx, y\t3\n"
    by_commas, columns = read(written(tmp_path, content))
    assert columns == {"last": ["x"], " first\tage": [" y\t3"]}
    assert "could also be separated by tabs" in by_commas.describe()
    by_tabs, columns = read(written(tmp_path, content, "table.tsv"))
    assert columns == {"last, first": ["x, y"], "age": [3]}
    assert "could also be separated by commas" in by_tabs.describe()


def test_a_header_that_looks_like_values_is_said(tmp_path):
    dialect, _ = read(written(tmp_path, "5.1,setosa\n4.9,setosa\n"))
    assert "The names of the columns, such as '5.1', look like values" in (
        dialect.describe()
    )
    assert not dialect.is_plain


def test_an_empty_column_after_the_last_name_is_left_out(tmp_path):
    path = written(tmp_path, "a;b;\n1;2,5;\n3;4,5;\n")
    assert read(path) == (SEMICOLONS, {"a": [1, 3], "b": [2.5, 4.5]})
    path = written(tmp_path, "a,b,\n1,2,\n3,4,\n" * 10 + "3,4,5\n")
    with pytest.raises(TableError, match="column 3 of 3 has no name"):
        read_table(path)


def test_values_that_are_repeated_in_place_of_names_are_said(tmp_path):
    path = written(tmp_path, "1,0,0\n1,2,3\n")
    with pytest.raises(TableError, match=r"'0' appears 2 times.* look like values"):
        read_table(path)


def test_cells_that_spaces_may_separate_are_said(tmp_path):
    dialect, columns = read(written(tmp_path, "a b\n1 2\n", "table.txt"))
    assert "if spaces separate the cells" in dialect.describe()
    assert columns == {"a b": ["1 2"]}


@pytest.mark.parametrize(
    ("codec", "encoding"),
    [
        ("utf-8", "utf-8"),
        ("utf-8-sig", "utf-8"),
        ("utf-16", "utf-16"),
        ("utf-16-be", "utf-16"),
        ("cp1252", "cp1252"),
        ("latin-1", "cp1252"),
    ],
)
def test_the_encoding_is_found(tmp_path, codec, encoding):
    content = "größe;straße\n1,5;Çà et là\n".encode(codec)
    if codec == "utf-16-be":
        content = b"\xfe\xff" + content
    dialect, columns = read(written(tmp_path, content))
    assert dialect == Dialect(encoding, ";", ",")
    assert columns == {"größe": [1.5], "straße": ["Çà et là"]}


@pytest.mark.parametrize("text_columns", [[], ["b"]])
def test_a_late_accent_changes_the_encoding(tmp_path, monkeypatch, text_columns):
    monkeypatch.setattr(csv_file, "BLOCK_BYTES", 2**16)
    content = "a,b\n" + "1,x\n" * 100_000 + "2.5,é\n"
    path = written(tmp_path, content.encode("latin-1"))
    dialect, columns = read(path, text_columns=text_columns)
    assert dialect.encoding == "cp1252"
    assert columns["a"][-2:] == [1, 2.5]
    assert columns["b"][-2:] == ["x", "é"]
    assert TableScan(path).head(2).to_pydict() == {"a": [1, 1], "b": ["x", "x"]}


@pytest.mark.parametrize(
    ("rows", "mark", "values"),
    [
        (["1,5;x"], ",", [1.5]),
        (["1,5;x", "2.5;x"], ".", ["1,5", "2.5"]),
        (["y;x", "1,5;x"], ".", ["y", "1,5"]),
    ],
)
def test_late_rows_decide_on_the_decimal_mark(
    tmp_path, monkeypatch, rows, mark, values
):
    monkeypatch.setattr(csv_file, "BLOCK_BYTES", 2**16)
    path = written(tmp_path, "a;b\n" + "1;x\n" * 50_000 + "\n".join(rows))
    dialect, columns = read(path)
    assert dialect.decimal_mark == mark
    assert columns["a"][-len(values) :] == values


def test_a_late_decimal_point_beside_commas_leaves_commas_as_text(tmp_path):
    path = written(tmp_path, "a;b\n" + "1,5;2\n" * 50_000 + "2,5;3.5\n")
    dialect, columns = read(path)
    assert dialect.decimal_mark == "."
    assert (columns["a"][-1], columns["b"][-1]) == ("2,5", 3.5)


def test_the_sentence_of_a_dialect_is_passed_to_notify(tmp_path):
    said = []
    read_table(written(tmp_path, "x\na;b\n1,5;2\n", "table.txt"), notify=said.append)
    assert said == [
        "UTF-8 text, separated by semicolons, with decimal commas, with the names of "
        "the columns in line 2."
    ]


NAMES = ["größe", "b"]
NUMBERS = st.floats(-1e6, 1e6).map(lambda number: round(number, 3))
# Printable characters of Windows-1252, delimiters and quotes among them.
WORDS = st.text(
    st.sampled_from("aZ0 äß€\"',;|\t\n") | st.characters(codec="ascii", categories="L"),
    max_size=8,
).map(lambda text: f"<{text}>")


@settings(SAME_FILE, max_examples=75)
@given(
    rows=st.lists(st.tuples(NUMBERS, WORDS), min_size=1, max_size=20),
    delimiter=st.sampled_from(",;\t|"),
    mark=st.sampled_from(".,"),
    codec=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "cp1252"]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
    line_end=st.sampled_from(["\n", "\r\n", "\r"]),
    suffix=st.sampled_from(["csv", "txt", "tsv", "csv.gz", "tsv.gz", "csv.zst"]),
)
def test_tables_survive_a_round_trip_in_every_dialect(
    tmp_path, rows, delimiter, mark, codec, quoting, line_end, suffix
):
    if delimiter == ",":
        mark = "."
    text = io.StringIO()
    writer = csv.writer(
        text, delimiter=delimiter, quoting=quoting, lineterminator=line_end
    )
    writer.writerow(NAMES)
    writer.writerows((repr(number).replace(".", mark), word) for number, word in rows)
    path = written(tmp_path, text.getvalue().encode(codec), f"table.{suffix}")
    table = read_table(path)
    numbers, words = table.column("größe"), table.column("b")
    dialect = TableScan(path).dialect
    assert dialect.delimiter == delimiter
    if pa.types.is_string(numbers.type):
        # All numbers look like 1,234: separated by tabs or bars, they may be thousands.
        assert delimiter in "\t|"
        assert dialect.decimal_mark == "."
        numbers = pa.array([float(text.as_py().replace(",", ".")) for text in numbers])
    assert numbers.cast(pa.float64()).to_pylist() == [number for number, _ in rows]
    assert words.to_pylist() == [word for _, word in rows]


@settings(SAME_FILE, max_examples=150)
@given(
    content=st.lists(
        st.sampled_from(
            [
                *(b"a", b"1", b"1,5", b"1.5", b",", b";", b"\t", b"|", b"\n", b"\r\n"),
                *(b'"', b"\xe9", "é".encode(), b"\xff\xfe", b"\0", b" ", b"#", b"NA"),
                b"sep=;\n",
            ]
        ),
        max_size=40,
    ).map(b"".join),
    suffix=st.sampled_from(["csv", "tsv", "txt.gz", "csv.zst", "jsonl", "xlsx", "ods"]),
)
def test_any_bytes_give_a_table_or_a_named_error(tmp_path, content, suffix):
    path = written(tmp_path, content, f"table.{suffix}")
    error = None
    try:
        scan = TableScan(path)
        table = read_table(path)
    except TableError as raised:
        error = raised
    if error is not None:
        assert "table." in str(error)
        return
    assert table.num_rows == scan.num_rows > 0
    assert scan.dialect is None or scan.dialect.describe().endswith(".")
