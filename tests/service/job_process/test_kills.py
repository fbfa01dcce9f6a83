"""Processes are killed at any time: no job is lost, none is published twice.

`benchmarks/faults.py` kills hundreds of them, and lets calls of the system fail.
"""

import pytest

from service.job_process.upkeep import remove_leftovers
from service.shared.job_state import ENDED
from service.shared.store import STAGING
from tests.service.job_process.stand_in_worker import result_of
from tests.service.queued import events, job, submitted
from tests.service.running import Replica, check_jobs, stopped_at_the_end, submit
from tests.waiting import wait_until
from tfbbb.export.manifest import Manifest


@pytest.fixture
def service(queue, tmp_path):
    settings = queue.settings.model_copy(update={"lease_seconds": 600.0})
    service = Replica(tmp_path / "service", **settings.environment())
    with stopped_at_the_end(service):
        yield service


def check_what_is_left(queue, succeeded):
    settings = queue.settings
    for row in succeeded:
        directory = settings.models / row.name / str(row.version)
        Manifest.read(directory).verify(directory)
        assert (directory / "saved_model.pb").read_text() == result_of(row)
    remove_leftovers(queue)
    assert list((settings.models / STAGING).glob("*")) == []
    assert list((settings.data_dir / "jobs").glob("*/scratch")) == []
    assert list((settings.data_dir / "uploads").glob("*")) == []


def wait_for_a_step(queue, job_id):
    """Waits until a job tells of a step later than those it has told of."""

    def step():
        found = job(queue, job_id)
        assert found.state not in ENDED
        return found.progress.get("step", 0)

    told = step()
    wait_until(lambda: step() > told)


def num_killed(queue, job_id):
    reasons = [str(event.data.get("reason")) for event in events(queue, job_id)]
    return sum("was killed or crashed" in reason for reason in reasons)


def test_every_job_ends_once_whatever_is_killed_or_stopped(queue, service):
    jobs = [submit([service], f"job-{number}") for number in range(2)]
    # So many steps that this job is not over when its process ends.
    (long,) = submitted(queue, spec={"steps": 600}, priority=1)
    wait_for_a_step(queue, long)
    service.kill("workers")
    # The next workers go on from what the killed ones have saved.
    wait_until(lambda: num_killed(queue, long) == 1)
    wait_for_a_step(queue, long)
    service.kill("service")
    service.start()
    jobs.append(submit([service], "job-2"))
    wait_until(lambda: num_killed(queue, long) == 2)
    wait_for_a_step(queue, long)
    told = job(queue, long).progress["step"]
    assert service.stop() == []
    stopped = job(queue, long)
    assert (stopped.state, stopped.deaths) == ("queued", 0)
    assert stopped.progress["saved_step"] >= told
    assert (queue.settings.data_dir / "jobs" / long / "scratch").exists()
    service.start()
    succeeded = check_jobs(queue, [*jobs, long])
    assert service.stop() == []
    check_what_is_left(queue, succeeded)
    # Nobody waited until a lease had expired.
    assert num_killed(queue, long) == 2
