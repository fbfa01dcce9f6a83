"""Keys in the database."""

import hmac
import ipaddress
import logging
from collections.abc import Iterable, Sequence

from sqlalchemy import ColumnElement, and_, or_, select
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


def is_usable(now: float) -> ColumnElement[bool]:
    """Returns the condition that a key is neither revoked nor expired."""
    unexpired = or_(Key.expires_at.is_(None), Key.expires_at > now)
    return and_(Key.revoked_at.is_(None), unexpired)


def is_key_usable(database: Database, session: Session, key_id: str | None) -> bool:
    """Returns whether a key is still valid; None means a service without keys."""
    usable = select(Key.id).where(Key.id == key_id, is_usable(database.now(session)))
    return key_id is None or session.scalar(usable) is not None


def list_keys(session: Session) -> Sequence[Key]:
    """Returns all keys, newest first."""
    return session.scalars(select(Key).order_by(Key.created_at.desc())).all()


def find_key(session: Session, prefix: str) -> Key | None:
    """Returns the key with a prefix, also a revoked one."""
    return session.scalar(select(Key).where(Key.prefix == prefix))


def revoke_key(database: Database, session: Session, key_id: str) -> Key:
    """Revokes a key for ever, with its sessions."""
    now = database.now(session)
    if _admin_keys(session, now) == [key_id]:
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
    if find_key(session, credential.prefix) is not None:
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
        key = find_key(session, credential.prefix)
        if key is None:
            add_key(database, session, credential, _PRESET, [Scope.ADMIN])
            return
        is_same = hmac.compare_digest(key.secret_sha256, credential.sha256)
        if Scope.ADMIN not in key.scopes or not (is_same or key.name == _PRESET):
            raise CredentialError(
                f"{_PRESET} has the prefix of another key; choose another prefix. "
                f"Received: {credential.prefix}"
            )
        if key.revoked_at is not None:
            logger.warning(
                "the key of %s was revoked: set a key with another prefix", _PRESET
            )
        key.secret_sha256 = credential.sha256


def create_first_key(
    database: Database, settings: Settings, host: str
) -> Credential | None:
    """Ensures that a prepared service that is about to listen has an admin key."""
    # `_admin_keys` locks, which PostgreSQL refuses in a transaction that reads.
    with database.writing() as session:
        has_admin = bool(_admin_keys(session, database.now(session)))
    if settings.insecure or has_admin:
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


def _admin_keys(session: Session, now: float) -> list[str]:
    """Returns the ids of the usable admin keys, and locks them in a writing session."""
    usable = session.scalars(select(Key).where(is_usable(now)).with_for_update())
    return [key.id for key in usable if Scope.ADMIN in key.scopes]
