"""What is closed to whom, found by walking all routes of the app."""

import re
from collections.abc import Callable

import httpx
from fastapi.routing import iter_route_contexts

from service.app import create_app
from service.shared.settings import Settings

HEALTH = ("/health/", "/v2/health/")
# The files of the page, which signs in, and of the guide: anyone may read them.
FILES = ("/web/", "/guide", "/openapi.json")
# Whoever has a key may read what the API is.
DOCUMENTATION = {"/docs", "/docs/{file}"}
SESSION = "/v1/session"
# Who signs in or out has no key yet, or any more.
SIGN_IN_OR_OUT = {("POST", SESSION), ("DELETE", SESSION)}


def every_route() -> list[tuple[str, str]]:
    app = create_app(Settings())
    return sorted(
        (method, route.path_format)
        for route in iter_route_contexts(app.routes)
        for method in route.methods
    )


def is_of_page(route: str) -> bool:
    return route == "/" or route.startswith(FILES)


def path_of(route: str) -> str:
    return re.sub(r"{[^}]*}", "1", route)


def test_routes_but_page_health_and_sign_in_need_a_key(
    client: httpx.Client,
) -> None:
    del client.headers["Authorization"]
    assert ("POST", "/v1/models/{name}:predict") in every_route()
    for method, route in every_route():
        response = client.request(method, path_of(route))
        if route.startswith(HEALTH):
            assert response.status_code in (200, 503), route
        elif is_of_page(route):
            assert response.status_code in (200, 307, 404), route
        elif (method, route) not in SIGN_IN_OR_OUT:
            assert response.status_code == 401, (method, route)
            assert response.headers["WWW-Authenticate"] == "Bearer"
            assert method == "HEAD" or response.json().keys() == {
                "error",
                "code",
                "field",
            }


def test_every_route_but_the_documentation_needs_a_scope(
    client: httpx.Client, key_with: Callable[..., dict[str, str]]
) -> None:
    headers = key_with()
    for method, route in every_route():
        is_open = route.startswith(HEALTH) or is_of_page(route) or route == SESSION
        if not is_open and route not in DOCUMENTATION:
            response = client.request(method, path_of(route), headers=headers)
            assert response.status_code == 403, (method, route, response.text)
            assert "needs a key with the scope" in response.json()["error"]


def test_unknown_paths_are_closed_too(client: httpx.Client) -> None:
    paths = ("/no/such", "/v1", "/health", "/healthy", "/v1/models/1/2/3", "/docs/")
    assert {client.get(path).status_code for path in paths} == {404}
    del client.headers["Authorization"]
    assert {client.get(path).status_code for path in paths} == {401}
