"""The largest body of each route."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive, Scope, Send

from service.shared.errors import RequestTooLarge
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
        self, scope: Scope, receive: Receive, send: Send
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
