"""`/feedback` of models, versions and labels."""

import asyncio

from fastapi import Request, Response

from service.api.feedback import repository
from service.api.feedback.schemas import FEEDBACK_BODY, FeedbackAnswer, VersionFeedback
from service.api.http.requests import add_to_log
from service.api.http.routes import scoped_router
from service.api.keys.keyring import may_predict
from service.api.models.schemas import ModelName, VersionNumber
from service.api.predictions.answering import (
    check_media_type,
    declared_size,
    unless_disconnected,
)
from service.api.predictions.routes import add_routes
from service.api.state import ServiceState, State
from service.predicting.codecs.codec import JSON
from tfbbb.base.types import JsonObject

router = scoped_router("/v1/models", "feedback", may_predict)


@router.get(
    "/{name}/versions/{version}/feedback",
    summary="Describe how a version predicted what came true",
)
async def get_feedback(
    state: State, name: ModelName, version: VersionNumber
) -> VersionFeedback:
    """Returns running figures beside the held-out ones, and drift."""
    status = await state.models.version(name, version)
    held_out = {} if status.description is None else status.description.metrics
    row = await asyncio.to_thread(repository.find, state.database, name, version)
    found: JsonObject = {"model_name": name, "model_version": str(version)}
    if row is not None:
        found |= {
            "num_rows": row.num_rows,
            "started_at": row.started_at,
            "updated_at": row.updated_at,
            "drift": row.drift,
            "figures": {
                figure: {
                    "mean": mean,
                    "standard_error": error,
                    "held_out": held_out.get(figure),
                }
                for figure, (mean, error) in repository.running_figures(row).items()
            },
        }
    return VersionFeedback.model_validate(found)


async def _give_feedback(
    state: ServiceState, request: Request, name: str, version: int | None
) -> Response:
    check_media_type(request)
    with state.models.batcher.admitted(declared_size(request, state.settings)):
        scoring = state.models.score(name, version, await request.body())
        scored = await unless_disconnected(request, scoring)
    add_to_log(model=name, version=scored.version, rows=scored.num_rows)
    models = state.queue.store.models
    await asyncio.to_thread(repository.count, state.database, models, name, scored)
    answer = FeedbackAnswer(
        model_name=name, model_version=str(scored.version), num_rows=scored.num_rows
    )
    return Response(answer.model_dump_json(), media_type=JSON)


add_routes(
    router,
    "/feedback",
    "Tell what came true to",
    "Counts all rows of the request or, if it is refused, none. They are scored by",
    _give_feedback,
    response_model=FeedbackAnswer,
    response_description="The rows are counted.",
    openapi_extra={"requestBody": FEEDBACK_BODY},
)
