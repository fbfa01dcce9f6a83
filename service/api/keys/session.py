"""`/v1/session`: the session of a browser, which keeps its token in a cookie."""

import asyncio
from dataclasses import replace

from fastapi import APIRouter, Request, Response
from starlette.requests import HTTPConnection

from service.api.http.routes import LimitedRoute, limit_body
from service.api.keys.caller import Caller, get_caller
from service.api.keys.schemas import Session, SessionRequest
from service.api.state import ServiceState, State

router = APIRouter(prefix="/v1/session", tags=["keys"], route_class=LimitedRoute)


@router.post("", summary="Sign in with a key")
@limit_body(4096)
async def sign_in(
    state: State, body: SessionRequest, request: Request, response: Response
) -> Session:
    """Starts a session, whose cookie authenticates the requests of the browser.

    Scripts cannot read the cookie, and pages of other origins cannot use it. The
    session ends after a week, by signing out, and with its key. Needs no key but the
    one in the body.
    """
    caller = await asyncio.to_thread(state.keyring.authenticate, body.key.strip())
    response.headers["Cache-Control"] = "no-store"
    return _describe(await sign_in_browser(state, caller, request, response))


async def sign_in_browser(
    state: ServiceState, caller: Caller, request: Request, response: Response
) -> Caller:
    """Starts a session and sets its cookie; returns the caller, with its end."""
    token, expires_at = await asyncio.to_thread(state.keyring.start_session, caller)
    _set_cookie(request, response, token)
    return replace(caller, expires_at=expires_at)


@router.get(
    "",
    summary="Describe the key and the session of the request",
    openapi_extra={"security": [{"key": []}]},
)
async def get_session(request: Request, response: Response) -> Session:
    """Returns the name and the scopes of the key, in a cookie or a header."""
    response.headers["Cache-Control"] = "no-store"
    return _describe(get_caller(request))


@router.delete("", status_code=204, summary="Sign out")
async def sign_out(request: Request) -> Response:
    """Removes the cookie of the session, also of a key that was revoked."""
    response = Response(status_code=204)
    _set_cookie(request, response, "", max_age=0)
    return response


def cookie_name(connection: HTTPConnection) -> str:
    """Returns the name of the cookie; it has the port, which browsers ignore."""
    return f"tfbbb-session-{connection.url.port or connection.url.scheme}"


def _set_cookie(
    request: Request, response: Response, token: str, max_age: int | None = None
) -> None:
    """Sets a cookie that scripts and other sites cannot use."""
    response.set_cookie(
        cookie_name(request),
        token,
        max_age=max_age,
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )


def _describe(caller: Caller) -> Session:
    return Session.model_validate(
        {
            "key_id": caller.key_id,
            "name": caller.name,
            "scopes": sorted(caller.scopes),
            "expires_at": caller.expires_at,
        }
    )
