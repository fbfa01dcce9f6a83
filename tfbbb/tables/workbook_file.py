"""Reads a sheet of an Excel workbook or an OpenDocument spreadsheet."""

import datetime
import re
import zipfile
from collections.abc import Iterator
from functools import cached_property
from itertools import compress
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from tfbbb.tables.column_names import fill_names, list_names
from tfbbb.tables.csv_file import TextFile
from tfbbb.tables.csv_rows import Row
from tfbbb.tables.dialect import Dialect
from tfbbb.tables.dialect_search import find_reading
from tfbbb.tables.header_search import Reading, describe_table
from tfbbb.tables.notations.missing_marks import MISSING_WORDS, NA
from tfbbb.tables.table_error import TableError
from tfbbb.tables.values import cell_text

if TYPE_CHECKING:
    from python_calamine import CalamineWorkbook

# A workbook is in memory as a whole.
MAX_BYTES = 2**29
MAX_CELLS = 2**24
_PIECE_BYTES = 2**20
# Rows that show whether there is a header.
_FIRST_ROWS = 1000
# The place of a cell, as in <c r="B7">. A place beyond XFD1048576 is invalid.
_PLACE = re.compile(rb"\sr\s*=\s*[\"']([A-Z]{1,3})([0-9]{1,7})[\"']")
_PLACE_BYTES = 32


class WorkbookFile(TextFile):
    """A sheet of a workbook as record batches of texts.

    Cells such as `NaN` are missing, as in CSV files, and so are cells with errors.
    """

    noun = "row"

    def __init__(self, path: Path, *, sheet: str | None = None) -> None:
        _import_calamine()
        super().__init__(path)
        self._wanted = sheet

    @property
    def found(self) -> Dialect:
        """Where the workbook has its table."""
        return self._table[0]

    @cached_property
    def given(self) -> list[str]:
        """The names in the sheet."""
        dialect, rows = self._table
        given = rows[0].cells
        if not dialect.has_header:
            return [""] * len(given)
        has_units = dialect.units_line is not None
        return fill_names(given, rows[1].cells) if has_units else given

    def read(self) -> Iterator[Row]:
        return iter(self._table[1])

    @cached_property
    def _table(self) -> tuple[Dialect, list[Row]]:
        """The dialect, and the rows from the header on that are not blank."""
        check_size(self.path)
        calamine = _import_calamine()
        try:
            with calamine.CalamineWorkbook.from_path(self.path) as workbook:
                names = workbook.sheet_names
                name, above, cells = self._read_sheet(workbook)
        except calamine.PasswordError:
            raise TableError(
                f"{self.path} is protected by a password; save it without one."
            ) from None
        except calamine.CalamineError as error:
            raise TableError(
                f"{self.path} cannot be read as a spreadsheet: {error}"
            ) from None
        used = [any(map(str.strip, column)) for column in zip(*cells, strict=True)]
        rows: list[Row] = []
        for number, row in enumerate(cells, start=above + 1):
            if any(map(str.strip, row)):
                follows_gap = bool(rows) and rows[-1].line < number - 1
                rows.append(Row(number, [*compress(row, used)], follows_gap))
        others = tuple(other for other in names if other != name)
        dialect, some = Dialect(sheet=name, other_sheets=others), rows[:_FIRST_ROWS]
        reading = find_reading(some, dialect) or Reading(dialect, some)
        return describe_table(reading), rows[some.index(reading.rows[0]) :]

    def _read_sheet(
        self, workbook: "CalamineWorkbook"
    ) -> tuple[str, int, list[list[str]]]:
        """Returns the name of the sheet, the number of blank rows above, and cells."""
        names = workbook.sheet_names
        if self._wanted is not None and self._wanted not in names:
            raise TableError(
                f"{self.path} has no sheet {self._wanted!r}; its sheets are "
                f"{list_names(names)}."
            )
        for name in names if self._wanted is None else [self._wanted]:
            sheet = workbook.get_sheet_by_name(name)
            if sheet.height * sheet.width > MAX_CELLS:
                raise _too_many_cells(self.path)
            cells = [[*map(_text, row)] for row in sheet.to_python()]
            if sheet.start and any(cell.strip() for row in cells for cell in row):
                return name, sheet.start[0], cells
        raise TableError(
            f"{self.path} is empty: none of its sheets {list_names(names)} has rows."
            if self._wanted is None
            else f"{self.path} has no rows in the sheet {self._wanted!r}."
        )


def check_size(path: Path) -> None:
    """Raises a `TableError` if a workbook would take too much memory."""
    try:
        with zipfile.ZipFile(path) as archive:
            files = [
                file
                for file in archive.infolist()
                if file.filename.lower().endswith((".xml", ".rels"))
            ]
            if sum(file.file_size for file in files) > MAX_BYTES:
                raise _too_large(path)
            left = MAX_BYTES
            for file in files:
                left -= _check_file(path, archive, file, left)
    except zipfile.BadZipFile as error:
        raise TableError(
            f"{path} cannot be read as a spreadsheet, whatever its suffix: {error}; "
            "give it the suffix of its content."
        ) from None
    except (NotImplementedError, RuntimeError) as error:
        raise TableError(f"{path} cannot be read as a spreadsheet: {error}") from None


def _check_file(
    path: Path, archive: zipfile.ZipFile, file: zipfile.ZipInfo, most: int
) -> int:
    """Checks the places of the cells in a file; returns its size."""
    # The archive may state a smaller size than that of the file.
    stated, file.file_size = file.file_size, most + 2 * _PIECE_BYTES
    rows = columns = size = 0
    rest = b""
    with archive.open(file) as content:
        while piece := content.read(_PIECE_BYTES):
            size += len(piece)
            if size > most:
                raise _too_large(path)
            for letters, digits in set(_PLACE.findall(rest + piece)):
                columns = max(columns, _column_number(letters))
                rows = max(rows, int(digits))
            rest = piece[-_PLACE_BYTES:]
            if rows * columns > MAX_CELLS:
                raise _too_many_cells(path)
    file.file_size = stated
    return size


def _column_number(letters: bytes) -> int:
    number = 0
    for letter in letters:
        number = 26 * number + letter - ord("A") + 1
    return number


def _too_large(path: Path) -> TableError:
    return TableError(
        f"{path} holds more than {MAX_BYTES} bytes of XML, which is too large for a "
        "spreadsheet; save the table as CSV or Parquet."
    )


def _too_many_cells(path: Path) -> TableError:
    return TableError(
        f"{path} has a sheet of more than {MAX_CELLS} cells, empty ones included; "
        "delete cells far from the table, or save the table as CSV or Parquet."
    )


def _import_calamine() -> ModuleType:
    try:
        import python_calamine
    except ModuleNotFoundError:
        raise TableError(
            "Reading .xlsx and .ods files needs python-calamine: "
            "pip install 'tfbbb[excel]', or save the table as CSV."
        ) from None
    return python_calamine


def _text(cell: object) -> str:
    """Writes a cell as a CSV file has it; a missing one is empty."""
    if isinstance(cell, str):
        word = cell.strip()
        return "" if word in MISSING_WORDS and word != NA else cell
    if isinstance(cell, datetime.timedelta):
        minutes, seconds = divmod(cell / datetime.timedelta(seconds=1), 60)
        hours, minutes = divmod(int(minutes), 60)
        return f"{hours:02d}:{minutes:02d}:{seconds:02.0f}"
    return cell_text(cell)
