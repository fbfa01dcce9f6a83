"""`/v1/keys`: create, list and revoke keys; `/v1/session`: the session of a browser."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Path, Request, Response
from pydantic import BaseModel, Field

from service.api.http.prefix import prefix_of
from service.api.http.routes import ScopedRoute, limit_body, scoped_router
from service.api.keys import repository
from service.api.keys.authentication import cookie_name
from service.api.keys.credential import Scope
from service.api.keys.keyring import AnyCaller, Caller, may_administer
from service.api.keys.repository import KeySummary
from service.api.state import State
from tfbbb.base.known_fields import KnownFields

keys = scoped_router("/v1/keys", "keys", may_administer)
session = APIRouter(prefix="/v1/session", tags=["keys"], route_class=ScopedRoute)


class KeyRequest(
    KnownFields,
    json_schema_extra={"examples": [{"name": "nightly", "scopes": ["predict"]}]},
):
    """The name and the scopes of a new key, which by default never expires.

    `predict` includes `metrics`, and `train` `predict`; `admin` allows everything.
    """

    name: str = Field(
        min_length=1,
        max_length=200,
        pattern=r"^[^\x00-\x1f\x7f]*$",
        description="Purpose of the key, in one line; no other usable key has it.",
    )
    scopes: list[Scope] = Field(fail_fast=True, min_length=1, max_length=len(Scope))
    expires_in_seconds: float | None = Field(None, gt=0, le=10**10)


class NewKey(KeySummary):
    """A new key, including its secret."""

    key: str = Field(description="`prefix.secret`, returned only once and not stored.")


class KeyList(BaseModel):
    """All keys, newest first."""

    keys: list[KeySummary]


class SessionRequest(
    KnownFields, json_schema_extra={"examples": [{"key": "tfbbb-5f1d7e2a.the-secret"}]}
):
    """The key with which to sign in."""

    key: str = Field(max_length=1024, description="`prefix.secret`.")


@keys.post("", status_code=201, summary="Create a key")
def create_key(state: State, request: KeyRequest, response: Response) -> NewKey:
    """Creates a key and returns it once: the service stores only a hash."""
    key, credential = repository.create_key(
        state.database, request.name, request.scopes, request.expires_in_seconds
    )
    response.headers["Cache-Control"] = "no-store"
    return NewKey(**KeySummary.model_validate(key).model_dump(), key=credential)


@keys.get("", summary="List the keys")
def get_keys(state: State) -> KeyList:
    """Lists all keys without their secrets, including revoked and expired keys."""
    with state.database.reading() as session:
        found = repository.list_keys(session)
    return KeyList(keys=list(map(KeySummary.model_validate, found)))


@keys.delete("/{key_id}", summary="Revoke a key")
def delete_key(
    state: State, key_id: Annotated[str, Path(pattern="^[0-9a-f]{24}$")]
) -> KeySummary:
    """Revokes a key, but not the last admin key; datasets and jobs of the key stay."""
    key = repository.revoke_key(state.database, key_id)
    state.keyring.clear_cache()
    return KeySummary.model_validate(key)


@session.post("", summary="Sign in with a key")
@limit_body(4096)
async def sign_in(
    state: State, body: SessionRequest, request: Request, response: Response
) -> Caller:
    """Starts a session, whose cookie authenticates the requests of the browser.

    Scripts cannot read the cookie, and pages of other origins cannot use it. The
    session ends after a week, by signing out, and with its key. Needs no key but the
    one in the body.
    """
    token = await asyncio.to_thread(state.keyring.start_session, body.key.strip())
    response.headers["Cache-Control"] = "no-store"
    _set_cookie(request, response, token)
    return await state.keyring.find(token, of_session=True)


@session.get("", summary="Describe the key and the session of the request")
async def get_session(caller: AnyCaller, response: Response) -> Caller:
    """Returns the name and the scopes of the key, in a cookie or a header."""
    response.headers["Cache-Control"] = "no-store"
    return caller


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
        path=f"{prefix_of(request)}/",
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )
