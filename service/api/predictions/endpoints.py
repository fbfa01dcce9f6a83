"""`:predict` of models, versions and labels."""

from typing import Any

from fastapi import APIRouter, Request, Response

from service.api.http.body_limit import BodyLimit, limit_body
from service.api.http.disconnect import unless_disconnected
from service.api.http.errors import responses
from service.api.http.scoped_route import ScopedRoute
from service.api.keys.caller import may_predict
from service.api.labels import repository as labels
from service.api.labels.schemas import LabelName
from service.api.models.schemas import ModelName, VersionNumber
from service.api.predictions.schemas import PredictResponse, request_body
from service.api.state import ServiceState, State
from service.shared.errors import (
    DeadlineExceeded,
    InvalidRequest,
    Overloaded,
    RequestTooLarge,
    Unavailable,
    UnknownModel,
    UnsupportedMediaType,
)
from service.shared.settings import Settings

router = APIRouter(
    prefix="/v1/models",
    tags=["predictions"],
    dependencies=[may_predict],
    route_class=ScopedRoute,
)

# `curl -d` declares a form by default, also in the examples of TensorFlow Serving.
_JSON_TYPES = ("", "application/json", "application/x-www-form-urlencoded")

_BODY_LIMIT = limit_body(BodyLimit(setting="max_body_bytes"))

_DOCUMENTATION: dict[str, Any] = {
    "response_model": PredictResponse,
    "response_description": "The predictive distributions.",
    "openapi_extra": {"requestBody": request_body()},
    "responses": responses(
        InvalidRequest,
        UnknownModel,
        RequestTooLarge,
        UnsupportedMediaType,
        Unavailable,
        Overloaded,
        DeadlineExceeded,
    ),
}


@router.post("/{name}:predict", summary="Predict with a model", **_DOCUMENTATION)
@_BODY_LIMIT
async def predict(state: State, request: Request, name: ModelName) -> Response:
    """Returns the predictive distribution of each row, by the version `latest`."""
    return await _predict(state, request, name, None)


@router.post(
    "/{name}/versions/{version}:predict",
    summary="Predict with a version",
    **_DOCUMENTATION,
)
@_BODY_LIMIT
async def predict_version(
    state: State, request: Request, name: ModelName, version: VersionNumber
) -> Response:
    """Returns the predictive distribution of each row, by the given version."""
    return await _predict(state, request, name, version)


@router.post(
    "/{name}/labels/{label}:predict", summary="Predict with a label", **_DOCUMENTATION
)
@_BODY_LIMIT
async def predict_label(
    state: State, request: Request, name: ModelName, label: LabelName
) -> Response:
    """Returns the predictive distribution of each row, by the version of a label."""
    version = await labels.resolve(state.database, name, label)
    return await _predict(state, request, name, version)


async def _predict(
    state: ServiceState, request: Request, name: str, version: int | None
) -> Response:
    _check_media_type(request)
    with state.models.admit(_declared_size(request, state.settings)):
        body = await request.body()
        arrived = request.scope["arrived"]
        predicting = state.models.predict(name, version, body, arrived)
        content = await unless_disconnected(request, predicting)
    return Response(content, media_type="application/json")


def _declared_size(request: Request, settings: Settings) -> int:
    """Returns the size of a body, or the largest size if the client does not say."""
    length = request.headers.get("content-length")
    return settings.max_body_bytes if length is None else int(length)


def _check_media_type(request: Request) -> None:
    media_type = request.headers.get("content-type", "").partition(";")[0].strip()
    if media_type.lower() not in _JSON_TYPES and not media_type.endswith("+json"):
        raise UnsupportedMediaType(
            "The body must be JSON, `Content-Type: application/json`. "
            f"Received: {media_type!r:.100}"
        )
