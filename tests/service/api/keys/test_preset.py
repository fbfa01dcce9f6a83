from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from service.api.keys.credential import Credential, CredentialError, Scope
from service.api.keys.keyring import Keyring
from service.api.keys.repository import add_key, list_keys, preset_admin_key, revoke_key
from service.shared.database import Database, create_tables
from service.shared.errors import Unauthenticated
from service.shared.settings import Settings
from tests.service.postgresql import new_database

FIRST = "ci.0123456789abcdef0123456789abcdef"
SECOND = "ci.fedcba9876543210fedcba9876543210"


def test_a_preset_key_is_made_once(database: Database) -> None:
    for _ in range(2):
        preset_admin_key(database, FIRST)
    with database.reading() as session:
        (key,) = list_keys(session)
    assert key.scopes == ["admin"]


def test_a_changed_secret_takes_the_place_of_the_earlier_one(
    database: Database, settings: Settings
) -> None:
    preset_admin_key(database, FIRST)
    preset_admin_key(database, SECOND)
    keyring = Keyring(database)
    assert keyring.authenticate(SECOND).scopes == set(Scope)
    with pytest.raises(Unauthenticated, match="no such key"):
        keyring.authenticate(FIRST)


def test_a_revoked_key_does_not_come_back(
    database: Database, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    preset_admin_key(database, FIRST)
    with database.writing() as session:
        add_key(database, session, Credential.generate(), "another", [Scope.ADMIN])
        preset = next(key for key in list_keys(session) if key.prefix == "ci")
        revoke_key(database, session, preset.id)
    preset_admin_key(database, FIRST)
    assert "was revoked" in caplog.text
    with pytest.raises(Unauthenticated, match="was revoked"):
        Keyring(database).authenticate(FIRST)


def test_another_key_is_not_taken_over(database: Database) -> None:
    with database.writing() as session:
        add_key(database, session, Credential.parse(FIRST), "mine", [Scope.PREDICT])
    with pytest.raises(CredentialError, match="the prefix of another key"):
        preset_admin_key(database, SECOND)


def test_invalid_key_is_refused_by_the_name_of_its_setting(database: Database) -> None:
    with pytest.raises(CredentialError, match=r"^TFBBB_ADMIN_KEY: .*Received: "):
        preset_admin_key(database, "ci.short")


def test_services_that_start_at_once_add_the_key_once(
    postgresql: str, tmp_path: Path
) -> None:
    database = Database(new_database(postgresql))
    create_tables(database)
    with ThreadPoolExecutor(8) as executor:
        list(executor.map(lambda _: preset_admin_key(database, FIRST), range(8)))
    with database.reading() as session:
        assert len(list_keys(session)) == 1
    database.close()
