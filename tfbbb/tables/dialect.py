"""How a CSV file writes its table: encoding, delimiter, decimal mark and header."""

from dataclasses import dataclass
from typing import Literal

from tfbbb.tables.decimal_mark import DecimalMark
from tfbbb.tables.text_encoding import NAMES, Encoding

Delimiter = Literal[",", ";", "\t", "|"]

DELIMITERS: dict[Delimiter, str] = {
    ",": "commas",
    ";": "semicolons",
    "\t": "tabs",
    "|": "vertical bars",
}


@dataclass(frozen=True)
class Dialect:
    r"""How a CSV file writes its table.

    Attributes:
        encoding: `"utf-8"`, `"utf-16"` or `"cp1252"` (Windows-1252, of which the
            printable characters of Latin-1 are a part).
        delimiter: What separates the cells of a row: `","`, `";"`, `"\t"` or `"|"`.
        decimal_mark: `"."` or `","`.
        header_line: The number of the line with the names of the columns, from 1. The
            lines above it are blank, comments or titles.
        doubts: Sentences about what the file does not decide.

    Example:
    >>> print(Dialect("cp1252", ";", ",").describe())
    Windows-1252 (Western European) text, separated by semicolons, with decimal commas.
    """

    encoding: Encoding = "utf-8"
    delimiter: Delimiter = ","
    decimal_mark: DecimalMark = "."
    header_line: int = 1
    doubts: tuple[str, ...] = ()

    @property
    def is_plain(self) -> bool:
        """Whether the file is UTF-8 text with commas that begins with its header."""
        return self == Dialect()

    def describe(self) -> str:
        """Returns a sentence about the file, and one for each doubt."""
        parts = [
            f"{NAMES[self.encoding]} text",
            f"separated by {DELIMITERS[self.delimiter]}",
        ]
        if self.decimal_mark == ",":
            parts.append("with decimal commas")
        if self.header_line > 1:
            parts.append(f"with the names of the columns in line {self.header_line}")
        return " ".join([", ".join(parts) + ".", *self.doubts])
