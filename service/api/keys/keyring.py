"""Authenticates keys and sessions, with a short cache."""

import asyncio
import hashlib
import hmac
import logging
import threading
import time
from dataclasses import dataclass, replace

import sqlalchemy
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from service.api.http.outages import DATABASE_OUTAGES, without_statement
from service.api.keys.browser import InvalidTokenError, sign_token, token_end
from service.api.keys.caller import Caller
from service.api.keys.credential import Credential, CredentialError
from service.shared.database import Database
from service.shared.database.tables import Key
from service.shared.errors import Unauthenticated
from service.shared.settings import Settings

logger = logging.getLogger(__name__)

# Time for which an authenticated key is cached, so that fast predictions need not wait
# for the database, and time for which it is accepted while the database is lost.
_KNOWN_SECONDS, _SECONDS_WITHOUT_DATABASE = 5.0, 60.0
# Time in which the database must answer for a key that is known.
_PATIENCE_SECONDS = 1.0
_USE_SECONDS = 60.0


@dataclass(frozen=True)
class _KnownCaller:
    """A caller, until when it is cached and until when it is accepted."""

    caller: Caller
    ask_again_at: float
    valid_until: float


class Keyring:
    """Identifies callers by their keys, and browsers by the tokens of their sessions.

    Refuses a revoked key at once if this process revoked it, and within five seconds if
    another process did, on any machine. While the database is slow or lost, accepts
    those that it knows for a minute.
    """

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self._settings = settings
        # By the hash of the key or token, and whether it is a token.
        self._known: dict[tuple[bytes, bool], _KnownCaller] = {}
        self._uses: dict[str, float] = {}
        self._recording = threading.Lock()

    async def find(self, text: str, *, of_session: bool = False) -> Caller:
        """Returns the caller of a key or token, without the database if it is cached.

        Raises:
            Unauthenticated: The key is wrong, or no longer valid.
        """
        place = hashlib.sha256(text.encode()).digest(), of_session
        # If `clear_cache` replaces the cache meanwhile, no change here is ever read.
        cache, now = self._known, time.monotonic()
        known = cache.get(place)
        if known is not None and now < known.ask_again_at:
            return known.caller
        if known is not None and now >= known.valid_until:
            known = None
        asking = asyncio.to_thread(self.authenticate, text, of_session=of_session)
        try:
            patience = None if known is None else _PATIENCE_SECONDS
            caller = await asyncio.wait_for(asking, patience)
        except Unauthenticated:
            cache.pop(place, None)
            raise
        except (TimeoutError, *DATABASE_OUTAGES) as error:
            if known is None:
                raise
            logger.warning("a key is accepted as it was known: %r", error)
            cache[place] = replace(known, ask_again_at=now + _KNOWN_SECONDS)
            return known.caller
        cache[place] = _KnownCaller(
            caller, now + _KNOWN_SECONDS, now + _SECONDS_WITHOUT_DATABASE
        )
        return caller

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
        return replace(Caller.from_key(key, self._settings), expires_at=expires_at)

    def start_session(self, caller: Caller) -> tuple[str, float]:
        """Returns the token of a new session, and when the session ends."""
        with self._database.reading() as session:
            key = session.get_one(Key, caller.key_id)
        token = sign_token(key)
        return token, token_end(key, token)

    def clear_cache(self) -> None:
        """Clears the cache after a key was revoked or changed."""
        self._known = {}

    def is_use_due(self, caller: Caller) -> bool:
        """Whether to record the time of use now, which is done once a minute."""
        now, key_id = time.monotonic(), caller.key_id
        with self._recording:
            if key_id is None or now - self._uses.get(key_id, -1e9) < _USE_SECONDS:
                return False
            self._uses[key_id] = now
        return True

    def record_use(self, caller: Caller) -> None:
        """Records the use of a key; only logs an error of the database."""
        try:
            with self._database.writing() as session:
                session.execute(
                    sqlalchemy.update(Key)
                    .where(Key.id == caller.key_id)
                    .values(last_used_at=self._database.now(session))
                )
        except SQLAlchemyError as error:
            why = without_statement(error)
            logger.warning("could not record the use of %r: %s", caller.name, why)


def _find_key(session: Session, text: str) -> tuple[Key, float | None]:
    """Returns the key that a client sent, and when it expires."""
    try:
        credential = Credential.parse(text)
    except CredentialError as error:
        raise Unauthenticated(str(error)) from None
    key = _key_with_prefix(session, credential.prefix)
    if key is None or not hmac.compare_digest(key.secret_sha256, credential.sha256):
        raise Unauthenticated("The key is wrong: this service has no such key.")
    return key, key.expires_at


def _find_session(session: Session, token: str) -> tuple[Key, float | None]:
    """Returns the key of a session, and when the session ends."""
    try:
        key = _key_with_prefix(session, token.partition(".")[0])
        if key is not None:
            return key, token_end(key, token)
    except InvalidTokenError:
        pass
    raise Unauthenticated("Your session has ended; sign in again.")


def _key_with_prefix(session: Session, prefix: str) -> Key | None:
    return session.scalar(sqlalchemy.select(Key).where(Key.prefix == prefix))
