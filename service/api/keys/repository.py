"""Keys in the database."""

import hmac
import ipaddress
import logging
from collections.abc import Iterable

import sqlalchemy
from sqlalchemy.orm import Session

from service.api.keys.credential import Credential, CredentialError, Scope
from service.shared.database import Database
from service.shared.database.tables import Key
from service.shared.errors import LastAdminKey, UnknownKey
from service.shared.settings import Settings

logger = logging.getLogger(__name__)

_PRESET = "TFBBB_ADMIN_KEY"


class NoKeyError(Exception):
    """The service has no key, so nobody could use it; the message has the remedy."""


def is_usable(now: float) -> sqlalchemy.ColumnElement[bool]:
    """Returns the condition that a key is neither revoked nor expired."""
    unexpired = sqlalchemy.or_(Key.expires_at.is_(None), Key.expires_at > now)
    return sqlalchemy.and_(Key.revoked_at.is_(None), unexpired)


def is_key_usable(database: Database, session: Session, key_id: str | None) -> bool:
    """Returns whether a key is still valid; None means a service without keys."""
    usable = is_usable(database.now(session))
    query = sqlalchemy.select(Key.id).where(Key.id == key_id, usable)
    return key_id is None or session.scalar(query) is not None


def list_keys(session: Session) -> list[Key]:
    """Returns all keys, newest first."""
    return list(session.scalars(sqlalchemy.select(Key).order_by(Key.created_at.desc())))


def revoke_key(database: Database, session: Session, key_id: str) -> Key:
    """Revokes a key for ever, with its sessions."""
    now = database.now(session)
    usable = sqlalchemy.select(Key).where(is_usable(now)).with_for_update()
    admins = [key.id for key in session.scalars(usable) if Scope.ADMIN in key.scopes]
    if admins == [key_id]:
        raise LastAdminKey(
            "This is the last key that can create keys: create another key with the "
            "scope admin first, e.g. with `tfbbb keys create`. "
            f"Received: {key_id}"
        )
    key = session.get(Key, key_id)
    if key is None:
        raise UnknownKey(
            f"There is no such key; `GET /v1/keys` lists the keys. Received: {key_id}"
        )
    key.revoked_at = key.revoked_at or now
    return key


def add_key(
    database: Database,
    session: Session,
    credential: Credential,
    name: str,
    scopes: Iterable[Scope],
    expires_at: float | None = None,
) -> Key:
    """Adds a key; stores only the hash of its secret."""
    taken = session.scalar(
        sqlalchemy.select(Key.id).where(Key.prefix == credential.prefix)
    )
    if taken is not None:
        raise CredentialError(
            "A key has this prefix already, perhaps a revoked one; choose another "
            f"prefix. Received: {credential.prefix}"
        )
    key = Key(
        name=name,
        prefix=credential.prefix,
        secret_sha256=credential.sha256,
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
        credential = Credential.preset(text)
    except CredentialError as error:
        raise CredentialError(f"{_PRESET}: {error}") from None
    with database.writing() as session:
        # Several services may start on one database at the same time.
        database.lock(session, "the preset admin key")
        key = session.scalar(
            sqlalchemy.select(Key).where(Key.prefix == credential.prefix)
        )
        if key is None:
            add_key(database, session, credential, _PRESET, [Scope.ADMIN])
            return
        is_same = hmac.compare_digest(key.secret_sha256, credential.sha256)
        if not is_same and key.name != _PRESET:
            raise CredentialError(
                f"{_PRESET} has the prefix of another key; choose another prefix. "
                f"Received: {credential.prefix}"
            )
        if Scope.ADMIN not in key.scopes:
            raise CredentialError(
                f"{_PRESET} must be an admin key, or a new key. "
                f"Received: the key {key.name!r:.100}, with {', '.join(key.scopes)}"
            )
        if key.revoked_at is not None:
            logger.warning(
                "the key of %s was revoked: set a key with another prefix", _PRESET
            )
        key.secret_sha256 = credential.sha256


def create_first_key(
    database: Database, settings: Settings, host: str
) -> Credential | None:
    """Ensures that a service that is about to listen has an admin key."""
    if settings.admin_key is not None:
        preset_admin_key(database, settings.admin_key.get_secret_value())
    with database.reading() as session:
        usable = sqlalchemy.select(Key).where(is_usable(database.now(session)))
        admins = [key for key in session.scalars(usable) if Scope.ADMIN in key.scopes]
    if settings.insecure or admins:
        return None
    if not is_loopback(host):
        raise NoKeyError(
            f"Other machines can reach {host}, but the service has no key yet: set "
            "TFBBB_ADMIN_KEY to `prefix.secret`, or create a key with `tfbbb keys "
            "create NAME --scope admin`, or allow everybody with --insecure."
        )
    credential = Credential.generate()
    with database.writing() as session:
        add_key(database, session, credential, "first start", [Scope.ADMIN])
    return credential


def is_loopback(host: str) -> bool:
    """Returns whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False  # A host name may resolve to any address.
