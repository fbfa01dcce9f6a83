"""`/feedback` of models, versions and labels."""

import asyncio
from datetime import datetime

from fastapi import Request, Response
from pydantic import BaseModel, Field

from service.api.feedback import repository
from service.api.http.requests import add_to_log
from service.api.http.routes import ModelName, VersionNumber, scoped_router
from service.api.keys.keyring import may_predict
from service.api.predictions.answering import (
    check_media_type,
    declared_size,
    unless_disconnected,
)
from service.api.predictions.endpoints import add_routes
from service.api.predictions.schemas import Value
from service.api.state import ServiceState, State
from service.predicting.codecs.codec import JSON
from tfbbb.base.types import JsonObject

router = scoped_router("/v1/models", "feedback", may_predict)


class FeedbackRequest(BaseModel):
    """Rows (`instances`) or columns (`inputs`), as for `:predict`, with targets."""

    instances: list[list[Value] | dict[str, Value]] | None = None
    inputs: list[list[Value]] | dict[str, list[Value]] | None = None
    targets: list[Value | list[Value]] = Field(
        description="What came true for each row, in raw units or the name of a class."
    )


class FeedbackAnswer(BaseModel):
    """The rows that were counted, and the version that they scored."""

    model_name: str
    model_version: str
    num_rows: int


class RunningFigure(BaseModel):
    """The mean of a score over the rows of feedback."""

    mean: float
    standard_error: float | None = Field(
        description="Of the mean, if rows are independent; `null` for one row."
    )
    held_out: float | None = Field(
        description="The figure on the rows held out in training, if it is known."
    )


class Drift(BaseModel):
    """A sequential test of whether the rows still come like those held out.

    The martingale is 1 at first, and reaches the threshold with a probability of at
    most `false_alarm_rate`, ever, while rows do not drift.
    """

    martingale: float
    greatest: float
    threshold: float
    alarm: bool
    alarm_row: int | None = Field(description="The row that raised the alarm.")
    alarm_at: datetime | None
    false_alarm_rate: float
    reference_rows: int = Field(
        description="Held-out rows to compare with; if 0, earlier feedback is compared."
    )


class VersionFeedback(BaseModel):
    """How a version predicted the rows of which feedback came."""

    model_name: str
    model_version: str
    num_rows: int = 0
    started_at: datetime | None = None
    updated_at: datetime | None = None
    figures: dict[str, RunningFigure] = Field(
        {},
        description="`log_likelihood` in nats; `coverage_50`, `coverage_90` and "
        "`coverage_95`; of numbers `crps`, `rmse` and `mean_absolute_error`; of "
        "classes `accuracy` and `brier_score`.",
    )
    drift: Drift | None = Field(None, description="`null` before the first feedback.")


# A row of the demo model.
_ROW = {
    "instances": [[59, 2, 32.1, 101, 157, 93.2, 38, 4, 4.8598, 87]],
    "targets": [151],
}
FEEDBACK_BODY: JsonObject = {
    "required": True,
    "content": {
        "application/json": {
            "schema": {"$ref": "#/components/schemas/FeedbackRequest"},
            "examples": {"Rows": {"value": _ROW}},
        }
    },
}


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
    size = declared_size(request, state.settings)
    with state.models.batcher.admitted(size) as recount:
        body = await request.body()
        recount(len(body))
        scoring = state.models.score(name, version, body)
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
