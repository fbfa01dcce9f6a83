import time

import pytest
from sqlalchemy import select

from service.api.keys.repository import is_usable
from service.shared.database import Database
from service.shared.database.tables import Key


@pytest.mark.parametrize(
    ("ends", "good"),
    [
        ({}, True),
        ({"expires_at": time.time() + 3600}, True),
        ({"expires_at": time.time() - 1}, False),
        ({"revoked_at": 1.0}, False),
    ],
)
def test_keys_are_usable_until_they_expire_or_are_revoked(
    database: Database, ends: dict[str, float], good: bool
) -> None:
    with database.writing() as session:
        session.add(
            Key(
                id="key",
                name="key",
                prefix="prefix",
                secret_sha256="0" * 64,
                scopes=["train"],
                created_at=1.0,
                **ends,
            )
        )
    with database.reading() as session:
        usable = select(Key.id).where(is_usable(database.now(session)))
        assert session.scalars(usable).all() == ["key"] * good
