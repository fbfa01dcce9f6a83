"""Authenticates every request before it is routed."""

from starlette.requests import HTTPConnection, Request
from starlette.types import ASGIApp, Receive, Scope, Send

from service.api.http.errors import (
    DATABASE_OUTAGES,
    answer_outage,
    service_error_response,
)
from service.api.http.prefix import prefix_of
from service.api.keys.keyring import ANYONE, Caller
from service.api.keys.repository import is_loopback
from service.api.state import ServiceState
from service.shared.database import Actor, acting
from service.shared.errors import Forbidden, ServiceError, Unauthenticated

# The page has nothing secret, and asks for a key.
_OPEN_PATHS = ("/", "/guide", "/openapi.json")
_OPEN = ("/health/", "/v2/health/", "/web/", "/guide/")


class Authentication:
    """Requires a valid key, but not for page, guide, description, health and sign-in.

    Nobody without a key can find out which paths exist. `ScopedRoute` checks scopes.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        is_open = path in _OPEN_PATHS or path.startswith(_OPEN)
        if scope["type"] != "http" or is_open:
            await self._app(scope, receive, send)
            return
        connection = HTTPConnection(scope)
        try:
            caller = await _identify(connection)
        except ServiceError as error:
            await service_error_response(error)(scope, receive, send)
        except DATABASE_OUTAGES as error:
            await answer_outage(Request(scope), error)(scope, receive, send)
        else:
            connection.state.caller, actor = caller, Actor("nobody")
            if caller is not None:
                actor = Actor(caller.name, caller.key_id, connection.state.request_id)
            with acting(actor):
                await self._app(scope, receive, send)


async def _identify(connection: HTTPConnection) -> Caller | None:
    """Returns the caller of a key, a session or no key; None of who signs in or out."""
    state: ServiceState = connection.state.service
    is_session = connection.scope["path"] == "/v1/session"
    if is_session and connection.scope["method"] in ("POST", "DELETE"):
        _check_page(connection)
        return None
    header = connection.headers.get("authorization")
    if header is not None:
        scheme, _, text = header.partition(" ")
        if scheme.lower() != "bearer":
            raise Unauthenticated(
                "The key must be sent as `Authorization: Bearer prefix.secret`. "
                f"Received: the scheme {scheme!r:.20}"
            )
        return await state.keyring.find(text.strip())
    _check_page(connection)
    if state.settings.insecure:
        return ANYONE
    token = connection.cookies.get(cookie_name(connection))
    if token is None:
        raise Unauthenticated(
            "A key is required: send `Authorization: Bearer prefix.secret`; "
            "`tfbbb keys create NAME --scope train` creates one. In a browser, sign "
            "in, or open /?key=prefix.secret once. Received: no key"
        )
    return await state.keyring.find(token, of_session=True)


def cookie_name(connection: HTTPConnection) -> str:
    """Returns the name of the session's cookie.

    It has the port and the prefix: a browser sends a cookie to all ports of a host, and
    one for `/` to all paths as well.
    """
    place = connection.url.port or connection.url.scheme
    return f"tfbbb-session-{place}{prefix_of(connection).replace('/', '-')}"


def _check_page(connection: HTTPConnection) -> None:
    """Raises `Forbidden` if a page of another origin would change something.

    A browser sends cookies, and reaches this machine, for any web page; `SameSite`
    alone does not distinguish the ports of a machine.
    """
    headers, name = connection.headers, connection.url.hostname
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is None and origin is not None:  # Over plain HTTP, or of an old browser.
        is_own = origin.partition("://")[2] == headers.get("host")
    else:
        is_own = site in (None, "same-origin")
    if not is_own and connection.scope["method"] not in ("GET", "HEAD"):
        raise Forbidden(
            "A page of another origin may not use your cookie: send the key as "
            "`Authorization: Bearer prefix.secret`. "
            f"Received: Sec-Fetch-Site {site!r:.20}, Origin {origin!r:.100}"
        )
    # A web page can let its own host name resolve to this machine (DNS rebinding), and
    # then has the same origin as a service that asks for no key.
    address, _ = connection.scope["server"]
    is_open = connection.state.service.settings.insecure
    if is_open and is_loopback(address) and not is_loopback(name or address):
        raise Forbidden(
            "A service without keys accepts only the hosts localhost and 127.0.0.1, "
            f"also from a proxy. Received: the host {name!r:.100}"
        )
