"""What is asked of the process that reads tables, and what it answers.

Apart from what asks, so that the process starts without a web framework.
"""

from pathlib import Path
from typing import Any

from pydantic import BaseModel

from service.shared.inspection_limits import Limits
from tfbbb.data.format import Format


class Task(BaseModel):
    """What the process is to do.

    Attributes:
        path: The file.
        format: Its format.
        limits: What reading it may take.
        preview_rows: Rows to show, or None to look at all of them.
        text_columns: For a preview, the columns that are text.
        columns: For a preview, the columns to show.
    """

    path: Path
    format: Format
    limits: Limits
    preview_rows: int | None = None
    text_columns: list[str] = []
    columns: list[str] = []


class Inspection(BaseModel):
    """What was found in a table; see `service.shared.database.tables.Dataset`."""

    num_rows: int
    columns: list[dict[str, Any]]
    problems: list[dict[str, str | None]]


class Preview(BaseModel):
    """The first rows of a table."""

    columns: list[str]
    rows: list[list[Any]]


class Outcome(BaseModel):
    """What the process answers: one of these."""

    inspection: Inspection | None = None
    preview: Preview | None = None
    error: str | None = None
