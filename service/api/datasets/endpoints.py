"""`/v1/datasets`: upload, list, inspect and delete tables."""

import asyncio
from datetime import datetime
from typing import Annotated, get_args

from fastapi import Path, Query, Request, Response
from pydantic import BaseModel, Field, computed_field
from sqlalchemy import select
from sqlalchemy.orm import defer

from service.api.datasets.store import find_dataset
from service.api.datasets.uploading import MEDIA_TYPES, upload
from service.api.http.routes import limit_body, scoped_router
from service.api.keys.keyring import Training
from service.api.pagination import NextCursor, PageLimit, page
from service.api.state import State
from service.shared.database import tables
from service.shared.files import dataset_name
from service.shared.sandbox import Limits, Preview, PreviewTask
from tfbbb.base.types import JsonObject
from tfbbb.tables.format import FORMATS
from tfbbb.training.expected_time import expected_seconds
from tfbbb.training.spec import JobSpec, TrainingSpec
from tfbbb.training.spec.training import Effort

router = scoped_router("/v1/datasets", "datasets")

DatasetId = Annotated[str, Path(description="`GET /v1/datasets` lists the ids.")]


class DatasetSummary(BaseModel, from_attributes=True):
    """An uploaded table in the list of datasets."""

    id: str
    name: str = Field(description="Name of the uploaded file.")
    sha256: str = Field(description="SHA-256 of the uploaded bytes.")
    format: str = Field(description=f"One of `{'`, `'.join(FORMATS)}`.")
    num_bytes: int
    num_rows: int
    created_at: datetime


# By effort, a job with the defaults.
_SPECS: dict[Effort, JobSpec] = {
    effort: JobSpec(target="target", training=TrainingSpec(effort=effort))
    for effort in get_args(Effort)
}


class Dataset(DatasetSummary):
    """An uploaded table."""

    columns: list[JsonObject] = Field(
        description='As in the section "The columns of a dataset" of `docs/service.md`.'
    )
    problems: list[str] = Field(
        description="What the table needs before training, and how it was read."
    )

    @computed_field(  # type: ignore[prop-decorator]
        description="Least and most seconds of a training of each `effort`."
    )
    @property
    def seconds_to_train(self) -> dict[str, list[float]]:
        """What a training by default would take."""
        return {
            effort: list(expected_seconds(self.num_rows, len(self.columns) - 1, spec))
            for effort, spec in _SPECS.items()
        }


class DatasetPage(BaseModel):
    """Datasets, newest first."""

    datasets: list[DatasetSummary]
    next_cursor: str | None


_BINARY = {"schema": {"type": "string", "format": "binary"}}
UPLOAD_BODY: JsonObject = {
    "required": True,
    "content": {
        **dict.fromkeys(MEDIA_TYPES, _BINARY),
        "text/csv": {**_BINARY, "example": "age,score\n36,1.5\n41,2.5\n"},
    },
}


@router.post(
    "",
    status_code=201,
    summary="Upload a table",
    openapi_extra={"requestBody": UPLOAD_BODY},
    responses={
        200: {"model": Dataset, "description": "The dataset that was uploaded before."}
    },
)
@limit_body(None)  # `received_file` counts the bytes.
async def upload_dataset(
    state: State,
    _: Training,
    request: Request,
    response: Response,
    name: str | None = None,
) -> Dataset:
    """Uploads a table: CSV, JSON lines, Parquet, Arrow IPC, Excel or OpenDocument.

    CSV may be compressed with gzip or zstd. The service finds its encoding, delimiter,
    decimal mark and header line, and says under `problems` what it found unless the
    file is UTF-8 text with commas. Of a workbook the first sheet with rows is read.

    Send the file as the whole body. The response describes the columns, and says why a
    job would leave some out. Lists show `name`, the name of the file.
    """
    dataset, is_new = await upload(state, request, name)
    response.status_code = 201 if is_new else 200
    return Dataset.model_validate(dataset)


@router.get("", summary="List datasets")
def list_datasets(
    state: State, _: Training, cursor: NextCursor = None, limit: PageLimit = 50
) -> DatasetPage:
    """Lists datasets, newest first; pass `next_cursor` to get the next page."""
    # The list shows neither columns nor problems.
    query = select(tables.Dataset).options(
        defer(tables.Dataset.columns), defer(tables.Dataset.problems)
    )
    with state.database.reading() as session:
        datasets, following = page(session, query, tables.Dataset, cursor, limit)
    return DatasetPage(
        datasets=[DatasetSummary.model_validate(dataset) for dataset in datasets],
        next_cursor=following,
    )


@router.get("/{id}", summary="Describe a dataset")
def get_dataset(state: State, _: Training, id: DatasetId) -> Dataset:
    """Describes a table and its columns."""
    return Dataset.model_validate(find_dataset(state.database, id))


@router.get("/{id}/preview", summary="First rows of a dataset")
async def get_preview(
    state: State,
    _: Training,
    id: DatasetId,
    rows: Annotated[int, Query(ge=1, le=1000)] = 20,
) -> Preview:
    """Returns the first rows: missing values are `null`, dates are text."""
    dataset = await asyncio.to_thread(find_dataset, state.database, id)
    name = dataset_name(dataset.sha256, dataset.format)
    task = PreviewTask(
        path=await asyncio.to_thread(state.queue.store.dataset, name),
        format=dataset.format,
        limits=Limits.from_settings(state.settings),
        rows=rows,
        columns=[column["name"] for column in dataset.columns],
        text_columns=[c["name"] for c in dataset.columns if c["type"] == "text"],
    )
    return Preview.model_validate(await state.sandbox.result("preview", task))


@router.delete("/{id}", status_code=204, summary="Delete a dataset")
def delete_dataset(state: State, _: Training, id: DatasetId) -> None:
    """Deletes a table that no unfinished job needs, but not its models."""
    state.datasets.delete(id)
