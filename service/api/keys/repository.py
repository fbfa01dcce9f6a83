"""The keys in the database."""

import hmac
import logging
from collections.abc import Iterable

import sqlalchemy
from sqlalchemy.orm import Session

from service.api.keys.credential import Credential, CredentialError
from service.api.keys.scope import Scope
from service.shared.database import Database
from service.shared.database.tables import Key
from service.shared.errors import LastAdminKey, UnknownKey

logger = logging.getLogger(__name__)

_PRESET = "TFBBB_ADMIN_KEY"


def is_usable(now: float) -> sqlalchemy.ColumnElement[bool]:
    """Whether a key is neither revoked nor expired at the time `now`."""
    unexpired = sqlalchemy.or_(Key.expires_at.is_(None), Key.expires_at > now)
    return sqlalchemy.and_(Key.revoked_at.is_(None), unexpired)


def is_key_usable(database: Database, session: Session, key_id: str | None) -> bool:
    """Whether a key may still be used; None stands for a service without keys."""
    usable = is_usable(database.now(session))
    query = sqlalchemy.select(Key.id).where(Key.id == key_id, usable)
    return key_id is None or session.scalar(query) is not None


def has_admin_key(database: Database) -> bool:
    """Whether there is a usable key with the scope `admin`."""
    with database.reading() as session:
        usable = is_usable(database.now(session))
        keys = session.scalars(sqlalchemy.select(Key).where(usable))
        return any(Scope.ADMIN in key.scopes for key in keys)


def list_keys(session: Session) -> list[Key]:
    """All keys, the newest first."""
    return list(session.scalars(sqlalchemy.select(Key).order_by(Key.created_at.desc())))


def revoke_key(database: Database, session: Session, key_id: str) -> Key:
    """Takes everything from a key that it allowed, for ever.

    Raises:
        UnknownKey: If there is none with this id.
        LastAdminKey: If no other key allows to make keys.
    """
    now = database.now(session)
    usable = sqlalchemy.select(Key).where(is_usable(now)).with_for_update()
    admins = [key.id for key in session.scalars(usable) if Scope.ADMIN in key.scopes]
    if admins == [key_id]:
        raise LastAdminKey(
            "Nobody could make keys any more without this one: make another with the "
            "scope admin first (`tfbbb keys create` does so, too). "
            f"Received: {key_id}"
        )
    key = session.get(Key, key_id)
    if key is None:
        raise UnknownKey(
            f"There is no such key; /v1/keys lists those there are. Received: {key_id}"
        )
    key.revoked_at = key.revoked_at or now
    return key


def add_key(
    database: Database,
    session: Session,
    credential: Credential,
    name: str,
    scopes: Iterable[Scope],
    **limits: float | None,
) -> Key:
    """Stores a key, of whose secret only the hash.

    Args:
        database: The database of the transaction.
        session: The transaction.
        credential: What its owner will send.
        name: What it is for.
        scopes: What it allows.
        **limits: `expires_at`, `max_datasets`, `max_dataset_bytes`,
            `max_queued_jobs`.

    Raises:
        CredentialError: If there is a key with this prefix.
    """
    taken = session.scalar(
        sqlalchemy.select(Key.id).where(Key.prefix == credential.prefix)
    )
    if taken is not None:
        raise CredentialError(
            "There is a key with this prefix already, perhaps revoked; choose another. "
            f"Received: {credential.prefix}"
        )
    key = Key(
        name=name,
        prefix=credential.prefix,
        secret_sha256=credential.sha256,
        scopes=sorted({str(scope) for scope in scopes}),
        created_at=database.now(session),
        **limits,
    )
    session.add(key)
    session.flush()
    return key


def preset_admin_key(database: Database, text: str) -> None:
    """Sees to it that the key of the environment is one.

    A secret that has changed since the last start takes the place of the earlier one. A
    key that was revoked stays so.

    Raises:
        CredentialError: If its secret could be guessed, it is of another form, or it
            is that of a key that may less.
    """
    try:
        credential = Credential.preset(text)
    except CredentialError as error:
        raise CredentialError(f"{_PRESET}: {error}") from None
    with database.writing() as session:
        key = session.scalar(
            sqlalchemy.select(Key).where(Key.prefix == credential.prefix)
        )
        if key is None:
            add_key(database, session, credential, _PRESET, [Scope.ADMIN])
            return
        is_same = hmac.compare_digest(key.secret_sha256, credential.sha256)
        if not is_same and key.name != _PRESET:
            raise CredentialError(
                f"{_PRESET} has the prefix of another key; choose another. "
                f"Received: {credential.prefix}"
            )
        if Scope.ADMIN not in key.scopes:
            raise CredentialError(
                f"{_PRESET} must be an admin key, or one that is not known yet. "
                f"Received: the key {key.name!r:.100}, with {', '.join(key.scopes)}"
            )
        if key.revoked_at is not None:
            logger.warning(
                "the key of %s was revoked and is refused: preset another prefix",
                _PRESET,
            )
        key.secret_sha256 = credential.sha256
