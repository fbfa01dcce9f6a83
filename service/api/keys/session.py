"""`/v1/session`: the key of a browser, which keeps it in a cookie."""

import asyncio

from fastapi import APIRouter, Request, Response

from service.api.http.body_limit import BodyLimit, limit_body
from service.api.http.errors import responses
from service.api.http.scoped_route import LimitedRoute
from service.api.keys.browser import delete_cookie, set_cookie
from service.api.keys.caller import Caller, get_caller
from service.api.keys.credential import Credential, CredentialError
from service.api.keys.schemas import Session, SessionRequest
from service.api.state import ServiceState, State
from service.shared.database.tables import Key
from service.shared.errors import InvalidRequest, RequestTooLarge, Unauthenticated

router = APIRouter(prefix="/v1/session", tags=["keys"], route_class=LimitedRoute)


@router.post(
    "",
    summary="Sign in with a key",
    responses=responses(InvalidRequest, RequestTooLarge),
)
@limit_body(BodyLimit(4096))
async def sign_in(
    state: State, body: SessionRequest, request: Request, response: Response
) -> Session:
    """Puts a key into a cookie, which authenticates the requests of the browser.

    Scripts cannot read the cookie, and pages of other origins cannot use it. Needs no
    key but the one in the body.
    """
    with state.wrong_keys.counting(request):
        try:
            credential = Credential.parse(body.key.strip())
        except CredentialError as error:
            raise Unauthenticated(str(error)) from None
        caller = await asyncio.to_thread(state.keyring.authenticate, credential)
    set_cookie(request, response, credential.text)
    response.headers["Cache-Control"] = "no-store"
    return await asyncio.to_thread(_describe, state, caller)


@router.get(
    "",
    summary="Describe the key of the request",
    responses=responses(),
    openapi_extra={"security": [{"key": []}]},
)
async def get_session(state: State, request: Request, response: Response) -> Session:
    """Returns the name and the scopes of the key, in a cookie or a header."""
    response.headers["Cache-Control"] = "no-store"
    return await asyncio.to_thread(_describe, state, get_caller(request))


@router.delete("", status_code=204, summary="Sign out", responses=responses())
async def sign_out(request: Request) -> Response:
    """Removes the cookie with the key, also of a key that was revoked."""
    response = Response(status_code=204)
    delete_cookie(request, response)
    return response


def _describe(state: ServiceState, caller: Caller) -> Session:
    expires_at = None
    if caller.key_id is not None:
        with state.database.reading() as session:
            key = session.get(Key, caller.key_id)
            expires_at = None if key is None else key.expires_at
    return Session.model_validate(
        {
            "key_id": caller.key_id,
            "name": caller.name,
            "scopes": sorted(caller.scopes),
            "expires_at": expires_at,
        }
    )
