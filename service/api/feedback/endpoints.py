"""`/feedback` of models, versions and labels."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Header, Request

from service.api.feedback import repository
from service.api.feedback.schemas import (
    FeedbackAnswer,
    VersionFeedback,
    request_body,
)
from service.api.http.body_limit import BodyLimit, limit_body
from service.api.http.disconnect import unless_disconnected
from service.api.http.errors import responses
from service.api.http.request_log import add_to_log
from service.api.http.scoped_route import ScopedRoute
from service.api.keys.caller import get_caller, may_predict
from service.api.labels.schemas import LabelName
from service.api.models.schemas import ModelName, VersionNumber
from service.api.predictions.answering import check_json, declared_size
from service.api.state import ServiceState, State
from service.shared.errors import (
    IdempotencyKeyReused,
    InvalidRequest,
    RequestTooLarge,
    Unavailable,
    UnknownModel,
    UnsupportedMediaType,
)
from service.shared.json_types import JsonObject

router = APIRouter(
    prefix="/v1/models",
    tags=["feedback"],
    dependencies=[may_predict],
    route_class=ScopedRoute,
)

IdempotencyKey = Annotated[
    str | None,
    Header(
        min_length=1,
        max_length=255,
        description="A unique name of this request. A repeated request with the same "
        "name and body is counted once.",
    ),
]

_BODY_LIMIT = limit_body(BodyLimit(setting="max_body_bytes"))

_DOCUMENTATION: JsonObject = {
    "response_description": "The rows are counted.",
    "openapi_extra": {"requestBody": request_body()},
    "responses": responses(
        InvalidRequest,
        UnknownModel,
        IdempotencyKeyReused,
        RequestTooLarge,
        UnsupportedMediaType,
        Unavailable,
    ),
}


@router.post("/{name}/feedback", summary="Tell what came true", **_DOCUMENTATION)
@_BODY_LIMIT
async def give_feedback(
    state: State,
    request: Request,
    name: ModelName,
    idempotency_key: IdempotencyKey = None,
) -> FeedbackAnswer:
    """Scores rows by `latest`.

    Counts all rows of the request or, if it is refused, none.
    """
    return await _count(state, request, name, None, idempotency_key)


@router.post(
    "/{name}/versions/{version}/feedback",
    summary="Tell what came true, to a version",
    **_DOCUMENTATION,
)
@_BODY_LIMIT
async def give_version_feedback(
    state: State,
    request: Request,
    name: ModelName,
    version: VersionNumber,
    idempotency_key: IdempotencyKey = None,
) -> FeedbackAnswer:
    """Scores rows by the given version."""
    return await _count(state, request, name, version, idempotency_key)


@router.post(
    "/{name}/labels/{label}/feedback",
    summary="Tell what came true, to the version of a label",
    **_DOCUMENTATION,
)
@_BODY_LIMIT
async def give_label_feedback(
    state: State,
    request: Request,
    name: ModelName,
    label: LabelName,
    idempotency_key: IdempotencyKey = None,
) -> FeedbackAnswer:
    """Scores rows by a label's version."""
    version = await state.routes.find(name, label)
    return await _count(state, request, name, version, idempotency_key)


@router.get(
    "/{name}/versions/{version}/feedback",
    summary="Describe how a version predicted what came true",
    responses=responses(InvalidRequest, UnknownModel, Unavailable),
)
async def get_feedback(
    state: State, name: ModelName, version: VersionNumber
) -> VersionFeedback:
    """Returns running figures beside the held-out ones, and drift."""
    status = await state.models.version(name, version)
    metrics = {} if status.description is None else status.description.metrics
    row = await asyncio.to_thread(repository.find, state.database, name, version)
    return VersionFeedback.from_row(name, version, row, metrics)


async def _count(
    state: ServiceState,
    request: Request,
    name: str,
    version: int | None,
    idempotency_key: str | None,
) -> FeedbackAnswer:
    check_json(request)
    with state.models.admitted(declared_size(request, state.settings)):
        body = await request.body()
        scoring = state.models.score(name, version, body)
        scored = await unless_disconnected(request, scoring)
    add_to_log(model=name, version=scored.version, rows=scored.num_rows)
    receipt = None
    if idempotency_key is not None:
        receipt = repository.Receipt.of(
            get_caller(request).key_id,
            idempotency_key,
            request.url.path,
            body,
        )

    def count() -> JsonObject:
        models = state.queue.store.models
        return repository.count(state.database, models, name, scored, receipt)

    return FeedbackAnswer.model_validate(await asyncio.to_thread(count))
