import shutil
from pathlib import Path

import pytest
from sqlalchemy.exc import SQLAlchemyError

from service.predicting.adoption import Ledger
from service.shared.database.tables import Job, Label, ModelVersion
from service.shared.errors import VersionInUse
from service.shared.queue import Queue
from service.shared.settings import Settings
from service.shared.versions import delete_version
from tests.service.api.models.conftest import wait_until_latest
from tests.service.api.models.test_labels import put
from tests.service.queued import submitted
from tests.service.serving import ask, refusal
from tests.service.stores import directory_store
from tfbbb.export.manifest import SCHEMA_VERSION

EACH_DATABASE = True
GOLDEN = Path(__file__).parents[3] / "golden" / str(SCHEMA_VERSION) / "columns"
BODY = {"instances": [[1, 2, 3]]}


@pytest.fixture
def root(tmp_path, database):
    """Two versions of a model of a dotted name, adopted."""
    for number in (1, 2):
        place = tmp_path / "models" / "wine.red" / str(number)
        shutil.copytree(GOLDEN, place)
        Ledger(database, directory_store(place.parents[1])).record(
            "wine.red", number, place
        )
    return tmp_path / "models"


def test_version_with_a_label_is_not_deleted(database, root):
    with database.writing() as session:
        label = Label(name="wine.red", label="champion", number=1, moved_at=0.0)
        session.add(label)
    with pytest.raises(VersionInUse, match="has the labels 'champion'; move"):
        delete_version(database, directory_store(root), "wine.red", 1)
    delete_version(database, directory_store(root), "wine.red", 2)


def test_version_that_an_unfinished_job_starts_from_is_not_deleted(database, root):
    (one,) = submitted(
        Queue(database, Settings(models=root)),
        spec={"start_from": {"model": "wine.red", "version": 1}},
    )
    with pytest.raises(VersionInUse, match=f"The jobs {one} start from"):
        delete_version(database, directory_store(root), "wine.red", 1)
    with database.writing() as session:
        session.get_one(Job, one).state = "succeeded"
    delete_version(database, directory_store(root), "wine.red", 1)


def test_version_is_kept_if_the_database_is_lost(database, root):
    with database.engine.begin() as connection:
        ModelVersion.metadata.tables["labels"].drop(connection)
    with pytest.raises(SQLAlchemyError):
        delete_version(database, directory_store(root), "wine.red", 1)
    assert (root / "wine.red" / "1" / "saved_model.pb").exists()


def test_deletion_over_http_spares_what_is_in_use(client, publish, models):
    for number in (1, 2, 3):
        publish("deleted", number)
    path = "/v1/models/deleted/versions"
    assert put(client, "deleted/labels/champion", 1).status_code == 200
    # Until the third version has loaded, the second one is `latest`.
    wait_until_latest(client, "deleted", 3)
    for number, reason in ((1, "'champion'"), (3, "is `latest`")):
        response = client.delete(f"{path}/{number}")
        assert reason in refusal(response, 409)
    response = client.delete(f"{path}/2")
    assert response.status_code == 204, response.text
    assert client.delete(f"{path}/2").status_code == 404
    assert ask(client, "deleted/versions/2", BODY).status_code == 404
    assert not (models / "deleted" / "2").exists()
    # Its number stays taken.
    publish("deleted", 2)
    response = ask(client, "deleted/versions/2", BODY)
    assert "was deleted" in refusal(response, 503)
