"""What is closed to whom, found by walking all routes of the app."""

import re
from collections.abc import Callable

import httpx
import pytest
from fastapi.routing import iter_route_contexts

from service.app import create_app
from service.shared.settings import Settings

HEALTH = ("/health/", "/v2/health/")
# Pages that anyone may read; tests/service/api/test_guide.py reads them.
GUIDE = ("/guide", "/guide/{path}")
# Whoever has a key may read what the API is.
DOCUMENTATION = {"/", "/docs", "/docs/{file}", "/openapi.json"}


def every_route() -> list[tuple[str, str]]:
    app = create_app(Settings())
    return sorted(
        (method, route.path_format)
        for route in iter_route_contexts(app.routes)
        for method in route.methods
    )


def path_of(route: str) -> str:
    return re.sub(r"{[^}]*}", "1", route)


def test_the_routes_are_found() -> None:
    routes = every_route()
    assert ("GET", "/health/live") in routes
    assert ("POST", "/v1/models/{name}:predict") in routes
    assert ("GET", "/docs") in routes


def test_every_route_but_health_and_guide_is_closed_without_a_key(
    client: httpx.Client,
) -> None:
    del client.headers["Authorization"]
    for method, route in every_route():
        if route in GUIDE:
            continue
        response = client.request(method, path_of(route))
        if route.startswith(HEALTH):
            assert response.status_code in (200, 503), route
        else:
            assert response.status_code == 401, (method, route)
            assert response.headers["WWW-Authenticate"] == "Bearer"
            assert method == "HEAD" or response.json().keys() == {"error"}


def test_every_route_but_the_documentation_needs_a_scope(
    client: httpx.Client, key_with: Callable[..., dict[str, str]]
) -> None:
    headers = key_with()
    for method, route in every_route():
        if not route.startswith(HEALTH) and route not in {*DOCUMENTATION, *GUIDE}:
            response = client.request(method, path_of(route), headers=headers)
            assert response.status_code == 403, (method, route, response.text)
            assert "needs a key with the scope" in response.json()["error"]


@pytest.mark.parametrize(
    "path", ["/no/such", "/v1", "/health", "/healthy", "/v1/models/1/2/3", "/docs/"]
)
def test_unknown_paths_are_closed_too(client: httpx.Client, path: str) -> None:
    assert client.get(path).status_code == 404
    del client.headers["Authorization"]
    assert client.get(path).status_code == 401
