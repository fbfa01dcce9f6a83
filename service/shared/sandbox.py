"""The tasks that the sandbox does for the API, and their results."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from service.shared.settings import Settings
from tfbbb.base.types import JsonList, JsonObject
from tfbbb.tables.format import Format

MOST_COLUMNS, MOST_DECOMPRESSED_BYTES = 4096, 64 * 2**30


class Limits(BaseModel):
    """Most rows, columns and bytes of a table; most memory and time of the sandbox."""

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
            columns=MOST_COLUMNS,
            decompressed_bytes=MOST_DECOMPRESSED_BYTES,
            memory_bytes=settings.inspection_memory_bytes,
            seconds=settings.inspection_seconds,
        )


class Task(BaseModel):
    """What to do with a file, which errors call `name`."""

    path: Path
    name: str = "The table"
    format: Format
    limits: Limits


class PreviewTask(Task):
    """Reads the first rows."""

    rows: int
    columns: list[str]
    text_columns: list[str]


class PredictTask(Task):
    """Writes the rows with the predictions of the version in a directory."""

    version: Path
    parameters: dict[str, str]
    max_work: int
    default_num_samples: int | None
    output: Path
    written: Format


class Inspection(BaseModel):
    """The columns of a table, and the problems of the whole table."""

    num_rows: int
    columns: list[JsonObject]
    problems: list[str]


class Preview(BaseModel):
    """Some rows of a table."""

    columns: list[str]
    rows: list[JsonList]


class PredictedRows(BaseModel):
    """Some rows of a predicted file, for people."""

    # Names of columns: those of the file, and those of the predictions.
    given: list[str]
    predicted: list[str]
    # Numbers of rows with the cells of both: the first, and the least to be trusted.
    first: list[JsonList]
    doubtful: list[JsonList]
    doubtful_by: str
    remarks: list[str] = []
