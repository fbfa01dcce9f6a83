"""Authenticates every request before it is routed."""

from http import HTTPMethod
from urllib.parse import parse_qs

from starlette.requests import HTTPConnection, Request
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from service.api.http.errors import (
    DATABASE_OUTAGES,
    answer_outage,
    service_error_response,
)
from service.api.keys.caller import ANYONE, Caller
from service.api.keys.repository import is_loopback
from service.api.keys.session import cookie_name
from service.api.state import ServiceState
from service.shared.database import Actor, acting
from service.shared.errors import Forbidden, ServiceError, Unauthenticated

_OPEN = ("/health/", "/v2/health/", "/web/", "/guide/")
_OPEN_PATHS = ("/guide", "/openapi.json")
# The page, which has nothing secret, and asks for a key where there is none.
_PAGE = "/"
# Who signs in or out has no valid key yet, or any more.
_SESSION = "/v1/session"
_SAFE = (HTTPMethod.GET, HTTPMethod.HEAD)


class Authentication:
    """Requires a valid key, but not for page, guide, description, health and sign-in.

    Unknown paths require a key as well, so that requests without a key cannot find out
    which paths exist. `ScopedRoute` checks the scope of the key.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or _is_open(scope["path"]):
            await self._app(scope, receive, send)
            return
        connection = HTTPConnection(scope)
        try:
            if scope["path"] == _PAGE:
                connection.state.caller = await self._visitor(connection)
            elif _signs_in_or_out(scope):
                _check_page(connection)
            else:
                connection.state.caller = await self._caller(connection)
        except Unauthenticated as error:
            response = service_error_response(error, {"WWW-Authenticate": "Bearer"})
            if _is_documentation_in_browser(connection):
                response = RedirectResponse(".", 303)  # The page asks for a key.
            await response(scope, receive, send)
        except Forbidden as error:
            await service_error_response(error)(scope, receive, send)
        except DATABASE_OUTAGES as error:
            await answer_outage(Request(scope), error)(scope, receive, send)
        else:
            with acting(_actor(connection)):
                await self._app(scope, receive, send)

    async def _visitor(self, connection: HTTPConnection) -> Caller | None:
        """Returns the caller of the page; None without a valid key."""
        try:
            return await self._caller(connection)
        except (ServiceError, *DATABASE_OUTAGES):
            return None

    async def _caller(self, connection: HTTPConnection) -> Caller:
        state: ServiceState = connection.state.service
        text, of_session = _bearer(connection), False
        if text is None:
            _check_page(connection)
            if state.settings.insecure:
                return ANYONE
            text, of_session = _browser_credential(connection)
        return await state.keyring.find(text, of_session=of_session)


def _actor(connection: HTTPConnection) -> Actor:
    """Returns who makes the changes of a request."""
    caller: Caller | None = getattr(connection.state, "caller", None)
    if caller is None:
        return Actor("nobody")
    return Actor(caller.name, caller.key_id, connection.state.request_id)


def _is_open(path: str) -> bool:
    return path in _OPEN_PATHS or path.startswith(_OPEN)


def _is_documentation_in_browser(connection: HTTPConnection) -> bool:
    accept = connection.headers.get("accept", "")
    return connection.scope["path"] == "/docs" and "text/html" in accept


def _signs_in_or_out(scope: Scope) -> bool:
    return scope["path"] == _SESSION and scope["method"] in ("POST", "DELETE")


def _check_page(connection: HTTPConnection) -> None:
    """Raises `Forbidden` if a page of another origin made the browser's request.

    A browser sends cookies, and reaches this machine, for any web page.
    """
    _check_origin(connection)
    if connection.state.service.settings.insecure:
        _check_host(connection)


def _bearer(connection: HTTPConnection) -> str | None:
    header = connection.headers.get("authorization")
    if header is None:
        return None
    scheme, _, text = header.partition(" ")
    if scheme.lower() != "bearer":
        raise Unauthenticated(
            "The key must be sent as `Authorization: Bearer prefix.secret`. "
            f"Received: the scheme {scheme!r:.20}"
        )
    return text.strip()


def _browser_credential(connection: HTTPConnection) -> tuple[str, bool]:
    """Returns what a browser sends, and whether it is the token of a session.

    It is the token of the cookie, or the key of the URL printed at the first start.
    """
    if connection.scope["path"] == _PAGE:
        for key in parse_qs(connection.url.query).get("key", ()):
            return key, False
    if (name := cookie_name(connection)) in connection.cookies:
        return connection.cookies[name], True
    raise Unauthenticated(
        "A key is required: send `Authorization: Bearer prefix.secret`; "
        "`tfbbb keys create NAME --scope train` creates one. In a browser, sign in, or "
        "open /?key=prefix.secret once. Received: no key"
    )


def _check_host(connection: HTTPConnection) -> None:
    """Raises `Forbidden` if a foreign host name resolves to the loopback address.

    A web page can let its own host name resolve to this machine (DNS rebinding), and
    then has the same origin as the service.
    """
    server, name = connection.scope["server"], connection.url.hostname
    if server and is_loopback(server[0]) and not is_loopback(name or server[0]):
        raise Forbidden(
            "A service without keys accepts only the hosts localhost and 127.0.0.1, "
            f"also from a proxy. Received: the host {name!r:.100}"
        )


def _check_origin(connection: HTTPConnection) -> None:
    """Raises `Forbidden` if a page of another origin made the browser's request.

    `SameSite` alone does not distinguish the ports of a machine.
    """
    headers = connection.headers
    site = headers.get("sec-fetch-site")
    # A whole window is allowed, a frame is not: another page could steer the clicks.
    opens = headers.get("sec-fetch-dest") == "document"
    safe = connection.scope["method"] in _SAFE
    if site is not None:
        allowed = site == "same-origin" or (safe and (site == "none" or opens))
    elif (origin := headers.get("origin")) is not None:
        allowed = origin.partition("://")[2] == headers.get("host")
    else:
        allowed = safe or "cookie" not in headers
    if not allowed:
        raise Forbidden(
            "A page of another origin may not use your cookie: send the key as "
            "`Authorization: Bearer prefix.secret`. "
            f"Received: Sec-Fetch-Site {site!r:.20}, Origin "
            f"{headers.get('origin')!r:.100}"
        )
