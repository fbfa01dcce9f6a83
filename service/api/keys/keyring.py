"""Identifies callers by keys and sessions, with a short cache.

The token of a session is signed by the stored hash of its key and the number of its
sign-outs, `PREFIX.TIME.SIGNATURE`. So a session needs no row in the database, holds no
secret of the key, and ends with it and when the key signs out.
"""

import hashlib
import hmac
import logging
import math
from contextlib import suppress
from datetime import UTC, datetime
from threading import Thread
from typing import Annotated, cast

from fastapi import Depends, Request, Security
from fastapi.security import HTTPBearer
from itsdangerous import BadSignature, TimestampSigner
from pydantic import BaseModel, Field
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from service.api.http.errors import without_statement
from service.api.keys.credential import Scope, split_credential
from service.api.keys.repository import find_key
from service.api.last_known import LastKnown
from service.shared.database import Database
from service.shared.database.tables import Key
from service.shared.errors import Forbidden, Unauthenticated

logger = logging.getLogger(__name__)

# Time for which an authenticated key is cached, so that fast predictions need not wait
# for the database, and time for which it is accepted while the database is lost.
_KNOWN_SECONDS, _SECONDS_WITHOUT_DATABASE = 5.0, 60.0
_USE_SECONDS, _SESSION_SECONDS = 60.0, 7 * 24 * 3600


class Caller(BaseModel, frozen=True):
    """The key of a request, without its secret, and when it or the session ends."""

    key_id: str | None = Field(description="`null` if the service runs without keys.")
    name: str
    scopes: list[Scope] = Field(description="With those that others include.")
    expires_at: datetime | None = None

    def require(self, scope: Scope) -> None:
        """Raises `Forbidden` unless the caller has `scope`."""
        if scope not in self.scopes:
            held = ", ".join(self.scopes) or "none"
            raise Forbidden(
                f"This needs a key with the scope {scope}; ask the operator of the "
                f"service for one. Received: the key {self.name!r:.100}, with {held}"
            )


# The caller of a service that runs without keys.
ANYONE = Caller(key_id=None, name="anyone", scopes=Scope.ADMIN.implied)


# Documents in OpenAPI how to send a key; the middleware checks the key.
_bearer = HTTPBearer(auto_error=False, scheme_name="key")


async def _caller(request: Request, _: Annotated[object, Depends(_bearer)]) -> Caller:
    """Returns the caller, whose scope `ScopedRoute` has checked."""
    return cast(Caller, request.state.caller)


AnyCaller = Annotated[Caller, Depends(_caller)]
may_read_metrics = Security(_caller, scopes=[Scope.METRICS])
may_predict = Security(_caller, scopes=[Scope.PREDICT])
may_administer = Security(_caller, scopes=[Scope.ADMIN])
Training = Annotated[Caller, Security(_caller, scopes=[Scope.TRAIN])]


class Keyring:
    """Identifies callers by their keys, and browsers by the tokens of their sessions.

    Refuses what was revoked or signed out at once, or within five seconds if another
    process did it. Accepts known ones for a minute while the database is lost.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        # By the hash of the key or token, and whether it is a token.
        self._known = LastKnown[tuple[bytes, bool], Caller](
            _KNOWN_SECONDS, _SECONDS_WITHOUT_DATABASE
        )

    async def find(self, text: str, *, of_session: bool = False) -> Caller:
        """Returns the caller of a key or token, without the database if it is cached.

        Raises `Unauthenticated` if the key is wrong, or no longer valid.
        """
        place = hashlib.sha256(text.encode()).digest(), of_session
        return await self._known.get(
            place, lambda: self.authenticate(text, of_session=of_session)
        )

    def authenticate(self, text: str, *, of_session: bool = False) -> Caller:
        """Returns the caller of a key or token, as the database has it now."""
        with self._database.reading() as session:
            find = _find_session if of_session else _find_key
            key, expires_at = find(session, text)
            now = self._database.now(session)
        if key.revoked_at is not None:
            raise Unauthenticated(f"The key {key.prefix} was revoked; use another.")
        if key.expires_at is not None and key.expires_at <= now:
            raise Unauthenticated(f"The key {key.prefix} has expired; use another.")
        if now - (key.last_used_at or 0.0) > _USE_SECONDS:
            # A database that takes no writes may still answer.
            Thread(target=self._record_use, args=(key, now), daemon=True).start()
        scopes = max((Scope(scope).implied for scope in key.scopes), key=len)
        ends = None if expires_at is None else datetime.fromtimestamp(expires_at, UTC)
        return Caller(key_id=key.id, name=key.name, scopes=scopes, expires_at=ends)

    def start_session(self, text: str) -> str:
        """Returns the token of a new session of a key."""
        key_id = self.authenticate(text).key_id
        with self._database.reading() as session:
            key = session.get_one(Key, key_id)
        return _signer(key).sign(key.prefix).decode()

    def end_sessions(self, token: str) -> None:
        """Ends all sessions of the key to which the token of a session belongs."""
        with self._database.writing() as session:
            try:
                key, _ = _find_session(session, token)
            except Unauthenticated:
                return  # It has ended before.
            key.sign_outs += 1
        self.clear_cache()

    def clear_cache(self) -> None:
        """Clears the cache after a key was revoked or changed."""
        self._known.clear()

    def _record_use(self, key: Key, now: float) -> None:
        """Records the use of a key, once a minute; only logs an error."""
        try:
            with self._database.writing() as session:
                session.get_one(Key, key.id).last_used_at = now
        except SQLAlchemyError as error:
            why = without_statement(error)
            logger.warning("could not record the use of %r: %s", key.name, why)


def _find_key(session: Session, text: str) -> tuple[Key, float | None]:
    """Returns the key that a client sent, and when it expires."""
    prefix, secret_sha256 = split_credential(text)
    key = find_key(session, prefix)
    if key is None or not hmac.compare_digest(key.secret_sha256, secret_sha256):
        raise Unauthenticated("The key is wrong: this service has no such key.")
    return key, key.expires_at


def _find_session(session: Session, token: str) -> tuple[Key, float | None]:
    """Returns the key of a session, and when the session ends."""
    key = find_key(session, token.partition(".")[0])
    with suppress(BadSignature):
        if key is not None:
            signer = _signer(key)
            _, begin = signer.unsign(token, _SESSION_SECONDS, return_timestamp=True)
            end = begin.timestamp() + _SESSION_SECONDS
            return key, min(end, key.expires_at or math.inf)
    raise Unauthenticated("Your session has ended; sign in again.")


def _signer(key: Key) -> TimestampSigner:
    salt = f"tfbbb session {key.sign_outs}"
    return TimestampSigner(key.secret_sha256, salt=salt, digest_method=hashlib.sha256)
