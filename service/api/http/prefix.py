"""The path below which a proxy has the service."""

import re

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from service.shared.settings import PATH_PREFIX

_PREFIX = re.compile(PATH_PREFIX)


class Prefix:
    """Answers below a prefix, whether the proxy strips it from paths or keeps it.

    The prefix is that of the setting, else that of the header `X-Forwarded-Prefix`,
    which changes no answer but that of its own request. Everything inside sees paths
    without it.
    """

    def __init__(self, app: ASGIApp, prefix: str | None) -> None:
        self._app, self._prefix = app, prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            prefix = self._prefix or _forwarded(scope)
            scope.setdefault("state", {})["prefix"] = prefix
            path = scope["path"]
            if prefix and path == prefix:
                # The links of the page are relative.
                query = scope["query_string"].decode("latin-1")
                to = f"{prefix}/?{query}" if query else f"{prefix}/"
                await RedirectResponse(to, 307)(scope, receive, send)
                return
            if prefix and path.startswith(f"{prefix}/"):
                scope["path"] = path.removeprefix(prefix)
        await self._app(scope, receive, send)


def prefix_of(connection: HTTPConnection) -> str:
    """Returns the path below which the client of a request sees the service, or ''."""
    prefix: str = connection.scope["state"]["prefix"]
    return prefix


def _forwarded(scope: Scope) -> str:
    """Returns what proxies say that they have stripped, one after another."""
    given = Headers(scope=scope).getlist("x-forwarded-prefix")
    parts = (part.strip().rstrip("/") for part in ",".join(given).split(","))
    prefix = "".join(parts)
    return prefix if _PREFIX.fullmatch(prefix) else ""
