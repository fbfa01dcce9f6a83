"""`/v2`: metadata and predictions by the Open Inference Protocol."""

import re
from typing import Annotated

from fastapi import APIRouter, Header, Path, Request, Response

from service.api.http.errors import responses
from service.api.http.routes import ScopedRoute, limit_body
from service.api.keys.caller import may_predict
from service.api.models.schemas import ModelName
from service.api.open_inference.schemas import (
    InferResponse,
    ModelMetadata,
    ModelReady,
    ServerMetadata,
    infer_body,
    infer_response,
    model_metadata,
)
from service.api.predictions.answering import answer, media_type
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
from service.shared.json_types import JsonObject
from service.shared.model_messages import Metadata
from tfbbb.version import __version__, commit

router = APIRouter(
    prefix="/v2",
    tags=["open inference"],
    dependencies=[may_predict],
    route_class=ScopedRoute,
)

_MEDIA_TYPES = ("", "application/json", "application/octet-stream")
# A version has no more digits.
_NUMBER = re.compile("[0-9]{1,19}")

_ERRORS = (InvalidRequest, UnknownModel, Unavailable)
_INFER: JsonObject = {
    "response_model": InferResponse,
    "openapi_extra": {"requestBody": infer_body()},
    "responses": {
        200: infer_response(),
        **responses(
            *_ERRORS,
            RequestTooLarge,
            UnsupportedMediaType,
            Overloaded,
            DeadlineExceeded,
        ),
    },
}

NumberOrLabel = Annotated[
    str,
    Path(
        description="Number of a version, or a label that is no number.",
        openapi_examples={"first": {"value": "1"}},
    ),
]
JsonSize = Annotated[
    int | None,
    Header(
        alias="Inference-Header-Content-Length",
        ge=0,
        # JSON has no larger integers.
        le=2**53,
        description="Bytes of the JSON part of the body, if raw tensors follow.",
    ),
]


@router.get("", name="v2", summary="Describe the service", responses=responses())
async def get_server() -> ServerMetadata:
    """Returns the name, the version and the extensions of the service."""
    return ServerMetadata(
        name="tfbbb",
        version=__version__,
        commit=commit(),
        extensions=["binary_tensor_data"],
    )


@router.get(
    "/models/{name}",
    name="v2_model",
    summary="Inputs and outputs of a model",
    responses=responses(*_ERRORS),
)
async def get_model(state: State, name: ModelName) -> ModelMetadata:
    """Returns the inputs and outputs of the version `latest`."""
    return await _metadata(state, name, None)


@router.get(
    "/models/{name}/versions/{version}",
    name="v2_version",
    summary="Inputs and outputs of a version",
    responses=responses(*_ERRORS),
)
async def get_version(
    state: State, name: ModelName, version: NumberOrLabel
) -> ModelMetadata:
    """Returns the inputs and outputs of the version."""
    return await _metadata(state, name, await _number(state, name, version))


@router.get(
    "/models/{name}/ready",
    name="v2_model_ready",
    summary="Whether a model predicts",
    responses=responses(*_ERRORS),
)
async def is_model_ready(state: State, name: ModelName) -> ModelReady:
    """Answers 503 if the model has no version that predicts."""
    await state.models.metadata(name, None)
    return ModelReady(name=name, ready=True)


@router.get(
    "/models/{name}/versions/{version}/ready",
    name="v2_version_ready",
    summary="Whether a version predicts",
    responses=responses(*_ERRORS),
)
async def is_version_ready(
    state: State, name: ModelName, version: NumberOrLabel
) -> ModelReady:
    """Loads the version if it is not loaded; answers 503 if it cannot predict."""
    await state.models.metadata(name, await _number(state, name, version))
    return ModelReady(name=name, ready=True)


@router.post(
    "/models/{name}/infer", name="v2_infer", summary="Infer with a model", **_INFER
)
@limit_body("max_body_bytes")
async def infer(
    state: State, request: Request, name: ModelName, json_size: JsonSize = None
) -> Response:
    """Returns the predictive distribution of each row, by the version `latest`."""
    return await _infer(state, request, name, None, json_size)


@router.post(
    "/models/{name}/versions/{version}/infer",
    name="v2_infer_version",
    summary="Infer with a version",
    **_INFER,
)
@limit_body("max_body_bytes")
async def infer_version(
    state: State,
    request: Request,
    name: ModelName,
    version: NumberOrLabel,
    json_size: JsonSize = None,
) -> Response:
    """Returns the predictive distribution of each row, by the given version."""
    number = await _number(state, name, version)
    return await _infer(state, request, name, number, json_size)


async def _number(state: ServiceState, name: str, version: str) -> int | None:
    """Returns the number of a version or of a label's version; None for `latest`."""
    if _NUMBER.fullmatch(version):
        return int(version)
    return await state.routes.find(name, version)


async def _metadata(
    state: ServiceState, name: str, version: int | None
) -> ModelMetadata:
    content = await state.models.metadata(name, version)
    status = await state.models.model(name)
    versions = sorted((x.version for x in status.model_version_status), key=int)
    return model_metadata(Metadata.model_validate_json(content), versions)


async def _infer(
    state: ServiceState,
    request: Request,
    name: str,
    version: int | None,
    json_size: int | None,
) -> Response:
    if (given := media_type(request)) not in _MEDIA_TYPES:
        raise UnsupportedMediaType(
            "The body must be JSON, `Content-Type: application/json`, or JSON and raw "
            f"tensors, `application/octet-stream`. Received: {given!r:.100}"
        )
    return await answer(
        state,
        request,
        name,
        version,
        reads="open_inference",
        writes="open_inference",
        options={} if json_size is None else {"json_size": json_size},
    )
