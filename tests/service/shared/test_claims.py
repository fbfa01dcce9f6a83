"""Many workers, one queue: no job is taken twice, none is left."""

import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import chain

from service.shared.database import Database
from service.shared.queue import Queue
from tests.service.queued import job, submitted

EACH_DATABASE = True
WORKERS, JOBS = 4, 60


def test_workers_that_lease_at_once_take_every_job_once(queue):
    jobs = submitted(queue, JOBS)
    start = threading.Barrier(WORKERS)

    def lease_all(_):
        database = Database(queue.settings.effective_database_url)
        worker, leased = Queue(database, queue.settings), []
        start.wait()
        while (lease := worker.lease()) is not None:
            leased.append(lease.job_id)
            if len(leased) == 1:
                # One worker would take all jobs before another one begins.
                start.wait()
        database.close()
        return leased

    with ThreadPoolExecutor(WORKERS) as threads:
        leased = list(threads.map(lease_all, range(WORKERS)))
    assert sorted(chain.from_iterable(leased)) == sorted(jobs)
    assert sum(map(bool, leased)) > 1, "one worker alone proves nothing"
    assert {job(queue, job_id).attempt for job_id in jobs} == {1}
