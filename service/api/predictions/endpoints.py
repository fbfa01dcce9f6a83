"""`:predict` and `:predict-file` of models, versions and labels."""

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import APIRouter, Request, Response

from service.api.datasets.schemas import upload_body
from service.api.http.body_limit import BodyLimit, limit_body
from service.api.http.errors import responses
from service.api.http.scoped_route import PlainRoute, ScopedRoute
from service.api.keys.caller import may_predict
from service.api.labels.schemas import LabelName
from service.api.models.schemas import ModelName, VersionNumber
from service.api.predictions.answering import answer_table
from service.api.predictions.files import predict_file
from service.api.predictions.model_document import model_document
from service.api.predictions.schemas import (
    PredictResponse,
    file_parameters,
    file_response,
    table_body,
    table_parameters,
    table_response,
)
from service.api.state import ServiceState, State
from service.shared.errors import (
    DeadlineExceeded,
    InsufficientStorage,
    InvalidRequest,
    InvalidTable,
    NotAcceptable,
    Overloaded,
    RequestTooLarge,
    Unavailable,
    UnknownModel,
    UnsupportedMediaType,
    UploadTimeout,
)
from service.shared.json_types import JsonObject
from service.shared.model_messages import Metadata

Answer = Callable[[ServiceState, Request, str, int | None], Awaitable[Response]]

router = APIRouter(
    prefix="/v1/models",
    tags=["predictions"],
    dependencies=[may_predict],
    route_class=ScopedRoute,
)

_ERRORS = (
    InvalidRequest,
    UnknownModel,
    RequestTooLarge,
    UnsupportedMediaType,
    Unavailable,
    Overloaded,
    DeadlineExceeded,
)


_BODY = BodyLimit(setting="max_body_bytes")


def _add_routes(
    verb: str,
    returns: str,
    answer: Answer,
    *,
    body: BodyLimit | None = _BODY,
    **documentation: Any,
) -> None:
    """Adds the routes of a verb, of a model, of a version and of a label."""
    limit = limit_body(body)

    @limit
    async def by_latest(state: State, request: Request, name: ModelName) -> Response:
        return await answer(state, request, name, None)

    @limit
    async def by_version(
        state: State, request: Request, name: ModelName, version: VersionNumber
    ) -> Response:
        return await answer(state, request, name, version)

    @limit
    async def by_label(
        state: State, request: Request, name: ModelName, label: LabelName
    ) -> Response:
        version = await state.routes.find(name, label)
        return await answer(state, request, name, version)

    texts, by_number = PlainRoute, ScopedRoute
    number = "/{name}/versions/{version}"
    for path, kind, endpoint, suffix, noun, version in (
        ("/{name}", texts, by_latest, "", "model", "the version `latest`"),
        (number, by_number, by_version, "_version", "version", "a version"),
        (
            "/{name}/labels/{label}",
            texts,
            by_label,
            "_label",
            "label",
            "a label's version",
        ),
    ):
        router.add_api_route(
            f"{path}:{verb}",
            endpoint,
            route_class_override=kind,
            methods=["POST"],
            name=f"{verb.replace('-', '_')}{suffix}",
            summary=f"{verb.replace('-', ' a ').capitalize()} with a {noun}",
            description=f"Returns {returns}, by {version}.",
            **documentation,
        )


@router.get(
    "/{name}/openapi.json",
    name="model_openapi",
    summary="OpenAPI document of a model",
    responses=responses(UnknownModel, Unavailable),
)
async def get_document(state: State, name: ModelName) -> JsonObject:
    """Describes the rows of a model: names, types, ranges and categories."""
    content = await state.models.metadata(name, None)
    return model_document(Metadata.model_validate_json(content))


_add_routes(
    "predict",
    "the predictive distribution of each row",
    answer_table,
    response_model=PredictResponse,
    response_description="The predictive distributions.",
    openapi_extra={"requestBody": table_body(), "parameters": table_parameters()},
    responses={200: table_response(), **responses(*_ERRORS, NotAcceptable)},
)
_add_routes(
    "predict-file",
    "the rows of a file with their predictions, in the format of the file",
    predict_file,
    body=None,  # `UploadBody` counts the bytes.
    response_class=Response,
    response_description="The file.",
    openapi_extra={"requestBody": upload_body(), "parameters": file_parameters()},
    responses={
        200: file_response(),
        **responses(
            *_ERRORS, NotAcceptable, InvalidTable, UploadTimeout, InsufficientStorage
        ),
    },
)
