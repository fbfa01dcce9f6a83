"""Routes that a model, each of its versions and each of its labels has."""

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import APIRouter, Request, Response

from service.api.http.routes import PlainRoute, ScopedRoute, limit_body
from service.api.labels.endpoints import LabelName
from service.api.models.schemas import ModelName, VersionNumber
from service.api.state import ServiceState, State

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
