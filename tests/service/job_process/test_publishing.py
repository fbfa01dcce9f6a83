from pathlib import Path

import pytest
from sqlalchemy import select

from service.job_process.publish import CancelledError, publish
from service.shared import queue as queue_module
from service.shared.database.tables import ModelVersion
from service.shared.queue import StaleAttemptError
from service.shared.store import store
from service.shared.versions import manifest_digest
from tests.service.job_process.stand_in_worker import export
from tests.service.queued import (
    PowerCutError,
    cancel,
    exporting,
    job,
    leased,
    let_expire,
    staged,
    stop,
)

EACH_DATABASE = True


@pytest.fixture
def lease(queue):
    return exporting(queue)


@pytest.fixture
def directory(queue, lease):
    return staged(queue, lease)


def versions(queue):
    with queue.database.reading() as session:
        return list(session.scalars(select(ModelVersion).order_by(ModelVersion.number)))


def on_disk(queue):
    return sorted(path.name for path in (queue.settings.models / "model").glob("*"))


def test_a_staged_model_becomes_the_next_version(queue):
    for number in (1, 2):
        lease = exporting(queue)
        directory = staged(queue, lease)
        assert publish(queue, lease, directory) == number
        assert not directory.exists()
        assert job(queue, lease.job_id).version == number
        assert job(queue, lease.job_id).state == "succeeded"
    assert on_disk(queue) == ["1", "2"]
    digests = [manifest_digest(queue.settings.models / "model" / n) for n in "12"]
    assert [version.digest for version in versions(queue)] == digests


def test_number_taken_at_the_last_moment_is_skipped(
    queue, lease, directory, monkeypatch
):
    rename = Path.rename

    def rename_too_late(source, target):
        if target.name == "1":
            # As `tfbbb train --output` may do meanwhile.
            export("", "of another", target)
        return rename(source, target)

    monkeypatch.setattr(Path, "rename", rename_too_late)
    assert publish(queue, lease, directory) == 2
    assert on_disk(queue) == ["1", "2"]


def test_a_stale_attempt_publishes_nothing(queue, lease, directory):
    let_expire(queue, lease)
    with pytest.raises(StaleAttemptError):
        publish(queue, lease, directory)
    leased(queue)
    with pytest.raises(StaleAttemptError):
        publish(queue, lease, directory)
    assert (on_disk(queue), versions(queue)) == ([], [])


def test_a_job_that_is_to_be_cancelled_publishes_nothing(queue, lease, directory):
    cancel(queue, lease.job_id)
    with pytest.raises(CancelledError):
        publish(queue, lease, directory)
    assert (on_disk(queue), versions(queue)) == ([], [])
    queue.release(lease, "stopped")
    assert job(queue, lease.job_id).state == "cancelled"


@pytest.mark.parametrize("end", ["expire", "died", "release", "fail", "cancel"])
def test_version_renamed_before_an_interruption_belongs_to_its_job(
    queue, lease, directory, monkeypatch, end
):
    with monkeypatch.context() as patch:
        # After the rename, before the commit.
        patch.setattr(queue_module.Queue, "succeed", stop)
        with pytest.raises(PowerCutError):
            publish(queue, lease, directory)
    assert (on_disk(queue), versions(queue)) == (["1"], [])
    assert job(queue, lease.job_id).state == "exporting"
    if end == "died":
        queue.record_death(lease, "signal SIGKILL")
    elif end == "release":
        queue.release(lease, "The service stopped")
    elif end == "fail":
        queue.fail(lease, "No space left on device")
    else:
        if end == "cancel":
            cancel(queue, lease.job_id)
        let_expire(queue, lease)
    done = job(queue, lease.job_id)
    assert (done.state, done.version, done.error) == ("succeeded", 1, None)
    assert [version.job_id for version in versions(queue)] == [lease.job_id]
    assert versions(queue)[0].digest == manifest_digest(
        queue.settings.models / "model" / "1"
    )


def test_a_version_is_on_the_disk_before_the_commit(
    queue, lease, directory, monkeypatch
):
    flushed = []

    def spy(path):
        flushed.append((path, (path / "1").exists(), len(versions(queue))))

    monkeypatch.setattr(store, "flush", spy)
    publish(queue, lease, directory)
    models = queue.settings.models
    assert flushed == [(models / "model", True, 0), (models, False, 0)]


def test_a_version_of_another_job_does_not_end_this_one(queue, lease):
    export("f" * 24, "of another", queue.settings.models / "model" / "1")
    let_expire(queue, lease)
    assert (job(queue, lease.job_id).state, versions(queue)) == ("queued", [])
