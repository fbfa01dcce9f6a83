from sqlalchemy import select

from service.shared.database import Actor, acting
from service.shared.database.tables import AuditEntry, Job, Key, ModelVersion
from tests.service.queued import leased, submitted

EACH_DATABASE = True
SOMEBODY = Actor("nightly", "5f1d7e2a9c3b4d6e8f012345", "request-1")


def entries(queue):
    with queue.database.reading() as session:
        order = select(AuditEntry).order_by(AuditEntry.created_at)
        return list(session.scalars(order))


def told(queue):
    return [
        (entry.actor, entry.kind, entry.action, entry.subject)
        for entry in entries(queue)
    ]


def a_version(number, job_id=None):
    return ModelVersion(
        name="wine", number=number, digest="0" * 64, job_id=job_id, lineage={},
        created_at=1.0,
    )  # fmt: skip


def test_changes_of_a_job_are_recorded_by_who_made_them(queue):
    with acting(SOMEBODY):
        (job_id,) = submitted(queue)
        with queue.database.writing() as session:
            queue.cancel(session, session.get_one(Job, job_id))
        with queue.database.writing() as session:
            queue.retry(session, session.get_one(Job, job_id))
        with queue.database.writing() as session:
            session.delete(session.get_one(Job, job_id))
    assert told(queue) == [
        ("nightly", "job", action, job_id)
        for action in ("submit", "cancel", "retry", "delete")
    ]
    first = entries(queue)[0]
    assert (first.actor, first.key_id, first.request_id) == SOMEBODY
    assert first.details == {"name": "model", "dataset_id": None}


def test_progress_of_a_job_is_not_recorded(queue):
    submitted(queue)
    lease = leased(queue)
    queue.heartbeat(lease, {"saved_step": 1}, [{"epoch": 1}])
    queue.release(lease, "The service stopped")
    assert [action for _, _, action, _ in told(queue)] == ["submit"]


def test_published_version_is_that_of_the_key_of_its_job(queue):
    key = Key(
        name="trainer", prefix="p", secret_sha256="0" * 64, scopes=["train"],
        created_at=1.0,
    )  # fmt: skip
    with queue.database.writing() as session:
        session.add(key)
    (job_id,) = submitted(queue, key_id=key.id)
    with queue.database.writing() as session:
        waiting = a_version(2)
        waiting.lineage = {"judgement": {"becomes_latest": False}}
        session.add_all([a_version(1, job_id), waiting])
    with queue.database.writing() as session:
        version = session.get_one(ModelVersion, ("wine", 1))
        version.deleted_at = 3.0
    versions = [entry for entry in told(queue) if entry[1] == "version"]
    assert sorted(versions[:2], key=lambda entry: entry[3]) == [
        ("trainer", "version", "publish", "wine/1"),
        ("the service", "version", "publish", "wine/2"),
    ]
    assert versions[2][2:] == ("delete", "wine/1")
