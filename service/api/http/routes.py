"""Routes that require a scope and limit the request body."""

import asyncio
import re
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from fastapi import APIRouter, Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.convertors import StringConvertor, register_url_convertor
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive, Send
from starlette.types import Scope as ASGIScope

from service.api.http.errors import as_json
from service.api.keys.caller import Caller
from service.api.keys.credential import Scope
from service.shared.data_directory import free_reserve, write_reserve
from service.shared.errors import Forbidden, RequestTooLarge
from service.shared.json_types import JsonObject
from service.shared.settings import Settings

_Endpoint = TypeVar("_Endpoint", bound=Callable[..., Any])


@dataclass(frozen=True)
class BodyLimit:
    """The largest body of a route.

    Args:
        max_bytes: Bytes of the largest body, unless a setting gives them.
        setting: Name of the setting that gives them.
    """

    max_bytes: int = 2**20
    setting: str | None = None

    @property
    def description(self) -> str:
        """The OpenAPI description of the answer to a body that is too large."""
        if self.setting is None:
            return f"The body is larger than {self.max_bytes} bytes."
        return f"The body is larger than {Settings.variable(self.setting)}."

    def enforce(
        self, scope: ASGIScope, receive: Receive, send: Send
    ) -> tuple[Receive, Send]:
        """Wraps `receive` and `send` of a request, and counts the bytes of its body.

        Does not read the body.
        """
        max_bytes, message = self._limit_and_message(scope["state"]["service"].settings)
        length = Headers(scope=scope).get("content-length", "")
        if length.isdecimal() and (len(length) > 20 or int(length) > max_bytes):
            raise RequestTooLarge(message)
        left, answering = max_bytes, False

        async def counted() -> Message:
            nonlocal left
            received = await receive()
            left -= len(received.get("body", b""))
            if left < 0 and answering:
                return {"type": "http.disconnect"}
            if left < 0:
                # FastAPI passes on no other exception while it reads a body.
                raise HTTPException(RequestTooLarge.status, message)
            return received

        async def watched(message: Message) -> None:
            nonlocal answering
            answering = True
            await send(message)

        return counted, watched

    def _limit_and_message(self, settings: Settings) -> tuple[int, str]:
        if self.setting is None:
            return self.max_bytes, (
                f"The body may have at most {self.max_bytes} bytes; send fewer at once."
            )
        max_bytes: int = getattr(settings, self.setting)
        return max_bytes, (
            f"The body may have at most {max_bytes} bytes "
            f"({Settings.variable(self.setting)}); send fewer at once."
        )


_DEFAULT = BodyLimit()


def limit_body(limit: BodyLimit | None) -> Callable[[_Endpoint], _Endpoint]:
    """Sets the body limit of an endpoint; None if the endpoint counts itself."""

    def set_limit(endpoint: _Endpoint) -> _Endpoint:
        endpoint.body_limit = limit  # type: ignore[attr-defined]
        return endpoint

    return set_limit


def body_limit(endpoint: Callable[..., Any]) -> BodyLimit | None:
    """Returns the limit of an endpoint; None if the endpoint counts itself."""
    limit: BodyLimit | None = getattr(endpoint, "body_limit", _DEFAULT)
    return limit


class _NameConvertor(StringConvertor):
    """A part of a path up to the colon of a verb, as in `NAME:predict`."""

    regex = "[^/:]+"


register_url_convertor("name", _NameConvertor())


class LimitedRoute(APIRoute):
    """A route that limits the request body, before FastAPI reads it."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().__init__(path, endpoint, **options)
        self.body_limit = body_limit(endpoint)

    async def handle(self, scope: ASGIScope, receive: Receive, send: Send) -> None:
        """Handles a request; checks the length before it reads the body."""
        if scope["method"] in cast(set[str], self.methods) and self.body_limit:
            receive, send = self.body_limit.enforce(scope, receive, send)
        await super().handle(scope, receive, send)


class ScopedRoute(LimitedRoute):
    """A route that requires a key with a scope, and limits the request body.

    Checks both before FastAPI reads the body, because FastAPI parses the body before it
    calls any dependency. The dependency `may_predict`, `Training` or `may_administer`
    gives the scope, `limit_body` the limit. The OpenAPI document contains both.

    A path parameter ends at a colon, so that `/{name}` does not match `NAME:predict`.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().__init__(re.sub(r"{(\w+)}", r"{\1:name}", path), endpoint, **options)
        scopes = set(_scopes(self.dependant))
        if not scopes:
            raise TypeError(
                "A scoped route needs `may_predict`, `Training` or `may_administer` "
                f"among its dependencies. Received: {path}, which has none of them"
            )
        self.scope = max(scopes, key=lambda scope: len(scope.implied))
        self.responses = self._documented()

    async def handle(self, scope: ASGIScope, receive: Receive, send: Send) -> None:
        """Handles a request; checks scope and length before it reads the body."""
        if scope["method"] in cast(set[str], self.methods):
            caller: Caller = scope["state"]["caller"]
            caller.require(self.scope)
        if scope["method"] != "DELETE":
            await super().handle(scope, receive, send)
            return
        settings = scope["state"]["service"].settings
        await asyncio.to_thread(free_reserve, settings)
        try:
            await super().handle(scope, receive, send)
        finally:
            await asyncio.to_thread(write_reserve, settings)

    def _documented(self) -> dict[int | str, JsonObject]:
        """Returns the documented responses, including those of this class."""
        documented = dict(self.responses)
        needs = {Forbidden.status: f"The key needs the scope `{self.scope}`."}
        limit = self.body_limit
        if limit is not None and (self.body_field or limit.setting):
            needs[RequestTooLarge.status] = limit.description
        for status, need in needs.items():
            given = documented.get(status)
            if given is None:
                (shape,) = as_json({status: {"description": need}}).values()
                documented[status] = shape
            else:
                description = f"{need} {given['description']}"
                documented[status] = given | {"description": description}
        return documented


class PlainRoute(ScopedRoute):
    """A route whose endpoint takes the state, the request and texts of the path.

    It calls the endpoint itself: FastAPI takes as long to find these arguments as a
    small prediction does to compute.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Returns a function that answers a request."""
        endpoint = self.endpoint

        async def answer(request: Request) -> Response:
            response: Response = await endpoint(
                request.state.service, request, **request.path_params
            )
            return response

        return answer


def check_scoped(router: APIRouter) -> None:
    """Raises TypeError unless every route of a router is a `ScopedRoute`."""
    for route in router.routes:
        if not isinstance(route, ScopedRoute):
            raise TypeError(
                "Every route of this router needs a scope: make the router with "
                f"`route_class=ScopedRoute`. Received: {route}"
            )


def _scopes(dependant: Dependant) -> Iterator[Scope]:
    yield from map(Scope, dependant.own_oauth_scopes or ())
    for dependency in dependant.dependencies:
        yield from _scopes(dependency)
