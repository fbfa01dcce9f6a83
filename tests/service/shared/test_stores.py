"""The contract of all stores, and what is particular to object stores."""

import hashlib
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from service.job_process.publish import publish
from service.job_process.upkeep import remove_leftovers
from service.predicting.adoption import Ledger
from service.predicting.copies import VersionCopies
from service.shared.database import Database, create_tables
from service.shared.database.tables import ModelVersion
from service.shared.files import JobFiles
from service.shared.queue import Queue
from service.shared.settings import Settings, SettingsError
from service.shared.store import StoreError, StoreOutageError, open_store
from service.shared.store.s3_store import S3Store
from service.shared.versions import delete_version, finish_deletions
from tests.service.postgresql import new_database
from tests.service.queued import (
    PowerCutError,
    exporting,
    job,
    leased,
    let_expire,
    staged,
    stop,
    submitted,
)
from tfbbb.export.manifest import Manifest

TABLE = b"x,y\n1,2\n"
NAME = f"{hashlib.sha256(TABLE).hexdigest()}.csv"


def settings_of(machine, url):
    """Settings of a machine: directories of its own, unless they are the store."""
    data, models = machine / "data", machine / "models"
    for place in (data, models):
        place.mkdir(parents=True, exist_ok=True)
    return Settings(data_dir=data, models=models, store=url, lease_seconds=60.0)


@pytest.fixture(params=["directory", "s3"])
def url(request):
    if request.param == "directory":
        return None
    server = request.getfixturevalue("s3")
    return server.new_store()


@pytest.fixture
def queue(tmp_path, url, database):
    return Queue(database, settings_of(tmp_path / "here", url))


@pytest.fixture
def s3_url(s3):
    return s3.new_store()


@pytest.fixture
def s3_queue(tmp_path, s3_url, database):
    return Queue(database, settings_of(tmp_path / "here", s3_url))


@pytest.fixture
def elsewhere(tmp_path, s3_url):
    """The same object store, from another machine."""
    return open_store(settings_of(tmp_path / "elsewhere", s3_url))


def published(queue):
    lease = exporting(queue)
    publish(queue, lease, staged(queue, lease))
    return lease


def rows(queue):
    with queue.database.reading() as session:
        return list(session.query(ModelVersion))


def test_stored_dataset_is_read_back_and_removed(tmp_path, queue):
    store, upload = queue.store, tmp_path / "upload"
    upload.write_bytes(TABLE)
    store.upload_dataset(upload, NAME)
    store.add_dataset(upload, NAME)
    assert store.dataset(NAME).read_bytes() == TABLE
    assert store.dataset_names() == [NAME]
    assert not upload.exists()
    store.remove_dataset(NAME)
    store.remove_dataset(NAME)
    assert store.dataset_names() == []


def test_attempt_killed_before_the_commit_has_no_version(queue, monkeypatch):
    lease = exporting(queue)
    directory = staged(queue, lease)
    with monkeypatch.context() as patch:
        patch.setattr(type(queue.store), "add_version", stop)
        with pytest.raises(PowerCutError):
            publish(queue, lease, directory)
    assert (queue.store.numbers("model"), rows(queue)) == ([], [])
    let_expire(queue, lease)
    assert job(queue, lease.job_id).state == "queued"
    again = leased(queue)
    queue.begin_export(again)
    assert publish(queue, again, staged(queue, again)) == 1
    remove_leftovers(queue)
    assert queue.store.numbers("model") == [1]
    if isinstance(queue.store, S3Store):
        assert queue.store._uploads() == set()
    version = queue.store.version("model", 1)
    Manifest.read(version).verify(version)


def test_deleted_version_is_gone_and_its_number_used(queue):
    published(queue)
    delete_version(queue.database, queue.store, "model", 1)
    assert queue.store.numbers("model") == []
    with pytest.raises(FileNotFoundError):
        queue.store.manifest("model", 1)
    lease = exporting(queue)
    assert publish(queue, lease, staged(queue, lease)) == 2


def test_interrupted_deletion_is_finished_later(queue, monkeypatch):
    published(queue)
    published(queue)
    with monkeypatch.context() as patch:
        patch.setattr(queue.store, "remove_version", stop)
        with pytest.raises(PowerCutError):
            delete_version(queue.database, queue.store, "model", 1)
    assert queue.store.numbers("model") == [1, 2]
    finish_deletions(queue.database, queue.store)
    assert queue.store.numbers("model") == [2]


def test_store_that_works_passes_its_checks(queue):
    queue.store.check()
    queue.store.ping()


# Object stores


def test_dataset_is_downloaded_elsewhere_unless_it_was_changed(
    tmp_path, s3_queue, elsewhere, s3, s3_url
):
    upload = tmp_path / "upload"
    upload.write_bytes(TABLE)
    s3_queue.store.add_dataset(upload, NAME)
    key = f"{s3_url}/datasets/{NAME}"
    s3.storage.pipe_file(key, b"changed")
    with pytest.raises(StoreError, match="has the SHA-256"):
        elsewhere.dataset(NAME)
    assert list((tmp_path / "elsewhere" / "data" / "datasets").iterdir()) == []
    s3.storage.pipe_file(key, TABLE)
    assert elsewhere.dataset(NAME).read_bytes() == TABLE


def test_checkpoints_follow_a_job_to_another_machine(tmp_path, s3_queue, s3_url):
    store, there = s3_queue.store, settings_of(tmp_path / "elsewhere", s3_url)
    scratch = JobFiles(s3_queue.settings, "job").scratch
    (scratch / "network_2").mkdir(parents=True)
    (scratch / "rows").write_text("prepared, and prepared again elsewhere")
    for step in (1, 2):
        (scratch / f"checkpoint-{step}").write_text(f"state {step}")
    (scratch / "network_2" / "checkpoint-1").write_text("second")
    store.save_checkpoints("job")
    (scratch / "checkpoint-1").unlink()
    store.save_checkpoints("job")
    elsewhere = open_store(there)
    elsewhere.restore_checkpoints("job")
    files = {
        path.relative_to(JobFiles(there, "job").scratch).as_posix(): path.read_text()
        for path in JobFiles(there, "job").scratch.rglob("*")
        if path.is_file()
    }
    assert files == {"checkpoint-2": "state 2", "network_2/checkpoint-1": "second"}
    assert elsewhere.jobs_with_checkpoints() == {"job"}


def test_checkpoints_of_ended_jobs_are_removed(s3_queue):
    (job_id,) = submitted(s3_queue)
    for owner in (job_id, "f" * 24):
        scratch = JobFiles(s3_queue.settings, owner).scratch
        scratch.mkdir(parents=True)
        (scratch / "checkpoint-1").write_text("state")
        s3_queue.store.save_checkpoints(owner)
    remove_leftovers(s3_queue)
    assert s3_queue.store.jobs_with_checkpoints() == {job_id}


def test_lost_transaction_adds_no_second_version(s3_queue):
    lease = exporting(s3_queue)
    directory = staged(s3_queue, lease)
    s3_queue.store.upload_version(directory)
    numbers = [s3_queue.store.add_version(directory, "model", 1) for _ in range(2)]
    assert numbers == [1, 1]
    assert s3_queue.store.numbers("model") == [1]


def test_jobs_that_publish_at_once_take_different_numbers(tmp_path, postgresql, s3_url):
    database = Database(new_database(postgresql))
    create_tables(database)
    queue = Queue(database, settings_of(tmp_path / "here", s3_url))
    leases = [exporting(queue) for _ in range(4)]
    models = [staged(queue, lease) for lease in leases]
    with ThreadPoolExecutor(4) as executor:
        numbers = list(executor.map(publish, [queue] * 4, leases, models))
    assert sorted(numbers) == queue.store.numbers("model") == [1, 2, 3, 4]
    database.close()


def test_new_version_is_fetched_and_a_deleted_one_dropped(s3_queue, elsewhere):
    ledger = Ledger(s3_queue.database, elsewhere)
    copies = VersionCopies(elsewhere, ledger)
    published(s3_queue)
    published(s3_queue)
    copies.fetch_newest()
    root = elsewhere.models / "model"
    assert [path.name for path in root.iterdir()] == ["2"]
    copies.fetch_others(None)
    assert sorted(path.name for path in root.iterdir()) == ["1", "2"]
    ledger.record("model", 2, root / "2")
    delete_version(s3_queue.database, s3_queue.store, "model", 1)
    copies.fetch_newest()
    assert [path.name for path in root.iterdir()] == ["2"]


def test_damaged_copy_is_downloaded_again(tmp_path, s3_queue, elsewhere, s3_url):
    published(s3_queue)
    graph = elsewhere.version("model", 1) / "saved_model.pb"
    graph.write_text("damaged")
    restarted = open_store(settings_of(tmp_path / "elsewhere", s3_url))
    restarted.version("model", 1)
    assert graph.read_text() == "result"


def test_changed_file_in_the_storage_is_not_served(s3_queue, elsewhere, s3, s3_url):
    lease = published(s3_queue)
    key = f"{s3_url}/versions/{lease.job_id}.{lease.attempt}/saved_model.pb"
    s3.storage.pipe_file(key, b"changed")
    with pytest.raises(StoreError, match="is not the file that was exported"):
        elsewhere.version("model", 1)
    assert not (elsewhere.models / "model" / "1").exists()


def test_missing_bucket_is_named(s3_queue, s3, s3_url):
    s3.remove_bucket(s3_url)
    for operation in (s3_queue.store.check, s3_queue.store.ping):
        with pytest.raises(StoreError) as caught:
            operation()
        assert caught.value.strerror == "There is no such bucket"
        assert caught.value.filename == s3_url
        assert not isinstance(caught.value, StoreOutageError)


def test_unreachable_storage_is_an_outage(s3_url, tmp_path, monkeypatch):
    # Port 9 of this machine: nothing listens there.
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    store = open_store(settings_of(tmp_path / "lost", s3_url))
    assert isinstance(store, S3Store)
    store._storage = type(store._storage)(skip_instance_cache=True)
    with pytest.raises(StoreOutageError, match="could not be listed"):
        store.ping()


def test_missing_package_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(StoreError, match=r"needs the package `s3fs`: pip"):
        open_store(settings_of(tmp_path / "here", "s3://bucket/tests"))


@pytest.mark.parametrize("url", ["/a/directory", "gs://bucket", "s3://"])
def test_other_urls_are_not_settings(url):
    with pytest.raises(SettingsError, match="TFBBB_STORE"):
        Settings.from_environment({"TFBBB_STORE": url})
