"""Many workers, one queue: no job is taken twice, none is left."""

import subprocess
import sys
from itertools import chain
from pathlib import Path

import pytest

from service.shared.queue import Queue
from tests.service.queued import job, submitted


@pytest.mark.parametrize(
    ("num_processes", "num_jobs"),
    [(3, 60), pytest.param(8, 2000, marks=pytest.mark.slow)],
)
def test_processes_that_claim_at_once_take_every_job_once(
    queue: Queue, tmp_path: Path, num_processes: int, num_jobs: int
) -> None:
    jobs = submitted(queue, num_jobs)
    processes = []
    for _ in range(num_processes):
        arguments = [queue.settings.effective_database_url, tmp_path]
        processes.append(
            subprocess.Popen(
                [
                    *(sys.executable, "-m", "tests.service.shared.claiming"),
                    *map(str, arguments),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        )
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    claimed = [process.communicate()[0].split() for process in processes]
    assert [process.returncode for process in processes] == [0] * num_processes
    assert sorted(chain.from_iterable(claimed)) == sorted(jobs)
    assert sum(map(bool, claimed)) > 1, "one process alone proves nothing"
    assert {job(queue, job_id).attempt for job_id in jobs} == {1}
