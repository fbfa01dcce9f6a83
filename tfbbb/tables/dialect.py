"""How a CSV file writes its table: encoding, delimiter, decimal mark and header."""

from dataclasses import dataclass, field
from typing import Literal

from tfbbb.tables.text_encoding import Encoding, name_encoding

Delimiter = Literal[",", ";", "\t", "|", " "]
DecimalMark = Literal[".", ","]

DELIMITERS: dict[Delimiter, str] = {
    ",": "commas",
    ";": "semicolons",
    "\t": "tabs",
    "|": "vertical bars",
    " ": "spaces",
}


@dataclass(frozen=True)
class Dialect:
    r"""How a CSV file writes its table.

    Attributes:
        encoding: `"utf-8"`, `"utf-16"`, `"cp1252"` (Windows-1252, of which the
            printable characters of Latin-1 are a part), or another codec of Python.
        delimiter: What separates the cells of a row: `","`, `";"`, `"\t"`, `"|"`, or
            `" "` for any number of spaces and tabs.
        decimal_mark: `"."` or `","`.
        header_line: The number of the line with which the table begins, from 1. The
            lines above it are blank, comments or titles.
        doubts: Sentences about what the file does not decide.
        quote: What is around cells that hold delimiters.
        escape: What is before a quote inside a cell, beside a second quote.
        has_header: Whether the table begins with the names of the columns.
        has_row_names: Whether the rows begin with a name that the header lacks.
        units_line: The number of a line below the header with units or further names,
            or None.
        is_damaged: Whether some bytes are not in the encoding.
        remarks: Sentences about what reading named, filled or left out.
        has_mark: Whether UTF-8 text begins with a byte order mark, without which it
            is as plain.
    """

    encoding: Encoding = "utf-8"
    delimiter: Delimiter = ","
    decimal_mark: DecimalMark = "."
    header_line: int = 1
    doubts: tuple[str, ...] = ()
    quote: str = '"'
    escape: str | None = None
    has_header: bool = True
    has_row_names: bool = False
    units_line: int | None = None
    is_damaged: bool = False
    remarks: tuple[str, ...] = ()
    has_mark: bool = field(default=False, compare=False)

    @property
    def is_plain(self) -> bool:
        """Whether the file is UTF-8 text with commas that begins with its header."""
        return self == Dialect()

    @property
    def suits_arrow(self) -> bool:
        """Whether Arrow's reader parses this dialect."""
        return (
            self.quote == '"'
            and self.escape is None
            and self.delimiter != " "
            and not self.has_row_names
            and self.units_line is None
            and not self.is_damaged
        )

    def describe(self) -> str:
        """Returns a sentence about the file, and one for each doubt and remark."""
        parts = [
            f"{name_encoding(self.encoding)} text",
            f"separated by {DELIMITERS[self.delimiter]}",
        ]
        if self.decimal_mark == ",":
            parts.append("with decimal commas")
        if self.quote != '"':
            parts.append("with single quotes around cells")
        if self.escape is not None:
            parts.append("with a backslash before quotes")
        if self.header_line > 1 and self.has_header:
            parts.append(f"with the names of the columns in line {self.header_line}")
        return " ".join([", ".join(parts) + ".", *self.doubts, *self.remarks])
