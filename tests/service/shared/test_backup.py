import shutil

import pytest
import sqlalchemy

from service.shared import backup
from service.shared.backup import BackupError, back_up
from service.shared.database import Database, create_tables
from service.shared.database.tables import Dataset, ModelVersion
from service.shared.queue import Queue
from service.shared.settings import Settings
from tests.service.queued import add_table
from tests.service.recorded import add_versions
from tests.service.serving import serving


@pytest.fixture
def settings(tmp_path):
    root = tmp_path / "here"
    settings = Settings(models=root / "models", data_dir=root / "data", job_slots=0)
    version = settings.models / "wine" / "1"
    version.mkdir(parents=True)
    (version / "saved_model.pb").write_text("graph")
    staged = settings.models / ".staging" / "job.1"
    staged.mkdir(parents=True)
    (staged / "saved_model.pb").write_text("half a gra")
    job = settings.data_dir / "jobs" / "1"
    job.mkdir(parents=True)
    (job / "log.txt").write_text("line")
    (job / "rows").write_text("scratch")
    return settings


@pytest.fixture
def database(settings):
    database = Database(settings.effective_database_url)
    create_tables(database)
    yield database
    database.close()


def test_a_service_that_is_restored_knows_what_it_knew(settings, tmp_path):
    with serving(settings) as client:
        body = {"name": "a robot", "scopes": ["predict"]}
        made = client.post("/v1/keys", json=body).json()
        database = Database(settings.effective_database_url)
        parts = back_up(database, settings, tmp_path / "backup")
        database.close()
        client.delete(f"/v1/keys/{made['id']}")
    assert {"jobs", "models", "tfbbb.sqlite3"} <= set(parts)
    shutil.rmtree(tmp_path / "here")

    (tmp_path / "backup" / "models").rename(tmp_path / "models")
    (tmp_path / "backup").rename(tmp_path / "data")
    places = {"data_dir": tmp_path / "data", "models": tmp_path / "models"}
    restored = settings.model_copy(update=places)
    with serving(restored) as client:
        headers = {"Authorization": f"Bearer {made['key']}"}
        assert client.get("/docs", headers=headers).status_code == 200
    files = {str(p.relative_to(restored.models)) for p in restored.models.rglob("*.pb")}
    assert files == {"wine/1/saved_model.pb"}
    jobs = {path.name for path in (restored.data_dir / "jobs" / "1").iterdir()}
    assert jobs == {"log.txt"}


def test_whatever_the_copied_database_names_is_copied(
    settings, database, tmp_path, monkeypatch
):
    files = settings.data_dir / "datasets"
    files.mkdir()
    queue = Queue(database, settings)
    for number in range(3):
        upload(queue, number)
    copy = backup._copy_sqlite

    def copy_while_tables_come_and_go(source, destination):
        upload(queue, 3)
        remove(queue, 0)
        copy(source, destination)
        upload(queue, 4)
        remove(queue, 1)

    monkeypatch.setattr(backup, "_copy_sqlite", copy_while_tables_come_and_go)
    back_up(database, settings, tmp_path / "backup")
    copied = Database(f"sqlite:///{tmp_path}/backup/tfbbb.sqlite3")
    with copied.reading() as session:
        named = set(session.scalars(sqlalchemy.select(Dataset.sha256)))
    copied.close()
    assert named == {f"{number:064}" for number in (1, 2, 3)}
    assert named <= {path.stem for path in (tmp_path / "backup/datasets").iterdir()}


def upload(queue, number):
    sha256 = f"{number:064}"
    (queue.settings.data_dir / "datasets" / f"{sha256}.csv").write_text("x\n1\n")
    add_table(queue, sha256=sha256)


def remove(queue, number):
    sha256 = f"{number:064}"
    with queue.database.writing() as session:
        gone = Dataset.sha256 == sha256
        session.execute(sqlalchemy.delete(Dataset).where(gone))
    (queue.settings.data_dir / "datasets" / f"{sha256}.csv").unlink()


def test_a_backup_without_the_models_of_the_database_is_refused(
    settings, database, tmp_path
):
    add_versions(database, "wine", 1)
    elsewhere = settings.model_copy(update={"models": tmp_path / "not_here"})
    with pytest.raises(BackupError, match=r"not_here does not exist.*version 1 of 'wi"):
        back_up(database, elsewhere, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
    with database.writing() as session:
        session.get(ModelVersion, ("wine", 1)).deleted_at = 2.0
    back_up(database, elsewhere, tmp_path / "copy")
