"""What a CSV file does not state is found, checked against all rows, and said."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tables.files import SAME_FILE, written
from tfbbb.tables import TableError, TableScan, csv_file, read_table
from tfbbb.tables.column import infer_column
from tfbbb.tables.dialect import Dialect
from tfbbb.tables.scan import read_cells

PLAIN = Dialect()
SEMICOLONS = Dialect(delimiter=";", decimal_mark=",")


def read(path, **options):
    """The dialect and the columns of a file."""
    return TableScan(path).dialect, read_table(path, **options).to_pydict()


@pytest.mark.parametrize(
    ("content", "dialect", "columns"),
    [
        ("a,b\n1.5,x\n", PLAIN, {"a": [1.5], "b": ["x"]}),
        ("a;b\n1,5;x\n2;y\n", SEMICOLONS, {"a": [1.5, 2], "b": ["x", "y"]}),
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
        ('a;b\r"1";"2"\r', Dialect(delimiter=";"), {"a": [1], "b": [2]}),
        ("sep=;\na;b\n1;2\n", Dialect("utf-8", ";", ".", 2), {"a": [1], "b": [2]}),
        ("\n\na,b\n1,2\n", Dialect(header_line=3), {"a": [1], "b": [2]}),
        ("Sales\n\na,b\n1,2\n", Dialect(header_line=3), {"a": [1], "b": [2]}),
        ("Sales\na;b\n1;2,5\n", Dialect("utf-8", ";", ",", 2), {"a": [1], "b": [2.5]}),
        ('# "x\n#\r\na;b\n1;2\n', Dialect("utf-8", ";", ".", 3), {"a": [1], "b": [2]}),
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
        ('a,b\n"1,5",2\n', {"a": ["1,5"], "b": [2]}),
    ],
)
def test_what_commas_separate_is_read_with_commas(tmp_path, content, columns):
    dialect, found = read(written(tmp_path, content))
    assert found == columns
    assert (dialect.delimiter, dialect.header_line) == (",", 1)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            "a;b;c\n1;2\n3,5;4;5\n",
            "UTF-8 text, separated by semicolons, with decimal commas. Line 2: fewer "
            "cells than the header, so those at the end are missing values.",
        ),
        (
            "Towns\n\na|b\n'x|y'|1|\n'z'|2|\n",
            "UTF-8 text, separated by vertical bars, with single quotes around cells, "
            "with the names of the columns in line 3. Line 4 and 1 more: empty cells "
            "beyond the last column are left out.",
        ),
    ],
)
def test_what_was_found_is_said_in_sentences(tmp_path, content, said):
    notes = []
    read_table(written(tmp_path, content), notify=notes.append)
    assert notes == [said]


def test_the_suffix_decides_between_two_possible_delimiters(tmp_path):
    content = "last, first\tage\nx, y\t3\n"
    by_commas, columns = read(written(tmp_path, content))
    assert columns == {"last": ["x"], " first\tage": [" y\t3"]}
    assert "could also be separated by tabs" in by_commas.describe()
    by_tabs, columns = read(written(tmp_path, content, "table.tsv"))
    assert columns == {"last, first": ["x, y"], "age": [3]}
    assert "could also be separated by commas" in by_tabs.describe()


@pytest.mark.parametrize(
    ("content", "columns"),
    [
        ("5.1,3.5\n4.9,3\n", [[5.1, 4.9], [3.5, 3]]),
        ("5.1,setosa\n4.9,setosa\n", [[5.1, 4.9], ["setosa", "setosa"]]),
        ("A-17,7\nA-18,9\nA-20,3\n", [["A-17", "A-18", "A-20"], [7, 9, 3]]),
        ("?,7.5,x\n3,9,y\n4,3,x\n", [["?", "3", "4"], [7.5, 9, 3], ["x", "y", "x"]]),
    ],
)
def test_a_file_without_a_header_gets_names(tmp_path, content, columns):
    dialect, found = read(written(tmp_path, content))
    assert list(found) == [f"column {place + 1}" for place in range(len(found))]
    assert {len(cells) for cells in found.values()} == {content.count("\n")}
    assert columns is None or list(found.values()) == columns
    assert "add a line with the names of the columns" in dialect.describe()


@pytest.mark.parametrize(
    "names",
    [
        "place,1990,1991,1992",
        "place,2010,1990,2000",
        "0,1,2,3",
        "place,size,1,2",
        "place,age,sex,pay",
    ],
)
def test_names_that_are_years_or_counts_stay_names(tmp_path, names):
    rows = "Ada,4,2.5,9\nBob,1,7.5,3\nEve,6,0.5,8\n"
    if names.startswith("0"):
        rows = rows.replace("Ada", "8").replace("Bob", "2").replace("Eve", "5")
    dialect, columns = read(written(tmp_path, f"{names}\n{rows}"))
    assert list(columns) == names.split(",")
    assert len(columns[names.split(",")[0]]) == 3
    assert dialect.has_header


def test_numbers_as_names_are_said(tmp_path):
    dialect, _ = read(written(tmp_path, "x,1990,1991\na,5,7\n"))
    assert "The names of the columns, such as '1990', look like values" in (
        dialect.describe()
    )
    assert not dialect.is_plain


@pytest.mark.parametrize(
    ("content", "columns"),
    [
        ("a b\n1 2\n", {"a": [1], "b": [2]}),
        ("  a    b\n  1  2.5\n 10   -3  \n", {"a": [1, 10], "b": [2.5, -3]}),
        ('n  "s t"\n1.0\t"x  y"\n', {"n": [1], "s t": ["x  y"]}),
        (
            '"n" "w"\n"x y" 21 6\n"z" 22 7\n',
            {"row names": ["x y", "z"], "n": [21, 22], "w": [6, 7]},
        ),
    ],
)  # fmt: skip
def test_spaces_separate_cells_of_numbers(tmp_path, content, columns):
    assert read(written(tmp_path, content, "table.dat"))[1] == columns


@pytest.mark.parametrize(
    ("content", "columns"),
    [
        ("a,b\n'x, y',1\n'z',2\n", {"a": ["x, y", "z"], "b": [1, 2]}),
        ("'a','b'\n'x','1'\n'it''s','2'\n", {"a": ["x", "it's"], "b": [1, 2]}),
        ("'a'\t'b'\n1\t2\n3\t4\n", {"a": [1, 3], "b": [2, 4]}),
        ("'a' 'b'\n1 2\n3 4\n", {"a": [1, 3], "b": [2, 4]}),
        ("a,b\nit's,1\n'tis,2\n", {"a": ["it's", "'tis"], "b": [1, 2]}),
        ('a,b\n"x \\"y\\", z",1\n', {"a": ['x "y", z'], "b": [1]}),
        ("a,b\nx\\, y,1\nz,2\n", {"a": ["x, y", "z"], "b": [1, 2]}),
        ('a,b\n"C:\\x\\",1\n', {"a": ["C:\\x\\"], "b": [1]}),
    ],
)
def test_the_quotes_are_found(tmp_path, content, columns):
    assert read(written(tmp_path, content))[1] == columns


@pytest.mark.parametrize(
    ("second", "is_left_out"),
    [
        ("(name),(m2),(EUR)", True),
        ("string,float,integer", True),
        ("---,:---,---:", True),
        ("x,unknown,7", False),
        ("x,unknown,unknown", False),
        ("x,NA,NA", False),
    ],
)
def test_a_second_header_line_is_left_out(tmp_path, second, is_left_out):
    rows = "x,1,2\n,,\ny,3,4\n"
    dialect, columns = read(written(tmp_path, f"a,b,c\n{second}\n{rows}"))
    assert len(columns["b"]) == 3 + (not is_left_out)
    assert (dialect.units_line == 2) == is_left_out
    assert ("units" in dialect.describe()) == is_left_out


def test_a_second_header_line_names_columns_without_a_name(tmp_path):
    path = written(tmp_path, "a,size,\nname,m2,ft2\nx,1,2\ny,3,4\n")
    assert read(path)[1] == {"a": ["x", "y"], "size": [1, 3], "ft2": [2, 4]}


@pytest.mark.parametrize(
    ("codec", "encoding"),
    [
        ("utf-8", "utf-8"),
        ("utf-8-sig", "utf-8"),
        ("utf-16", "utf-16"),
        ("utf-16-be", "utf-16"),
        ("cp1252", "cp1252"),
    ],
)
def test_the_encoding_is_found(tmp_path, codec, encoding):
    content = "größe;straße\n1,5;Çà et là\n".encode(codec)
    if codec == "utf-16-be":
        content = b"\xfe\xff" + content
    dialect, columns = read(written(tmp_path, content))
    assert replace(dialect, remarks=()) == Dialect(encoding, ";", ",")
    assert ("where 'Çà et là' is read" in dialect.describe()) == (encoding == "cp1252")
    assert columns == {"größe": [1.5], "straße": ["Çà et là"]}


@pytest.mark.parametrize(
    ("codec", "words", "name"),
    [
        ("big5", ["台北", "高雄"], "Big5"),
        ("mac-roman", ["Orléans", "Nîmes"], "Mac Roman"),
        ("cp1250", ["Plzeň", "Žďár"], "Windows-1250"),
        ("iso8859-15", ["Orléans", "5 €"], "ISO 8859-15"),
        ("cp850", ["Orléans", "Nîmes"], "DOS 850"),
        ("cp1251", ["Москва", "Казань"], "Windows-1251"),
        ("cp1253", ["Αθήνα", "Πάτρα"], "Windows-1253"),
        ("cp932", ["東京", "大阪"], "Shift-JIS"),
        ("euc-jp", ["東京", "大阪", "名古屋", "札幌"], "EUC-JP"),
        ("cp949", ["서울", "부산"], "EUC-KR"),
        ("gb18030", ["北京", "上海"], "GB 18030"),
        ("utf-16-le", ["Orléans", "東京"], "UTF-16"),
        ("utf-16-be", ["Orléans", "東京"], "UTF-16"),
    ],
)
def test_other_encodings_are_found_and_said(tmp_path, codec, words, name):
    rows = "".join(f"{word},{i}.5\n" for i, word in enumerate(words * 3))
    path = written(tmp_path, f"place,size\n{rows}".encode(codec))
    dialect, columns = read(path)
    assert columns["place"] == words * 3
    assert dialect.describe().startswith(name)
    assert "save the file as UTF-8" in dialect.describe()


@pytest.mark.parametrize(
    ("words", "encoding", "sentence"),
    [
        (
            ["Málaga", "Cádiz", "León", "Coruña", "Logroño", "Almería"],
            "cp1252",
            "Windows-1250 (Central European) is possible, too, which has ",
        ),
        (
            ["İstanbul"],
            "cp1254",
            "chosen by its letters, as in 'Ýstanbul'. Windows-1254 (Turkish) is "
            "possible, too, which has 'İstanbul' where 'Ýstanbul' is read: if letters "
            "are wrong, save the file as UTF-8.",
        ),
    ],
)
def test_another_possible_encoding_is_said(tmp_path, words, encoding, sentence):
    rows = "".join(f"{word},1\n" for word in words)
    path = written(tmp_path, f"a,b\n{rows}".encode(encoding))
    assert sentence in TableScan(path).dialect.describe()


# Of the bytes beyond ASCII, the lacking one is the 21st or the third.
@pytest.mark.parametrize("repeated", [9, 0])
def test_bytes_that_windows_1252_lacks_end_no_reading(tmp_path, repeated):
    rows = b"Orl\xe9ans,1\nN\xeemes,2\nEvry\x81,3\n" + b"L\xe9on\xeb,4\n" * repeated
    dialect, columns = read(written(tmp_path, b"a,b\n" + rows))
    assert dialect.encoding == "cp1252"
    assert columns["a"][:3] == ["Orléans", "Nîmes", "Evry\x81"]
    assert "Line 4 is not wholly Windows-1252" in dialect.describe()
    assert "1 byte, " in dialect.describe()


def test_damaged_lines_of_utf_8_are_counted(tmp_path):
    rows = "café,1\n".encode() * 3 + b"caf\xe9,2\nna\xefve,3\n" + "ß,4\n".encode()
    dialect, columns = read(written(tmp_path, b"a,b\n" + rows))
    assert columns["a"] == ["café", "café", "café", "café", "naïve", "ß"]
    assert "2 lines, the first of them line 5, are not UTF-8" in dialect.describe()


@pytest.mark.parametrize(
    ("rows", "values"),
    [
        (["1,5;x"], [1.5]),
        (["1,5;x", "2.5;x"], ["1,5", "2.5"]),
        (["y;x", "1,5;x"], ["y", "1,5"]),
    ],
)
def test_late_rows_may_have_decimal_commas(tmp_path, monkeypatch, rows, values):
    monkeypatch.setattr(csv_file, "BLOCK_BYTES", 2**16)
    cells = ["1;x", "12;x"] * 8_000
    table = read_cells(written(tmp_path, "\n".join(["a;b", *cells, *rows])))
    found = infer_column(table, "a")[0].values(table)[-len(values) :]
    assert found.tolist() == values


@pytest.mark.parametrize("content", [";\n;", "\n \n \n", "\t \n\t"])
def test_a_file_without_names_and_values_is_empty(tmp_path, content):
    with pytest.raises(TableError, match="is empty"):
        read_table(written(tmp_path, content))


@settings(SAME_FILE, max_examples=80)
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
