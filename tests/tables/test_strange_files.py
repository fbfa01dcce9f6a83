"""Files as people write them are read as they were meant, or a note says otherwise."""

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.tables.files import SAME_FILE, written
from tfbbb.tables import TableError, TableScan, read_table

NAMES = ["place", "size", "price"]
WORDS = {
    "utf-8": ["north", "Größe", "東京", "São Paulo"],
    "utf-8-sig": ["north", "Größe", "東京", "São Paulo"],
    "utf-16": ["north", "Größe", "東京", "São Paulo"],
    "utf-16-le": ["north", "Größe", "東京", "São Paulo"],
    "cp1252": ["Orléans", "Nîmes", "Besançon", "Évreux"],
    "mac-roman": ["Orléans", "Nîmes", "Besançon", "Évreux"],
    "cp1250": ["Plzeň", "Žďár", "Děčín", "Ústí"],
    "cp1251": ["Москва", "Казань", "Самара", "Пермь"],
    "big5": ["台北", "高雄", "台中", "台南"],
    "cp932": ["東京", "大阪", "京都", "札幌"],
}
TITLES = ["", "Report of the town\n\n", "# made by the station\n# in 2024\n"]
BELOW = [
    *("", "\n", "\nSource: Office of Examples\n", "# end\n", "(12 rows)\n"),
    "* provisional figures, of 2024\n\nLast updated: today\n",
]
INSIDE = ["", "# sensor replaced\n", "\n", "header"]
MARKS = ["", "NA", "n/a"]


@st.composite
def files(draw):
    """The content of a file in some encoding, and the rows that it holds."""
    encoding = draw(st.sampled_from(sorted(WORDS)))
    delimiter = draw(st.sampled_from(",;\t| "))
    quote = draw(st.sampled_from("\"'"))
    ragged = draw(st.sampled_from(["", "trailing", "short", "row names"]))
    # Between spaces, the number of cells is what shows a table.
    assume(not (delimiter == " " and ragged == "short"))
    # Short rows above all do not show how many columns a file without a header has.
    has_header = ragged == "short" or (
        ragged in ("", "trailing") and draw(st.booleans())
    )
    mark = draw(st.sampled_from(".,")) if delimiter != "," else "."
    missing = draw(st.sampled_from(MARKS[1:] if delimiter == " " else MARKS))
    words = st.sampled_from(WORDS[encoding])
    numbers = st.integers(-9999, 9999).map(lambda number: number / 8) | st.none()
    rows = draw(st.lists(st.tuples(words, numbers, numbers), min_size=12, max_size=16))
    header = delimiter.join(NAMES)

    def write(cells, place):
        texts = [
            missing if cell is None else str(cell).replace(".", mark) for cell in cells
        ]
        texts[0] = f"{quote}{texts[0]}{quote}"
        if ragged == "short" and cells[-1] is None:
            del texts[-1]
        if ragged == "row names":
            texts.insert(0, f'"r{place}"' if quote == '"' else f"'r{place}'")
        return delimiter.join(texts) + delimiter * (ragged == "trailing")

    lines = [write(cells, place) + "\n" for place, cells in enumerate(rows)]
    inside = draw(st.sampled_from(INSIDE[:-1] if not has_header else INSIDE))
    lines.insert(
        draw(st.integers(1, 11)), header + "\n" if inside == "header" else inside
    )
    has_names = has_header or ragged == "row names"
    title = draw(st.sampled_from(TITLES)) if has_names else ""
    text = title + (header + "\n" if has_names else "") + "".join(lines)
    text += draw(st.sampled_from(BELOW))
    line_end = draw(st.sampled_from(["\n", "\r\n"]))
    return encoding, text.replace("\n", line_end).encode(encoding), rows


@settings(SAME_FILE, max_examples=60)
@given(file=files(), suffix=st.sampled_from(["csv", "txt", "data", "csv.gz"]))
def test_strange_files_are_read_as_meant_or_a_note_says(tmp_path, file, suffix):
    _encoding, content, rows = file
    assume(all(any(row[place] is not None for row in rows[:5]) for place in (1, 2)))
    path = written(tmp_path, content, f"table.{suffix}")
    said = []
    try:
        table = read_table(path, notify=said.append)
    except TableError:
        return
    columns = [column.to_pylist() for column in table.columns[-3:]]
    expected = [list(cells) for cells in zip(*rows, strict=True)]
    if columns != expected:
        told = (
            "does not state its encoding",
            "have no name",
            "has no name",
            "left out",
        )
        assert any(words in said[0] for words in told)
    scan = TableScan(path)
    assert [row for batch in scan.batches() for row in batch.to_pylist()] == (
        table.to_pylist()
    )
