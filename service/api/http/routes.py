"""Routes that require a scope and limit the request body."""

import asyncio
import re
from collections.abc import Callable, Iterator
from typing import Annotated, Any, TypeVar, cast

from fastapi import APIRouter, Path, Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.convertors import StringConvertor, register_url_convertor
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive, Send
from starlette.types import Scope as ASGIScope

from service.api.http.encoding import content_encoding, decompressed
from service.api.http.errors import ANY_ERROR
from service.api.keys.credential import Scope
from service.shared.data_directory import free_reserve, write_reserve
from service.shared.errors import RequestTooLarge
from service.shared.settings import Settings
from tfbbb.base.texts import MOST_VERSIONS

_Endpoint = TypeVar("_Endpoint", bound=Callable[..., Any])

ModelName = Annotated[str, Path(description="`GET /v1/models` lists the names.")]
VersionNumber = Annotated[int, Path(ge=0, le=MOST_VERSIONS)]


def limit_body(limit: int | str | None) -> Callable[[_Endpoint], _Endpoint]:
    """Sets the most bytes of an endpoint's body, or the setting that gives them.

    None if the endpoint counts them itself; other endpoints take 1 MiB.
    """

    def set_limit(endpoint: _Endpoint) -> _Endpoint:
        endpoint.body_limit = limit  # type: ignore[attr-defined]
        return endpoint

    return set_limit


class _NameConvertor(StringConvertor):
    """A part of a path up to the colon of a verb, as in `NAME:predict`."""

    regex = "[^/:]+"


register_url_convertor("name", _NameConvertor())


class ScopedRoute(APIRoute):
    """A route that requires a key with a scope, and limits the request body.

    Checks both before FastAPI reads the body. The dependency `may_predict`, `Training`
    or `may_administer` gives the scope, `limit_body` the limit.

    A path parameter ends at a colon, so that `/{name}` does not match `NAME:predict`.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().__init__(re.sub(r"{(\w+)}", r"{\1:name}", path), endpoint, **options)
        self.body_limit: int | str | None = getattr(endpoint, "body_limit", 2**20)
        scopes = _scopes(self.dependant)
        # None of those who sign in or out.
        self.scope = max(scopes, key=lambda scope: len(scope.implied), default=None)

    async def handle(self, scope: ASGIScope, receive: Receive, send: Send) -> None:
        """Handles a request; checks scope and length before it reads the body."""
        if scope["method"] in cast(set[str], self.methods):
            if self.scope is not None:
                scope["state"]["caller"].require(self.scope)
            receive = self._limited(scope, receive)
        if scope["method"] != "DELETE":
            await super().handle(scope, receive, send)
            return
        settings = scope["state"]["service"].settings
        await asyncio.to_thread(free_reserve, settings)
        try:
            await super().handle(scope, receive, send)
        finally:
            await asyncio.to_thread(write_reserve, settings)

    def _limited(self, scope: ASGIScope, receive: Receive) -> Receive:
        """Returns `receive`, which counts the bytes of a body and decompresses it."""
        limit = self.body_limit
        if limit is None:
            return receive
        settings = scope["state"]["service"].settings
        most: int = getattr(settings, limit) if isinstance(limit, str) else limit
        encoding = content_encoding(scope)
        if encoding is not None:
            return decompressed(receive, encoding, most, self._too_large(most))
        length = Headers(scope=scope).get("content-length")
        if length is not None:
            if len(length) > 20 or int(length) > most:
                raise RequestTooLarge(self._too_large(most))
            return receive  # The server reads no more than this.
        left = most

        async def counted() -> Message:
            nonlocal left
            received = await receive()
            left -= len(received.get("body", b""))
            if left < 0:
                # FastAPI passes on no other exception while it reads a body.
                raise HTTPException(RequestTooLarge.status, self._too_large(most))
            return received

        return counted

    def _too_large(self, most: int) -> str:
        setting = self.body_limit
        named = f" ({Settings.variable(setting)})" if isinstance(setting, str) else ""
        return f"The body may have at most {most} bytes{named}; send fewer at once."


def scoped_router(prefix: str, tag: str, *scopes: Any) -> APIRouter:
    """Creates a router of `ScopedRoute`, all of which need some scopes."""
    return APIRouter(
        prefix=prefix,
        tags=[tag],
        dependencies=scopes,
        route_class=ScopedRoute,
        responses={"default": ANY_ERROR},
        generate_unique_id_function=lambda route: route.name,
    )


class PlainRoute(ScopedRoute):
    """A route whose endpoint takes the state, the request and texts of the path.

    It calls the endpoint itself: FastAPI takes as long to find these arguments as a
    small prediction does to compute.
    """

    async def handle(self, scope: ASGIScope, receive: Receive, send: Send) -> None:
        """Handles a request; checks scope and length before it reads the body."""
        if scope["method"] not in cast(set[str], self.methods):
            await super().handle(scope, receive, send)  # Refuses the method.
            return
        state = scope["state"]
        state["caller"].require(cast(Scope, self.scope))
        request = Request(scope, self._limited(scope, receive), send)
        response = await self.endpoint(state["service"], request, **request.path_params)
        await response(scope, receive, send)


def _scopes(dependant: Dependant) -> Iterator[Scope]:
    yield from map(Scope, dependant.own_oauth_scopes or ())
    for dependency in dependant.dependencies:
        yield from _scopes(dependency)
