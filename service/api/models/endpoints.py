"""`/v1/models`: list and describe models, delete versions."""

import asyncio
from datetime import UTC, datetime
from typing import Annotated
from urllib.parse import quote

import orjson
from fastapi import Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from service.api.feedback import repository as feedback
from service.api.http.routes import ModelName, VersionNumber, scoped_router
from service.api.keys.keyring import Training, may_predict
from service.api.labels import repository as labels
from service.api.models.archive import zipped
from service.api.predictions.endpoints import add_routes
from service.api.state import ServiceState, State
from service.predicting.codecs.codec import JSON
from service.predicting.descriptions import (
    Metadata,
    ModelList,
    ModelStatus,
    ModelSummary,
)
from service.predicting.version import VersionState
from service.shared.database import Database
from service.shared.database.tables import ModelVersion
from service.shared.errors import UnknownReport, VersionInUse
from service.shared.versions import delete_version
from tfbbb.base.types import JsonObject
from tfbbb.export.manifest import MANIFEST_PATH, REPORT_FILE

router = scoped_router("/v1/models", "models", may_predict)


_BINARY = {"type": "string", "format": "binary"}


class Lineage(BaseModel):
    """The origin of a version."""

    digest: str = Field(description="SHA-256 of the manifest.")
    published_at: datetime
    job_id: str | None = Field(description="`null` if nothing was trained here.")
    source: JsonObject = Field(description="Dataset, spec, seed and code of training.")


class VersionDetails(ModelStatus):
    """The state, the description and the lineage of one version."""

    lineage: Lineage | None = Field(
        description="`null` if the version is incomplete or not recorded yet."
    )


@router.get("", summary="List the models")
async def list_models(
    state: State,
    search: Annotated[
        str,
        Query(
            max_length=200,
            description="A part of the name, of a target or of a label, in any case.",
        ),
    ] = "",
) -> ModelList:
    """Lists every model with its versions and labels, or those that a text finds."""
    models = await state.models.models()
    drifted = await asyncio.to_thread(feedback.find_drifted, state.database)
    for model in models.models:
        present = {version.version for version in model.versions}
        numbers = map(str, drifted[model.name])
        model.drifted = [number for number in numbers if number in present]
    by_name = {model.name: model for model in models.models}
    for row in await asyncio.to_thread(labels.list_labels, state.database):
        if (labelled := by_name.get(row.name)) is not None:
            labelled.labels[row.label] = str(row.number)
    models.models = [model for model in models.models if _has(model, search)]
    return models


def _has(model: ModelSummary, text: str) -> bool:
    """Whether a text is a part of the name, of a target or of a label."""
    targets = [model.target] if isinstance(model.target, str) else model.target or []
    parts = [model.name, *targets, *model.labels]
    return any(text.strip().casefold() in part.casefold() for part in parts)


@router.get("/{name}", summary="Describe a model")
async def get_model(state: State, name: ModelName) -> ModelStatus:
    """Returns the states of the versions, and describes `latest`."""
    status = await state.models.model(name)
    rows = await asyncio.to_thread(labels.list_labels, state.database, name)
    status.labels |= {row.label: str(row.number) for row in rows}
    present = {version.version for version in status.model_version_status}
    drifted = await asyncio.to_thread(feedback.find_drifted, state.database, name)
    status.drifted = [text for text in map(str, drifted[name]) if text in present]
    return status


@router.get("/{name}/versions/{version}", summary="Describe a version")
async def get_version(
    state: State, name: ModelName, version: VersionNumber
) -> VersionDetails:
    """Returns the state, the description and the lineage of the version."""
    status = await state.models.version(name, version)
    rows = await asyncio.to_thread(labels.list_labels, state.database, name)
    status.labels |= {r.label: str(version) for r in rows if r.number == version}
    lineage = await asyncio.to_thread(_find_lineage, state.database, name, version)
    return VersionDetails(**status.model_dump(), lineage=lineage)


def _find_lineage(database: Database, name: str, number: int) -> Lineage | None:
    """Returns the lineage of a version, or None if it is not recorded yet."""
    with database.reading() as session:
        row = session.get(ModelVersion, (name, number))
    if row is None:
        return None
    return Lineage(
        digest=row.digest,
        published_at=datetime.fromtimestamp(row.created_at, UTC),
        job_id=row.job_id,
        source=row.lineage,
    )


@router.get(
    "/{name}/versions/{version}/report",
    summary="Report of a version",
    response_model=JsonObject,
)
async def get_report(state: State, name: ModelName, version: VersionNumber) -> Response:
    """Returns what training measured; `docs/service.md` shows every field."""
    await state.models.version(name, version)  # Raises if it does not exist.
    directory = state.queue.store.models / name / str(version)
    file = (directory / MANIFEST_PATH).with_name(REPORT_FILE)
    try:
        content = await asyncio.to_thread(file.read_bytes)
    except FileNotFoundError:
        raise UnknownReport(
            "This version has no report: no table trained it. "
            f"Received: version {version} of the model {name!r}"
        ) from None
    headers = {
        "Cache-Control": "private, max-age=31536000, immutable",
        # Another key, or none, must not get it from the cache of a browser.
        "Vary": "Authorization, Cookie",
    }
    return Response(content, headers=headers, media_type=JSON)


@router.get(
    "/{name}/versions/{version}/files",
    summary="Download a version",
    response_class=Response,
    responses={200: {"content": {"application/zip": {"schema": _BINARY}}}},
)
async def get_files(
    state: State, _: Training, name: ModelName, version: VersionNumber
) -> Response:
    """Returns the SavedModel as a ZIP file, for `tfbbb.load` once it is unpacked."""
    await state.models.version(name, version)  # Raises if it does not exist.
    directory = await asyncio.to_thread(state.queue.store.version, name, version)
    shown = f"attachment; filename*=UTF-8''{quote(f'{name}-{version}.zip')}"
    return StreamingResponse(
        zipped(directory),
        media_type="application/zip",
        headers={"Content-Disposition": shown, "Cache-Control": "no-store"},
    )


@router.delete(
    "/{name}/versions/{version}", status_code=204, summary="Delete a version"
)
async def remove_version(
    state: State, _: Training, name: ModelName, version: VersionNumber
) -> None:
    """Deletes the files of an unused version; its number is never used again.

    Refused while it has a label, a job starts from it, or it is `latest`.
    """
    await state.models.version(name, version)  # Raises if it does not exist.
    _check_is_not_latest(await state.models.model(name), version)
    store = state.queue.store
    await asyncio.to_thread(delete_version, state.database, store, name, version)
    await state.models.rescan()


def _check_is_not_latest(status: ModelStatus, number: int) -> None:
    """Raises `VersionInUse` if a version is `latest`, or may become it at once."""
    good = (
        version.version
        for version in status.model_version_status
        if version.state is not VersionState.END
    )
    if str(number) == status.labels.get("latest", next(good, None)):
        raise VersionInUse(
            f"Version {number} of the model {status.name!r} is `latest`, which "
            "predicts by default; publish a newer version, or make another one "
            "`latest`, first."
        )


async def _answer_metadata(
    state: ServiceState, request: Request, name: str, version: int | None
) -> Response:
    found = await state.models.metadata(name, version)
    content = orjson.dumps(found.model_dump(mode="json"))
    return Response(content, media_type=JSON)


add_routes(
    router,
    "/metadata",
    "Signatures and manifest of",
    "Returns the signatures and the manifest of",
    _answer_metadata,
    method="GET",
    body=2**20,
    response_model=Metadata,
)
