"""Authenticates credentials, with a short cache."""

import hmac
import logging
import threading
import time
from typing import NamedTuple

import sqlalchemy
from sqlalchemy.exc import SQLAlchemyError

from service.api.http.outages import without_statement
from service.api.keys.caller import Caller
from service.api.keys.credential import Credential
from service.shared.database import Database
from service.shared.database.tables import Key
from service.shared.errors import Unauthenticated
from service.shared.settings import Settings

logger = logging.getLogger(__name__)

# Time for which an authenticated key is cached, so that fast predictions need not wait
# for the database.
_KNOWN_SECONDS = 5.0
_USE_SECONDS = 60.0


class _CachedKey(NamedTuple):
    caller: Caller
    sha256: str
    until: float


class Keyring:
    """Identifies callers by their keys.

    Refuses a revoked key at once if this process revoked it, and within five seconds if
    another process did.

    Args:
        database: Holds the keys.
        settings: Limits of keys without own limits.
    """

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self._settings = settings
        self._known: dict[str, _CachedKey] = {}
        self._uses: dict[str, float] = {}
        self._recording = threading.Lock()

    def find_cached(self, credential: Credential) -> Caller | None:
        """Returns the caller of a cached key, or None; does not query the database."""
        known = self._known.get(credential.prefix)
        if known is None or known.until < time.monotonic():
            return None
        matches = hmac.compare_digest(known.sha256, credential.sha256)
        return known.caller if matches else None

    def authenticate(self, credential: Credential) -> Caller:
        """Returns the caller who owns a key.

        Raises:
            Unauthenticated: If the key is unknown, expired or revoked.
        """
        known = self._known
        with self._database.reading() as session:
            key = session.scalar(
                sqlalchemy.select(Key).where(Key.prefix == credential.prefix)
            )
            now = self._database.now(session)
        if key is None or not hmac.compare_digest(key.secret_sha256, credential.sha256):
            raise Unauthenticated("The key is wrong: this service has no such key.")
        if key.revoked_at is not None:
            raise Unauthenticated(f"The key {key.prefix} was revoked; use another.")
        if key.expires_at is not None and key.expires_at <= now:
            raise Unauthenticated(f"The key {key.prefix} has expired; use another.")
        left = _KNOWN_SECONDS if key.expires_at is None else key.expires_at - now
        caller = Caller.from_key(key, self._settings)
        # If `clear_cache` has replaced the cache meanwhile, this entry is never read.
        known[key.prefix] = _CachedKey(
            caller, key.secret_sha256, time.monotonic() + min(left, _KNOWN_SECONDS)
        )
        return caller

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
            logger.warning("could not record the use of a key: %s", why)
