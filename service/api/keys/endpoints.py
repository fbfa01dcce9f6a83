"""`/v1/keys`: create, list and revoke keys."""

from fastapi import APIRouter, Response

from service.api.http.routes import ScopedRoute
from service.api.keys.caller import may_administer
from service.api.keys.credential import Credential
from service.api.keys.repository import add_key, list_keys, revoke_key
from service.api.keys.schemas import KeyId, KeyList, KeyRequest, KeySummary, NewKey
from service.api.state import State

router = APIRouter(
    prefix="/v1/keys",
    tags=["keys"],
    dependencies=[may_administer],
    route_class=ScopedRoute,
)


@router.post("", status_code=201, summary="Create a key")
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
    return NewKey(**KeySummary.from_row(key).model_dump(), key=credential.text)


@router.get("", summary="List the keys")
def get_keys(state: State) -> KeyList:
    """Lists all keys without their secrets, including revoked and expired keys."""
    with state.database.reading() as session:
        keys = [KeySummary.from_row(key) for key in list_keys(session)]
    return KeyList(keys=keys)


@router.delete("/{key_id}", summary="Revoke a key")
def delete_key(state: State, key_id: KeyId) -> KeySummary:
    """Revokes a key, but not the last admin key; datasets and jobs of the key stay."""
    with state.database.writing() as session:
        key = revoke_key(state.database, session, key_id)
    state.keyring.clear_cache()
    return KeySummary.from_row(key)
