"""`/v2`: metadata and predictions by the Open Inference Protocol."""

import re
from typing import Annotated

from fastapi import Depends, Header, Request, Response

from service.api.http.routes import ModelName, limit_body, scoped_router
from service.api.keys.keyring import may_predict
from service.api.open_inference.schemas import (
    INFER_BODY,
    RAW_TENSORS,
    InferResponse,
    ModelMetadata,
    ModelReady,
    ServerMetadata,
    model_metadata,
)
from service.api.predictions.answering import answer, check_media_type
from service.api.state import State
from tfbbb.base.types import JsonObject
from tfbbb.version import __version__, commit

router = scoped_router("/v2", "open inference", may_predict)

# A version has no more digits.
_NUMBER = re.compile("[0-9]{1,19}")

# Bytes of the JSON part of the body, if raw tensors follow.
JsonSize = Annotated[
    int | None, Header(alias="Inference-Header-Content-Length", ge=0, le=2**53)
]


async def _find_version(state: State, request: Request, name: ModelName) -> int | None:
    """Returns the version in the path, by number or label; None for `latest`."""
    version: str | None = request.path_params.get("version")
    if version is None:
        return None
    if _NUMBER.fullmatch(version):
        return int(version)
    return await state.routes.find(name, version)


Version = Annotated[int | None, Depends(_find_version)]


@router.get("", name="v2", summary="Describe the service")
async def get_server() -> ServerMetadata:
    """Returns the name, the version and the extensions of the service."""
    return ServerMetadata(
        name="tfbbb",
        version=__version__,
        commit=commit(),
        extensions=["binary_tensor_data"],
    )


async def get_model(state: State, name: ModelName, version: Version) -> ModelMetadata:
    """Returns the inputs and outputs of the version, by default of `latest`."""
    metadata = await state.models.metadata(name, version)
    status = await state.models.model(name)
    versions = sorted((x.version for x in status.model_version_status), key=int)
    return model_metadata(metadata, versions)


async def is_ready(state: State, name: ModelName, version: Version) -> ModelReady:
    """Loads the version if it is not loaded; answers 503 if it cannot predict."""
    await state.models.metadata(name, version)
    return ModelReady(name=name, ready=True)


@limit_body("max_body_bytes")
async def infer(
    state: State,
    request: Request,
    name: ModelName,
    version: Version,
    json_size: JsonSize = None,
) -> Response:
    """Returns the predictive distribution of each row, by default by `latest`.

    If raw tensors follow the JSON of the body, the header gives the bytes of the JSON.
    """
    check_media_type(request, "application/octet-stream")
    return await answer(
        state,
        request,
        name,
        version,
        reads="open_inference",
        writes="open_inference",
        options={} if json_size is None else {"json_size": json_size},
    )


_VERSION: JsonObject = {
    "name": "version",
    "in": "path",
    "required": True,
    "schema": {"type": "string"},
    "examples": {"first": {"value": "1"}},
    "description": "Number of a version, or a label that is no number.",
}
for place, noun, parameters, suffix in (
    ("/models/{name}", "model", [], ""),
    ("/models/{name}/versions/{version}", "version", [_VERSION], "_version"),
):
    extra: JsonObject = {"parameters": parameters}
    router.add_api_route(
        place,
        get_model,
        name=f"v2_{noun}",
        summary=f"Inputs and outputs of a {noun}",
        openapi_extra=extra,
    )
    router.add_api_route(
        f"{place}/ready",
        is_ready,
        name=f"v2_{noun}_ready",
        summary=f"Whether a {noun} predicts",
        openapi_extra=extra,
    )
    router.add_api_route(
        f"{place}/infer",
        infer,
        methods=["POST"],
        name=f"v2_infer{suffix}",
        summary=f"Infer with a {noun}",
        openapi_extra={**extra, "requestBody": INFER_BODY},
        response_model=InferResponse,
        responses={200: {"content": RAW_TENSORS}},
    )
