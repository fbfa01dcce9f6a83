import shutil
from pathlib import Path
from unittest.mock import Mock

import pytest
from sqlalchemy import select

from service.predicting.adoption import AdoptionError, Ledger
from service.predicting.version import ServedVersion, fingerprint
from service.shared.database import Database
from service.shared.database.tables import Job, ModelVersion
from service.shared.errors import Unavailable
from tests.service.queued import submitted
from tests.service.stores import directory_store
from tfbbb.export.manifest import MANIFEST_PATH, SCHEMA_VERSION

GOLDEN = Path(__file__).parents[2] / "golden" / str(SCHEMA_VERSION) / "columns"


@pytest.fixture
def database(queue):
    return queue.database


@pytest.fixture
def directory(tmp_path):
    return Path(shutil.copytree(GOLDEN, tmp_path / "models" / "wine" / "1"))


def ledger(database, directory):
    return Ledger(database, directory_store(directory.parents[1]))


def rows(database):
    with database.reading() as session:
        return list(session.scalars(select(ModelVersion)))


def alter(directory, before, after):
    manifest = directory / MANIFEST_PATH
    text = manifest.read_text()
    assert before in text
    manifest.write_text(text.replace(before, after, 1))


def test_directory_that_nobody_published_is_adopted_once(database, directory):
    for _ in range(2):
        ledger(database, directory).record("wine", 1, directory)
    (row,) = rows(database)
    assert (row.name, row.number, row.job_id) == ("wine", 1, None)


def test_another_manifest_under_the_same_number_is_refused(database, directory):
    ledger(database, directory).record("wine", 1, directory)
    alter(directory, '"default_seed": 0', '"default_seed": 1')
    with pytest.raises(AdoptionError, match=r"version 1 .*another manifest .*sha256"):
        ledger(database, directory).record("wine", 1, directory)


def test_number_of_a_deleted_version_is_never_used_again(database, directory):
    ledger(database, directory).record("wine", 1, directory)
    with database.writing() as session:
        session.get_one(ModelVersion, ("wine", 1)).deleted_at = 1.0
    with pytest.raises(AdoptionError, match="was deleted; numbers are never used"):
        ledger(database, directory).record("wine", 1, directory)


def test_version_of_a_job_is_not_adopted_until_it_ends(queue, database, directory):
    job_id = "0123456789abcdef01234567"
    alter(directory, '"lineage": null', f'"lineage": {{"job_id": "{job_id}"}}')
    submitted(queue, id=job_id, name="wine")
    with pytest.raises(Unavailable, match=f"being published by the job {job_id}"):
        ledger(database, directory).record("wine", 1, directory)
    assert rows(database) == []
    with database.writing() as session:
        session.get_one(Job, job_id).state = "succeeded"
    ledger(database, directory).record("wine", 1, directory)
    (row,) = rows(database)
    assert row.lineage == {"job_id": job_id}


def test_database_that_does_not_answer_holds_back_what_is_new(directory, tmp_path):
    database = Database(f"sqlite:///{tmp_path}/without_tables")
    with pytest.raises(Unavailable, match=r"whether it knows version 1 .* 'wine'"):
        ledger(database, directory).record("wine", 1, directory)


def test_the_status_says_why_a_version_waits_for_the_database(
    database, directory, monkeypatch
):
    found = ledger(database, directory)
    version = ServedVersion("wine", 1, directory, fingerprint(directory), found)
    with monkeypatch.context() as patch:
        patch.setattr(found, "record", Mock(side_effect=Unavailable("It is lost.")))
        with pytest.raises(Unavailable, match=r"It is lost\."):
            version.load()
        assert version.explanation.startswith("It is lost.")
    version.load()
    assert version.explanation == ""
