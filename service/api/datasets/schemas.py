"""The bodies of `/v1/datasets`."""

from datetime import datetime
from typing import Annotated

from fastapi import Path
from pydantic import BaseModel, ConfigDict, Field

from service.api.datasets.uploading import MEDIA_TYPES
from tfbbb.base.types import JsonObject
from tfbbb.tables.format import FORMATS

_EXAMPLE_ID = "5f1d7e2a9c3b4d6e8f012345"

DatasetId = Annotated[
    str,
    Path(
        description="Id of a dataset; `GET /v1/datasets` lists the ids.",
        examples=[_EXAMPLE_ID],
    ),
]


class DatasetSummary(BaseModel):
    """An uploaded table in the list of datasets."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    name: str = Field(description="Name of the uploaded file.")
    sha256: str = Field(description="SHA-256 of the uploaded bytes.")
    format: str = Field(description=f"One of `{'`, `'.join(FORMATS)}`.")
    num_bytes: int
    num_rows: int
    created_at: datetime


class Dataset(DatasetSummary):
    """An uploaded table."""

    columns: list[JsonObject] = Field(
        description="What a job takes each column for, with statistics of its values, "
        'as in the section "The columns of a dataset" of `docs/service.md`.'
    )
    problems: list[str] = Field(
        description="What the whole table needs before training, and how it was read.",
        examples=[["The table has 7 rows; at least 10 are needed."]],
    )


class DatasetPage(BaseModel):
    """Datasets, newest first."""

    datasets: list[DatasetSummary]
    next_cursor: str | None = Field(
        description="Send as `cursor` to get the next page; `null` on the last page."
    )


_BINARY = {"schema": {"type": "string", "format": "binary"}}
UPLOAD_BODY: JsonObject = {
    "required": True,
    "content": {
        **dict.fromkeys(MEDIA_TYPES, _BINARY),
        "text/csv": {**_BINARY, "example": "age,score\n36,1.5\n41,2.5\n"},
    },
}
