"""The messages between the API and the process that reads tables.

Apart from the API's `Inspector`, so that the process starts without a web framework.
"""

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from service.shared.settings import Settings
from tfbbb.data.format import Format


class Limits(BaseModel):
    """Limits on reading a table.

    Attributes:
        rows: Most rows.
        columns: Most columns.
        decompressed_bytes: Most bytes of the values of all rows.
        memory_bytes: Most address space of the process that reads.
        seconds: Most time that it takes.
    """

    model_config = ConfigDict(frozen=True)

    rows: int
    columns: int
    decompressed_bytes: int
    memory_bytes: int
    seconds: float

    @classmethod
    def from_settings(cls, settings: Settings) -> "Limits":
        """The limits that the operator chose."""
        return cls(
            rows=settings.max_upload_rows,
            columns=settings.max_upload_columns,
            decompressed_bytes=settings.max_decompressed_bytes,
            memory_bytes=settings.inspection_memory_bytes,
            seconds=settings.inspection_seconds,
        )


class InspectionTask(BaseModel):
    """A request to the process that reads tables.

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
    """The columns and problems of a table; see `database.tables.Dataset`."""

    num_rows: int
    columns: list[dict[str, Any]]
    problems: list[dict[str, str | None]]


class Preview(BaseModel):
    """The first rows of a table."""

    columns: list[str]
    rows: list[list[Any]]


class InspectionResult(BaseModel):
    """An answer of the process: one of these."""

    inspection: Inspection | None = None
    preview: Preview | None = None
    error: str | None = None
