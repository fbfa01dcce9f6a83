"""How a file writes its table: encoding, delimiter, decimal mark, header, sheet."""

from dataclasses import dataclass, field
from typing import Literal

from tfbbb.tables.column_names import list_names
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
    """How a CSV file writes its table, or where a workbook has it.

    A delimiter `" "` is any number of spaces and tabs. The lines above the one of the
    header (counted from 1) are blank, comments or titles; the line of units is below.
    An `escape` stands before a quote in a cell, row names before cells that the header
    names. `is_damaged` says that some bytes are not in the encoding, and `has_mark`
    that UTF-8 text begins with a byte order mark, without which it is as plain.
    """

    encoding: Encoding = "utf-8"
    delimiter: Delimiter = ","
    decimal_mark: DecimalMark = "."
    header_line: int = 1
    quote: str = '"'
    escape: str | None = None
    has_header: bool = True
    has_row_names: bool = False
    units_line: int | None = None
    is_damaged: bool = False
    remarks: tuple[str, ...] = ()
    has_mark: bool = field(default=False, compare=False)

    sheet: str = ""
    other_sheets: tuple[str, ...] = ()

    @property
    def is_plain(self) -> bool:
        """Whether UTF-8 text with commas, or a single sheet, begins with its header."""
        return self == Dialect(sheet=self.sheet)

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
        """Returns a sentence about the file, and the remarks."""
        parts = [f"Sheet {self.sheet!r}"]
        if not self.sheet:
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
            place = f"{'row' if self.sheet else 'line'} {self.header_line}"
            parts.append(f"with the names of the columns in {place}")
        text = ", ".join(parts)
        if len(self.other_sheets) == 1:
            text += f". The sheet {self.other_sheets[0]!r} is not read"
        elif self.other_sheets:
            text += f". The sheets {list_names(self.other_sheets)} are not read"
        return " ".join([f"{text}.", *self.remarks])
