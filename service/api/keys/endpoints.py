"""`/v1/keys`: create, list and revoke keys; `/v1/session`: the session of a browser."""

import asyncio
from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Path, Request, Response

from service.api.http.routes import LimitedRoute, limit_body, scoped_router
from service.api.keys.authentication import cookie_name
from service.api.keys.caller import Caller, may_administer
from service.api.keys.credential import Credential
from service.api.keys.repository import add_key, list_keys, revoke_key
from service.api.keys.schemas import (
    KeyList,
    KeyRequest,
    KeySummary,
    NewKey,
    Session,
    SessionRequest,
)
from service.api.state import ServiceState, State

keys = scoped_router("/v1/keys", "keys", may_administer)
session = APIRouter(prefix="/v1/session", tags=["keys"], route_class=LimitedRoute)

KeyId = Annotated[
    str,
    Path(
        description="Id of a key; `GET /v1/keys` lists the ids.",
        pattern="^[0-9a-f]{24}$",
        examples=["5f1d7e2a9c3b4d6e8f012345"],
    ),
]


@keys.post("", status_code=201, summary="Create a key")
def create_key(state: State, request: KeyRequest, response: Response) -> NewKey:
    """Creates a key and returns it once: the service stores only a hash."""
    credential = Credential.generate()
    seconds = request.expires_in_seconds
    with state.database.writing() as session:
        ends = None if seconds is None else state.database.now(session) + seconds
        key = add_key(
            state.database, session, credential, request.name, request.scopes, ends
        )
    response.headers["Cache-Control"] = "no-store"
    summary = KeySummary.model_validate(key).model_dump()
    return NewKey(**summary, key=credential.text)


@keys.get("", summary="List the keys")
def get_keys(state: State) -> KeyList:
    """Lists all keys without their secrets, including revoked and expired keys."""
    with state.database.reading() as session:
        return KeyList(keys=list(map(KeySummary.model_validate, list_keys(session))))


@keys.delete("/{key_id}", summary="Revoke a key")
def delete_key(state: State, key_id: KeyId) -> KeySummary:
    """Revokes a key, but not the last admin key; datasets and jobs of the key stay."""
    with state.database.writing() as session:
        key = revoke_key(state.database, session, key_id)
    state.keyring.clear_cache()
    return KeySummary.model_validate(key)


@session.post("", summary="Sign in with a key")
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


@session.get(
    "",
    summary="Describe the key and the session of the request",
    openapi_extra={"security": [{"key": []}]},
)
async def get_session(request: Request, response: Response) -> Session:
    """Returns the name and the scopes of the key, in a cookie or a header."""
    response.headers["Cache-Control"] = "no-store"
    return _describe(request.state.caller)


@session.delete("", status_code=204, summary="Sign out")
async def sign_out(state: State, request: Request) -> Response:
    """Ends all sessions of the key, and removes the cookie, also of a revoked key."""
    token = request.cookies.get(cookie_name(request))
    if token is not None:
        await asyncio.to_thread(state.keyring.end_sessions, token)
    response = Response(status_code=204)
    _set_cookie(request, response, "", max_age=0)
    return response


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
    scopes = sorted(caller.scopes)
    return Session.model_validate({**vars(caller), "scopes": scopes})
