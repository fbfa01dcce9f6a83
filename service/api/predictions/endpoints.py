"""`:predict` of models, versions and labels."""

from typing import Any

from fastapi import APIRouter, Request, Response

from service.api.http.body_limit import BodyLimit, limit_body
from service.api.http.errors import responses
from service.api.http.scoped_route import ScopedRoute
from service.api.keys.caller import may_predict
from service.api.labels import repository as labels
from service.api.labels.schemas import LabelName
from service.api.models.schemas import ModelName, VersionNumber
from service.api.predictions.schemas import PredictResponse, request_body
from service.api.state import ServiceState, State
from service.shared.errors import (
    InvalidRequest,
    RequestTooLarge,
    Unavailable,
    UnknownModel,
    UnsupportedMediaType,
)

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
    check_media_type(request)
    content = await state.models.predict(name, version, await request.body())
    return Response(content, media_type="application/json")


def check_media_type(request: Request) -> None:
    """Raises `UnsupportedMediaType` unless the body is declared as JSON."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip()
    if media_type.lower() not in _JSON_TYPES and not media_type.endswith("+json"):
        raise UnsupportedMediaType(
            "The body must be JSON, `Content-Type: application/json`. "
            f"Received: {media_type!r:.100}"
        )
