"""Generated files as people write them, with what a reader must make of them."""

import re
from dataclasses import dataclass

from hypothesis import assume
from hypothesis import strategies as st

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
    # The second byte of 功, 育, 表 and ポ is that of a backslash or a vertical bar.
    "big5": ["台北", "高雄", "功夫", "教育"],
    "cp932": ["東京", "大阪", "表町", "ポプラ"],
}
TITLES = ["", "Report of the town\n\n", "# made by the station\n# in 2024\n"]
BELOW = [
    "",
    "\n",
    "\nSource: Office of Examples\n",
    "# end\n",
    "(12 rows)\n",
    "* provisional figures, of 2024\n\nLast updated: today\n",
]
DELIMITERS = [",", ";", "\t", "|", " "]
# Whole numbers with groups of digits, or with a fraction of three digits.
_GROUPED = re.compile(r"-?[1-9]\d{0,2},\d{3}")


@dataclass(frozen=True)
class StrangeFile:
    """A file.

    Attributes:
        encoding: Its encoding.
        text: Its text.
        names: The names of the columns that a reader must find.
        rows: The cells that a reader must find.
        is_refused: Whether all rows lack cells, or most of them have only one.
    """

    encoding: str
    text: str
    names: list[str]
    rows: list[list]
    is_refused: bool


@st.composite
def strange_files(draw):
    """Draws a file."""
    encoding = draw(st.sampled_from(sorted(WORDS)))
    delimiter = draw(st.sampled_from(DELIMITERS))
    quote = draw(st.sampled_from("\"'"))
    ragged = draw(st.sampled_from(["", "trailing", "short", "row names"]))
    has_header = ragged == "row names" or draw(st.booleans())
    mark = draw(st.sampled_from(".,")) if delimiter != "," else "."
    missing = draw(st.sampled_from(["NA", "n/a"] + [""] * (delimiter != " ")))
    words = st.sampled_from(WORDS[encoding])
    numbers = st.integers(-9999, 9999).map(lambda number: number / 8) | st.none()
    rows = draw(st.lists(st.tuples(words, numbers, numbers), min_size=12, max_size=16))
    title = draw(st.sampled_from(TITLES)) if has_header else ""
    inside = draw(st.sampled_from(["", "# sensor replaced", "blank", "header"]))
    place = draw(st.integers(1, 11))
    below = draw(st.sampled_from(BELOW))
    assume(has_header or inside != "header")
    for column in (1, 2):
        # The first rows show that a column holds numbers, and with which mark.
        cells = [
            str(r[column]).replace(".", ",") for r in rows if r[column] is not None
        ]
        assume(any(row[column] is not None for row in rows[:5]))
        assume(not all(map(_GROUPED.fullmatch, cells)))

    header = delimiter.join(NAMES)
    lines = title.splitlines() + ([header] if has_header else [])
    widths = []
    for number, row in enumerate(rows):
        if number == place and inside:
            lines.append({"blank": "", "header": header}.get(inside, inside))
        cells = [f"{quote}{row[0]}{quote}"]
        cells += [missing if x is None else str(x).replace(".", mark) for x in row[1:]]
        while ragged == "short" and row[len(cells) - 1] is None:
            del cells[-1]
        widths.append(len(cells))
        if ragged == "row names":
            cells.insert(0, f"{quote}r{number}{quote}")
        lines.append(delimiter.join(cells) + delimiter * (ragged == "trailing"))
    num_short = sum(width < len(NAMES) for width in widths)
    # Between spaces, the number of cells is what shows a table.
    assume(delimiter != " " or 8 * num_short <= len(rows))
    # A file without a header has as many columns as its first row, and empty cells in
    # it may be columns without a name.
    assume(has_header or (widths[0] == len(NAMES) and (missing or None not in rows[0])))
    text = "\n".join([*lines, ""]) + below
    names = [*NAMES] if has_header else [f"column {i}" for i in (1, 2, 3)]
    cells = [list(row) for row in rows]
    if ragged == "row names":
        names.insert(0, "row names")
        cells = [[f"r{number}", *row] for number, row in enumerate(cells)]

    line_end = draw(st.sampled_from(["\n", "\r\n"]))
    return StrangeFile(
        encoding,
        text.replace("\n", line_end),
        names,
        cells,
        num_short == len(rows) or 2 * widths.count(1) > len(rows),
    )
