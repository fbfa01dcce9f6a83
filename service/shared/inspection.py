"""The messages between the API and the inspection process."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from service.shared.json_types import JsonList, JsonObject
from service.shared.settings import Settings
from tfbbb.tables.format import Format


class Limits(BaseModel):
    """Limits on reading a table.

    Attributes:
        rows: Most rows.
        columns: Most columns.
        decompressed_bytes: Most bytes of the values of all rows.
        memory_bytes: Most address space of the inspection process.
        seconds: Most processor time of the inspection process.
    """

    model_config = ConfigDict(frozen=True)

    rows: int
    columns: int
    decompressed_bytes: int
    memory_bytes: int
    seconds: float

    @classmethod
    def from_settings(cls, settings: Settings) -> "Limits":
        """Returns the limits of the settings."""
        return cls(
            rows=settings.max_upload_rows,
            columns=settings.max_upload_columns,
            decompressed_bytes=settings.max_decompressed_bytes,
            memory_bytes=settings.inspection_memory_bytes,
            seconds=settings.inspection_seconds,
        )


class InspectionTask(BaseModel):
    """A request to the inspection process.

    Attributes:
        path: Path of the table.
        format: Format of the table.
        limits: Limits on reading the table.
        preview_rows: Number of rows of a preview; None to inspect all rows.
        skip: For a preview, the number of rows before them.
        text_columns: For a preview, the columns to read as text.
        columns: For a preview, the columns to return.
    """

    path: Path
    format: Format
    limits: Limits
    preview_rows: int | None = None
    skip: int = 0
    text_columns: list[str] = []
    columns: list[str] = []


class Inspection(BaseModel):
    """The columns and problems of a table; see `database.tables.Dataset`."""

    num_rows: int
    columns: list[JsonObject]
    problems: list[dict[str, str | None]]


class Preview(BaseModel):
    """Some rows of a table."""

    columns: list[str]
    rows: list[JsonList]


class InspectionResult(BaseModel):
    """A response of the inspection process; exactly one field is set."""

    inspection: Inspection | None = None
    preview: Preview | None = None
    error: str | None = None
