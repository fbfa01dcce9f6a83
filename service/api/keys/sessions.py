"""Sessions of browsers in the database."""

import math

import sqlalchemy
from sqlalchemy.orm import Session

from service.api.keys.caller import Caller
from service.api.keys.credential import Credential
from service.shared.database import Database
from service.shared.database.tables import BrowserSession

# A browser that opens the printed URL again and again starts a session each time.
_MOST_PER_KEY = 100


def start_session(
    database: Database, caller: Caller, seconds: float
) -> tuple[Credential, float]:
    """Starts a session of a key; stores only the hash of its secret.

    Removes the sessions that have expired, and the oldest of a key with too many.
    """
    token = Credential.generate("session")
    with database.writing() as session:
        now = database.now(session)
        expires_at = min(now + seconds, caller.expires_at or math.inf)
        expired = BrowserSession.expires_at <= now
        session.execute(sqlalchemy.delete(BrowserSession).where(expired))
        newest = (
            sqlalchemy.select(BrowserSession.prefix)
            .where(BrowserSession.key_id == caller.key_id)
            .order_by(BrowserSession.created_at.desc())
        )
        oldest = session.scalars(newest).all()[_MOST_PER_KEY - 1 :]
        if oldest:
            session.execute(
                sqlalchemy.delete(BrowserSession).where(
                    BrowserSession.prefix.in_(oldest)
                )
            )
        session.add(
            BrowserSession(
                prefix=token.prefix,
                secret_sha256=token.sha256,
                key_id=caller.key_id,
                created_at=now,
                expires_at=expires_at,
            )
        )
    return token, expires_at


def end_session(database: Database, token: Credential) -> None:
    """Ends the session of a cookie, if there is one."""
    with database.writing() as session:
        session.execute(
            sqlalchemy.delete(BrowserSession).where(
                BrowserSession.prefix == token.prefix,
                BrowserSession.secret_sha256 == token.sha256,
            )
        )


def end_sessions(session: Session, key_id: str) -> None:
    """Ends all sessions of a key, in the caller's transaction."""
    of_key = BrowserSession.key_id == key_id
    session.execute(sqlalchemy.delete(BrowserSession).where(of_key))
