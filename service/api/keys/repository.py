"""Keys in the database."""

import ipaddress
import logging
from collections.abc import Iterable, Sequence
from datetime import datetime

from pydantic import BaseModel
from sqlalchemy import ColumnElement, and_, or_, select
from sqlalchemy.orm import Session

from service.api.keys.credential import Scope, generate_credential, split_credential
from service.shared.database import Database
from service.shared.database.tables import Key
from service.shared.errors import (
    KeyNameInUse,
    LastAdminKey,
    Unauthenticated,
    UnknownKey,
)
from service.shared.settings import Settings

logger = logging.getLogger(__name__)

_PRESET = "TFBBB_ADMIN_KEY"


class KeySummary(BaseModel, from_attributes=True):
    """A key without its secret."""

    id: str
    name: str
    prefix: str
    scopes: list[Scope]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None


def is_usable(now: float) -> ColumnElement[bool]:
    """Returns the condition that a key is neither revoked nor expired."""
    unexpired = or_(Key.expires_at.is_(None), Key.expires_at > now)
    return and_(Key.revoked_at.is_(None), unexpired)


def list_keys(session: Session) -> Sequence[Key]:
    """Returns all keys, newest first."""
    return session.scalars(select(Key).order_by(Key.created_at.desc())).all()


def find_key(session: Session, prefix: str) -> Key | None:
    """Returns the key with a prefix, also a revoked one."""
    return session.scalar(select(Key).where(Key.prefix == prefix))


def revoke_key(database: Database, key_id: str) -> Key:
    """Revokes the key of an id or a prefix for ever, with its sessions."""
    with database.writing() as session:
        key = session.get(Key, key_id) or find_key(session, key_id)
        if key is None:
            raise UnknownKey(
                "There is no key with this id or prefix; `tfbbb keys list` lists the "
                f"keys. Received: {key_id}"
            )
        now = database.now(session)
        if _admin_keys(session, now) == [key.id]:
            raise LastAdminKey(
                "This is the last key that can create keys: create another key with "
                f"the scope admin first. Received: {key_id}"
            )
        key.revoked_at = key.revoked_at or now
        return key


def create_key(
    database: Database, name: str, scopes: Iterable[Scope], seconds: float | None = None
) -> tuple[Key, str]:
    """Returns a new key and `prefix.secret`; no other usable key has its name."""
    credential = generate_credential()
    with database.writing() as session:
        database.lock(session, "the names of keys")
        now = database.now(session)
        same_name = select(Key).where(Key.name == name, is_usable(now))
        if (other := session.scalar(same_name.limit(1))) is not None:
            raise KeyNameInUse(
                f"The key {other.prefix} has this name: choose another name, or "
                f"revoke that key first. Received: {name!r:.100}"
            )
        ends = None if seconds is None else now + seconds
        return add_key(database, session, credential, name, scopes, ends), credential


def add_key(
    database: Database,
    session: Session,
    credential: str,
    name: str,
    scopes: Iterable[Scope],
    expires_at: float | None = None,
) -> Key:
    """Adds a key; stores only the hash of its secret."""
    prefix, secret_sha256 = split_credential(credential)
    key = Key(
        name=name,
        prefix=prefix,
        secret_sha256=secret_sha256,
        scopes=sorted({str(scope) for scope in scopes}),
        created_at=database.now(session),
        expires_at=expires_at,
    )
    session.add(key)
    session.flush()
    return key


def preset_admin_key(database: Database, text: str) -> None:
    """Adds the admin key of the environment variable, or updates its secret.

    A revoked key stays revoked.
    """
    try:
        prefix, secret_sha256 = split_credential(text)
    except Unauthenticated as error:
        raise Unauthenticated(f"{_PRESET}: {error}") from None
    with database.writing() as session:
        # Several services may start on one database at the same time.
        database.lock(session, "the preset admin key")
        key = find_key(session, prefix)
        if key is None:
            add_key(database, session, text, _PRESET, [Scope.ADMIN])
            return
        if key.secret_sha256 != secret_sha256 and key.name != _PRESET:
            raise Unauthenticated(
                f"{_PRESET} has the prefix of another key; choose another prefix. "
                f"Received: {prefix}"
            )
        if key.revoked_at is not None:
            logger.warning("%s was revoked: set a key with another prefix", _PRESET)
        key.secret_sha256 = secret_sha256


def create_first_key(database: Database, settings: Settings, host: str) -> str | None:
    """Ensures that a prepared service that is about to listen has an admin key."""
    # `_admin_keys` locks, which PostgreSQL refuses in a transaction that reads.
    with database.writing() as session:
        has_admin = bool(_admin_keys(session, database.now(session)))
    if settings.insecure or has_admin:
        return None
    if not is_loopback(host):
        raise Unauthenticated(
            f"Other machines can reach {host}, but the service has no key yet: set "
            "TFBBB_ADMIN_KEY to `prefix.secret`, or create a key with `tfbbb keys "
            "create NAME --scope admin`, or allow everybody with --insecure."
        )
    return create_key(database, "first start", [Scope.ADMIN])[1]


def is_loopback(host: str) -> bool:
    """Returns whether only this machine can reach an address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False  # A host name may resolve to any address.


def _admin_keys(session: Session, now: float) -> list[str]:
    """Returns the ids of the usable admin keys, and locks them in a writing session."""
    usable = session.scalars(select(Key).where(is_usable(now)).with_for_update())
    return [key.id for key in usable if Scope.ADMIN in key.scopes]
