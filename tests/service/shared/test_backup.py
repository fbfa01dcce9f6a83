import shutil
import threading

import pytest
import sqlalchemy

from service.shared.backup import BackupError, back_up
from service.shared.database import Database, create_tables
from service.shared.database.tables import Dataset, ModelVersion
from service.shared.settings import Settings
from tests.service.recorded import add_versions
from tests.service.serving import serving

# So many that none is both uploaded and deleted while the database is copied.
KEPT = 500
BACKUPS = 2


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


def test_whatever_the_copied_database_names_is_copied(settings, database, tmp_path):
    files = settings.data_dir / "datasets"
    files.mkdir()
    stop = threading.Event()

    def upload_and_delete():
        number = 0
        while not stop.is_set():
            number += 1
            (files / f"{number:064}.csv").write_text("x\n1\n")
            with database.writing() as session:
                session.add(dataset(number))
                if number > KEPT:
                    old = Dataset.sha256 == f"{number - KEPT:064}"
                    session.execute(sqlalchemy.delete(Dataset).where(old))
            (files / f"{number - KEPT:064}.csv").unlink(missing_ok=True)

    writer = threading.Thread(target=upload_and_delete)
    writer.start()
    try:
        for number in range(BACKUPS):
            back_up(database, settings, tmp_path / f"backup-{number}")
    finally:
        stop.set()
        writer.join()
    for number in range(BACKUPS):
        backup = tmp_path / f"backup-{number}"
        copy = Database(f"sqlite:///{backup}/tfbbb.sqlite3")
        with copy.reading() as session:
            named = set(session.scalars(sqlalchemy.select(Dataset.sha256)))
        copy.close()
        kept = {path.stem for path in (backup / "datasets").iterdir()}
        assert named <= kept


def dataset(number):
    return Dataset(
        name="x", sha256=f"{number:064}", format="csv", num_bytes=4, num_rows=1,
        columns=[], problems=[], created_at=0.0,
    )  # fmt: skip


def test_a_backup_is_not_written_over_another(settings, database, tmp_path):
    with pytest.raises(BackupError, match="exists already"):
        back_up(database, settings, tmp_path)


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
