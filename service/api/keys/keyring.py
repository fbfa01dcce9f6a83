"""Authenticates credentials, with a short cache."""

import asyncio
import hmac
import logging
import math
import threading
import time
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import sqlalchemy
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from service.api.http.outages import without_statement
from service.api.keys.caller import Caller
from service.api.keys.credential import Credential
from service.api.patience import NoAnswerError, Patience
from service.shared.database import Database
from service.shared.database.tables import BrowserSession, Key
from service.shared.errors import Unauthenticated
from service.shared.settings import Settings

logger = logging.getLogger(__name__)

# Time for which an authenticated key is cached, so that fast predictions need not wait
# for the database.
_KNOWN_SECONDS = 5.0
# Time for which it is accepted if the database is lost meanwhile.
_SECONDS_WITHOUT_DATABASE = 600.0
_USE_SECONDS = 60.0


class _CachedKey(NamedTuple):
    caller: Caller
    sha256: str
    # When to ask the database again, and the time to which the key is valid without it.
    until: float
    valid_until: float

    def is_of(self, credential: Credential) -> bool:
        return hmac.compare_digest(self.sha256, credential.sha256)


class Keyring:
    """Identifies callers by their keys, and browsers by the tokens of their sessions.

    Refuses a revoked key, or the token of a session that was ended, at once if this
    process ended it, and within five seconds if another process did, on any machine.
    While the database is slow or lost, accepts those that it knows for ten minutes.
    """

    def __init__(
        self, database: Database, settings: Settings, patience: Patience
    ) -> None:
        self._database = database
        self._settings = settings
        self._patience = patience
        # By the prefix, and whether it is that of a session.
        self._known: dict[tuple[str, bool], _CachedKey] = {}
        self._uses: dict[str, float] = {}
        self._recording = threading.Lock()

    def knows(self, text: str, *, of_session: bool = False) -> bool:
        """Whether a key, or the token of a session, was right in the last minutes."""
        prefix, _, secret = text.partition(".")
        known = self._known.get((prefix, of_session))
        return (
            known is not None
            and known.valid_until >= time.monotonic()
            and known.is_of(Credential(prefix, secret))
        )

    async def find(self, credential: Credential, *, of_session: bool = False) -> Caller:
        """Returns the caller who owns a key, without the database if it is cached."""
        now = time.monotonic()
        known = self._known.get((credential.prefix, of_session))
        ask = partial(self.authenticate, credential, of_session=of_session)
        if known is None or not known.is_of(credential) or known.valid_until < now:
            return await asyncio.to_thread(ask)
        if known.until >= now:
            return known.caller
        try:
            return await self._patience.ask(f"the key {credential.prefix}", ask)
        except NoAnswerError:
            return known.caller

    def authenticate(
        self, credential: Credential, *, of_session: bool = False
    ) -> Caller:
        """Returns the caller who owns a key, as the database has it now."""
        # If `clear_cache` replaces the cache meanwhile, no change here is ever read.
        cache = self._known
        try:
            return self._ask(credential, of_session)
        except Unauthenticated:
            place = (credential.prefix, of_session)
            known = cache.get(place)
            if known is not None and known.is_of(credential):
                cache.pop(place, None)
            raise

    def _ask(self, credential: Credential, of_session: bool) -> Caller:
        """Looks a key or a session up in the database."""
        known = self._known
        with self._database.reading() as session:
            find = _find_session if of_session else _find_key
            key, expires_at = find(session, credential)
            now = self._database.now(session)
        if key.revoked_at is not None:
            raise Unauthenticated(f"The key {key.prefix} was revoked; use another.")
        if key.expires_at is not None and key.expires_at <= now:
            raise Unauthenticated(f"The key {key.prefix} has expired; use another.")
        if expires_at is not None and expires_at <= now:
            raise Unauthenticated("Your session has ended; sign in again.")
        left = math.inf if expires_at is None else expires_at - now
        caller, clock = Caller.from_key(key, self._settings), time.monotonic()
        caller = replace(caller, expires_at=expires_at)
        # If `clear_cache` has replaced the cache meanwhile, this entry is never read.
        known[credential.prefix, of_session] = _CachedKey(
            caller,
            credential.sha256,
            clock + min(left, _KNOWN_SECONDS),
            clock + min(left, _SECONDS_WITHOUT_DATABASE),
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
            logger.warning("could not record the use of %r: %s", caller.name, why)


def _find_key(session: Session, credential: Credential) -> tuple[Key, float | None]:
    """Returns the key of a credential, and when it expires."""
    key = session.scalar(sqlalchemy.select(Key).where(Key.prefix == credential.prefix))
    if key is None or not hmac.compare_digest(key.secret_sha256, credential.sha256):
        raise Unauthenticated("The key is wrong: this service has no such key.")
    return key, key.expires_at


def _find_session(session: Session, token: Credential) -> tuple[Key, float | None]:
    """Returns the key of a session, and when the session ends."""
    found = session.get(BrowserSession, token.prefix)
    if found is None or not hmac.compare_digest(found.secret_sha256, token.sha256):
        raise Unauthenticated("Your session has ended; sign in again.")
    return session.get_one(Key, found.key_id), found.expires_at
