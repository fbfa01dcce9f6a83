"""Jobs for tests of the queue."""

import time

from service.job_process.publish import staging_directory
from service.shared import job_events
from service.shared.database.tables import Dataset, Job
from tests.service.job_process.stand_in_worker import export


def submitted(queue, count=1, **columns):
    """Queues jobs that nothing can train; returns their ids, oldest first."""
    given = {
        "name": "model",
        "dataset_sha256": "0" * 64,
        "dataset_format": "csv",
        "spec": {},
    } | columns
    jobs = []
    with queue.database.writing() as session:
        for number in range(count):
            job = Job(created_at=time.time() + 1e-3 * number, **given)
            queue.submit(session, job)
            jobs.append(job.id)
    return jobs


def add_table(queue, **columns):
    """Records a table of one row that was uploaded; returns its id."""
    given = {"name": "table", "sha256": "0" * 64, "format": "csv", "num_bytes": 3}
    given |= {"num_rows": 1, "columns": [], "problems": [], "created_at": 0.0}
    row = Dataset(**given | columns)
    with queue.database.writing() as session:
        session.add(row)
    return row.id


def leased(queue):
    lease = queue.lease()
    assert lease is not None
    return lease


def exporting(queue):
    """Queues a job, and leases it until its training is done."""
    submitted(queue)
    lease = leased(queue)
    queue.begin_export(lease)
    return lease


def staged(queue, lease):
    """Exports the model of an attempt, and returns where it waits."""
    directory = staging_directory(queue.store.models, lease)
    export(lease.job_id, "result", directory)
    return directory


class PowerCutError(BaseException):
    """The process stops where it is."""


def stop(*arguments, **options):
    raise PowerCutError


def job(queue, job_id):
    with queue.database.reading() as session:
        return session.get_one(Job, job_id)


def events(queue, job_id):
    """The events of a job, in order."""
    with queue.database.reading() as session:
        return job_events.after(session, job_id, 0, limit=10**6)


def states(queue, job_id):
    """The states that a job's events tell of, in order."""
    return [e.data["state"] for e in events(queue, job_id) if e.type == "state"]


def epochs(queue, job_id):
    """The epochs that a job's events tell of, in order."""
    return [e.data["epoch"] for e in events(queue, job_id) if e.type == "epoch"]


def cancel(queue, job_id):
    with queue.database.writing() as session:
        queue.cancel(session, session.get_one(Job, job_id))


def let_expire(queue, lease):
    with queue.database.writing() as session:
        session.get_one(Job, lease.job_id).lease_expires_at = 0.0
    assert queue.expire() == 1
