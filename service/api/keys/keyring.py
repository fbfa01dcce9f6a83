"""Finds the key of a credential, with a short cache."""

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

# For how long a key that was found is taken for good without another look, so that
# quick predictions need not wait for the database.
_KNOWN_SECONDS = 5.0
_USE_SECONDS = 60.0


class _Known(NamedTuple):
    caller: Caller
    sha256: str
    until: float


class Keyring:
    """Tells callers by the keys they send.

    A key that is revoked through another process is refused within five seconds, one
    that is revoked through this one at once.

    Args:
        database: Where the keys are.
        settings: The limits of keys that have none of their own.
    """

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self._settings = settings
        self._known: dict[str, _Known] = {}
        self._uses: dict[str, float] = {}
        self._recording = threading.Lock()

    def recall(self, credential: Credential) -> Caller | None:
        """The caller, if the key was found a moment ago; asks no database."""
        known = self._known.get(credential.prefix)
        if known is None or known.until < time.monotonic():
            return None
        matches = hmac.compare_digest(known.sha256, credential.sha256)
        return known.caller if matches else None

    def authenticate(self, credential: Credential) -> Caller:
        """The caller whose key this is.

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
            raise Unauthenticated("The key is wrong: no such key was made here.")
        if key.revoked_at is not None:
            raise Unauthenticated(f"The key {key.prefix} was revoked; use another.")
        if key.expires_at is not None and key.expires_at <= now:
            raise Unauthenticated(f"The key {key.prefix} has expired; use another.")
        left = _KNOWN_SECONDS if key.expires_at is None else key.expires_at - now
        caller = Caller.from_key(key, self._settings)
        # Where `forget` came meanwhile, nobody asks this one any more.
        known[key.prefix] = _Known(
            caller, key.secret_sha256, time.monotonic() + min(left, _KNOWN_SECONDS)
        )
        return caller

    def forget(self) -> None:
        """Looks every key up anew: one was revoked or changed."""
        self._known = {}

    def is_use_due(self, caller: Caller) -> bool:
        """Whether the time of last use should be written, once a minute at most."""
        now, key_id = time.monotonic(), caller.key_id
        with self._recording:
            if key_id is None or now - self._uses.get(key_id, -1e9) < _USE_SECONDS:
                return False
            self._uses[key_id] = now
        return True

    def record_use(self, caller: Caller) -> None:
        """Writes down that the key was used; no request fails because it can't be."""
        try:
            with self._database.writing() as session:
                session.execute(
                    sqlalchemy.update(Key)
                    .where(Key.id == caller.key_id)
                    .values(last_used_at=self._database.now(session))
                )
        except SQLAlchemyError as error:
            why = without_statement(error)
            logger.warning("can't write that a key was used: %s", why)
