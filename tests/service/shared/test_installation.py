"""A database and the store whose files it describes."""

import shutil
from pathlib import Path

import pytest

from service.shared.database import Database, upgrade
from service.shared.installation import InstallationError, check_installation
from service.shared.settings import Settings
from tests.service.stores import S3


@pytest.fixture
def first(database_url: str, tmp_path: Path) -> Settings:
    """A service with a database outside its data directory."""
    return Settings(data_dir=tmp_path / "first", database_url=database_url)


@pytest.fixture
def shared(first: Settings, tmp_path: Path) -> Database:
    database = Database(first.effective_database_url)
    upgrade(database)
    return database


def test_services_on_one_database_with_other_files_are_refused_by_name(
    first: Settings, shared: Database, tmp_path: Path
) -> None:
    second = first.model_copy(update={"data_dir": tmp_path / "second"})
    for _ in range(2):
        check_installation(shared, first)
    with pytest.raises(InstallationError) as refused:
        check_installation(shared, second)
    said = str(refused.value)
    assert f"The database {shared.name} describes the files in {tmp_path}/first" in said
    assert f"and not those in {tmp_path}/second" in said
    # What the message says for a restored copy.
    identity = said.split("write ")[1].split(" into")[0]
    (tmp_path / "second" / "identity").write_text(identity + "\n")
    check_installation(shared, second)
    shared.close()


def test_a_moved_data_directory_keeps_its_identity(
    first: Settings, shared: Database, tmp_path: Path
) -> None:
    check_installation(shared, first)
    shutil.move(tmp_path / "first", tmp_path / "moved")
    check_installation(
        shared, first.model_copy(update={"data_dir": tmp_path / "moved"})
    )
    shared.close()


def test_replicas_with_one_object_store_have_directories_of_their_own(
    first: Settings, shared: Database, tmp_path: Path, s3: S3
) -> None:
    url = s3.new_store()
    replicas = [
        first.model_copy(update={"data_dir": tmp_path / name, "store": url})
        for name in ("a", "b")
    ]
    for replica in replicas:
        check_installation(shared, replica)
    elsewhere = first.model_copy(update={"store": s3.new_store()})
    with pytest.raises(InstallationError, match=f"files in {url}, and not those in"):
        check_installation(shared, elsewhere)
    shared.close()


def test_a_database_in_the_data_directory_goes_with_its_files(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path / "data")
    database = Database(settings.effective_database_url)
    upgrade(database)
    check_installation(database, settings)
    database.close()
    assert not (tmp_path / "data" / "identity").exists()
