"""`:predict` and `:predict-file`; routes that models, versions and labels have."""

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import APIRouter, Request, Response

from service.api.datasets.endpoints import UPLOAD_BODY
from service.api.http.routes import (
    ModelName,
    PlainRoute,
    ScopedRoute,
    VersionNumber,
    limit_body,
    scoped_router,
)
from service.api.keys.keyring import may_predict
from service.api.labels.endpoints import LabelName
from service.api.predictions.answering import answer_table
from service.api.predictions.files import predict_file
from service.api.predictions.schemas import (
    FILE_NAME,
    FILE_RESPONSE,
    REFUSED_OF_FILES,
    TABLE_BODY,
    TABLE_RESPONSE,
    PredictResponse,
    query_parameters,
)
from service.api.state import ServiceState, State

router = scoped_router("/v1/models", "predictions", may_predict)

Answer = Callable[[ServiceState, Request, str, int | None], Awaitable[Response]]


def add_routes(
    router: APIRouter,
    suffix: str,
    summary: str,
    description: str,
    answer: Answer,
    *,
    method: str = "POST",
    body: int | str | None = "max_body_bytes",
    **documentation: Any,
) -> None:
    """Adds the routes with a suffix such as `:predict`, which one function answers."""
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

    operation = suffix.strip(":/").replace("-", "_")
    for path, route, endpoint, name, noun, version in (
        ("", PlainRoute, by_latest, "", "model", "the version `latest`"),
        ("/versions/{version}", ScopedRoute, by_version, "_version", "version", ""),
        ("/labels/{label}", PlainRoute, by_label, "_label", "label", ""),
    ):
        router.add_api_route(
            f"/{{name}}{path}{suffix}",
            endpoint,
            route_class_override=route,
            methods=[method],
            name=f"{operation}{name}",
            summary=f"{summary} a {noun}",
            description=f"{description} {version or f'the {noun} in the path'}.",
            **documentation,
        )


add_routes(
    router,
    ":predict",
    "Predict with",
    "Returns the predictive distribution of each row, by",
    answer_table,
    response_model=PredictResponse,
    response_description="The predictive distributions.",
    openapi_extra={
        "requestBody": TABLE_BODY,
        "parameters": query_parameters("Of a table in Arrow or CSV"),
    },
    responses={200: TABLE_RESPONSE},
)
add_routes(
    router,
    ":predict-file",
    "Predict a file with",
    "Returns the rows of a file with their predictions, in the format of the file, by",
    predict_file,
    body=None,  # `received_file` counts the bytes.
    response_class=Response,
    response_description="The file.",
    openapi_extra={
        "requestBody": UPLOAD_BODY,
        "parameters": [*query_parameters("In the URL", REFUSED_OF_FILES), FILE_NAME],
    },
    responses={200: FILE_RESPONSE},
)
