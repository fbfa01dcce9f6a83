"""Jobs on a Ray cluster, whose Jobs API is a stand-in but for one test."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("ray", reason="needs the extra `ray`")

from ray.exceptions import AuthenticationError
from ray.job_submission import JobStatus

from service.job_process import ray_jobs
from service.job_process.ray_jobs import RayJobs, submission_id
from service.shared.files import JobFiles
from service.shared.queue import Lease
from tests.service.job_process.stand_in_worker import result_of
from tests.service.queued import cancel, job, let_expire, states, submitted

_ADDRESS = "http://127.0.0.1:8265"


class JobsApi:
    """The jobs of a cluster without nodes: tests say what becomes of them."""

    def __init__(self):
        self.submitted = {}
        self.ends = {}
        self.submissions = 0

    def submit_job(self, *, submission_id, **request):
        if submission_id in self.submitted:
            told = f"Job with submission_id {submission_id} already exists."
            raise RuntimeError(f"Request failed with status code 400: {told}")
        self.submissions += 1
        self.submitted[submission_id] = request

    def get_job_info(self, submission_id):
        end = self.ends.get(submission_id)
        status = JobStatus.PENDING if end is None else JobStatus.FAILED
        return SimpleNamespace(status=status, message=end)


@pytest.fixture
def api(monkeypatch):
    api = JobsApi()
    monkeypatch.setattr(ray_jobs, "_Client", lambda address: api)
    return api


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch):
    monkeypatch.setattr(ray_jobs, "_SECONDS_BETWEEN_LOOKS", -1.0)
    monkeypatch.setattr("service.shared.queue._PAUSES", (0.0, 0.0, 0.0))


@pytest.fixture
def jobs(queue, api):
    return RayJobs(queue, _ADDRESS, cpus=2.0, gpus=1.0)


@pytest.fixture
def job_id(queue, jobs):
    """A job whose first attempt was submitted."""
    (job_id,) = submitted(queue)
    jobs.step()
    return job_id


def name(job_id, attempt=1):
    return submission_id(Lease(job_id, attempt))


def test_attempt_becomes_a_ray_job_and_stays_queued(queue, api, job_id):
    ((submission, request),) = api.submitted.items()
    assert submission == f"tfbbb-{job_id}-1"
    assert request["entrypoint"] == f"tfbbb worker --job {job_id}"
    assert request["entrypoint_num_cpus"] == 2
    assert request["entrypoint_num_gpus"] == 1
    variables = request["runtime_env"]["env_vars"]
    assert Path(variables["TFBBB_DATA_DIR"]).is_absolute()
    assert variables["TFBBB_DATABASE_URL"] == queue.settings.database_url
    assert states(queue, job_id) == ["queued"]
    log = JobFiles(queue.settings, job_id).log.read_text()
    assert f"`ray job logs tfbbb-{job_id}-1`" in log


def test_attempt_is_submitted_once_whoever_submits_it(queue, api, jobs, job_id):
    jobs.step()
    RayJobs(queue, _ADDRESS).step()
    assert api.submissions == 1


def test_next_attempt_is_another_ray_job(queue, api, jobs, job_id):
    lease = queue.lease_job(job_id)
    jobs.step()
    assert api.submissions == 1
    # Its node has lost its power.
    let_expire(queue, lease)
    jobs.step()
    assert list(api.submitted) == [name(job_id, 1), name(job_id, 2)]


def test_ray_job_that_ends_before_it_begins_counts_as_a_death(queue, api, jobs, job_id):
    for attempt in (1, 2, 3):
        told = "Job entrypoint command failed with exit code 127"
        api.ends[name(job_id, attempt)] = f"{told}\ntfbbb: not found"
        jobs.step()
        jobs.step()
    failed = job(queue, job_id)
    assert failed.state == "failed"
    assert failed.error == (
        "3 attempts came to nothing, the last one: its Ray job "
        f"{name(job_id, 3)} ended before it began: {told}"
    )
    assert states(queue, job_id).count("running") == 3


def test_cancelled_job_is_not_submitted_again(queue, api, jobs, job_id):
    cancel(queue, job_id)
    jobs.step()
    assert (api.submissions, states(queue, job_id)) == (1, ["queued", "cancelled"])


def test_job_waits_while_the_cluster_does_not_answer(queue):
    (job_id,) = submitted(queue)
    # Port 9 of this machine: nothing listens there.
    lost = RayJobs(queue, "http://127.0.0.1:9")
    with pytest.raises(OSError, match="The Ray cluster does not answer"):
        lost.step()
    assert states(queue, job_id) == ["queued"]


def test_refusal_of_the_cluster_is_told(queue, api, monkeypatch):
    def refuse(**request):
        raise AuthenticationError("Authentication required: Missing token")

    monkeypatch.setattr(api, "submit_job", refuse)
    submitted(queue)
    with pytest.raises(OSError, match=r"The Ray cluster refused: Auth"):
        RayJobs(queue, _ADDRESS).step()


def test_workers_on_other_machines_need_postgresql(queue):
    command = ["worker", "--ray-address", "http://192.0.2.1:8265"]
    done = subprocess.run(
        [sys.executable, "-m", "tfbbb", *command],
        env=os.environ | queue.settings.environment(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "cannot share a SQLite database; name a PostgreSQL" in done.stderr


@pytest.mark.slow
def test_cluster_runs_a_job_to_its_end(queue, monkeypatch):
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    options = {"num_cpus": 1, "object_store_memory": 80 * 2**20}
    options |= {"include_dashboard": True, "dashboard_port": 0}
    cluster = Cluster(initialize_head=True, head_node_args=options)
    try:
        address = f"http://{cluster.head_node.webui_url}"
        command = f"{sys.executable} -m tests.service.job_process.stand_in_worker"
        jobs = RayJobs(queue, address, command=command)
        (job_id,) = submitted(queue)
        while (found := job(queue, job_id)).version is None:
            assert found.state in ("queued", "running", "exporting"), found.error
            jobs.step()
    finally:
        cluster.shutdown()
    trained = queue.store.version("model", 1) / "saved_model.pb"
    assert trained.read_text() == result_of(found)
