"""Jobs on a Ray cluster, whose Jobs API is a stand-in."""

import os
import subprocess
import sys
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

pytest.importorskip("ray", reason="needs the extra `ray`")

import ray

from service.job_process import ray_launcher
from service.job_process.dispatcher import Dispatcher
from service.job_process.ray_launcher import RayLauncher, submission_id
from service.shared import job_events as events
from service.shared.database import Database
from service.shared.database.tables import DispatcherRegistration, Job
from service.shared.files import JobFiles
from service.shared.queue import Lease, Queue
from service.shared.ray_cluster import RayClusterError, check_cluster
from service.shared.settings import Settings
from tests.service.job_process.jobs_api import JobsApi, jobs_api
from tests.service.queued import job, states, submitted


@pytest.fixture
def api() -> Iterator[JobsApi]:
    with jobs_api(ray.__version__) as api:
        yield api


@pytest.fixture(autouse=True)
def without_token(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for variable in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture(autouse=True)
def looks_at_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_launcher, "_STATE_SECONDS", -1.0)
    monkeypatch.setattr(ray_launcher, "_LOG_SECONDS", -1.0)
    # A job whose process died is tried again at once.
    monkeypatch.setattr("service.shared.queue._PAUSES", (0.0, 0.0, 0.0))


@pytest.fixture
def settings(tmp_path: Path, api: JobsApi) -> Settings:
    return Settings(
        data_dir=tmp_path / "data",
        models=tmp_path / "models",
        launcher="ray",
        ray_address=api.address,
        ray_job_memory_bytes=2**30,
        job_slots=2,
    )


@pytest.fixture
def queue(settings: Settings, database: Database) -> Queue:
    settings.data_dir.mkdir()
    return Queue(database, settings)


@pytest.fixture
def dispatcher(queue: Queue, settings: Settings) -> Dispatcher:
    return Dispatcher(queue, RayLauncher(settings))


@pytest.fixture
def job_id(queue: Queue, dispatcher: Dispatcher) -> str:
    """A job whose first attempt the dispatcher has started."""
    (job_id,) = submitted(queue)
    dispatcher.step()
    return job_id


def reasons(queue: Queue, job_id: str) -> list[str]:
    with queue.database.reading() as session:
        told = events.after(session, job_id, 0)
    return [event.data["reason"] for event in told if "reason" in event.data]


def name(job_id: str, attempt: int = 1) -> str:
    return submission_id(Lease(job_id, attempt))


def log(queue: Queue, job_id: str) -> str:
    return JobFiles(queue.settings, job_id).log.read_text()


def silence(queue: Queue, dispatcher: Dispatcher) -> None:
    """Lets a dispatcher count as dead."""
    with queue.database.writing() as session:
        session.get_one(DispatcherRegistration, dispatcher.id).seen_at = 0.0


def test_attempt_becomes_a_ray_job(
    queue: Queue, dispatcher: Dispatcher, api: JobsApi, tmp_path: Path, job_id: str
) -> None:
    (request,) = api.jobs.values()
    assert request["submission_id"] == f"tfbbb-{job_id}-1"
    trainer = f"-m service.trainer {job_id} --attempt 1 --print-log"
    assert request["entrypoint"].endswith(f'exec "$python" {trainer}')
    assert request["entrypoint_num_cpus"] == 1
    assert request["entrypoint_memory"] == 2**30
    assert request.get("entrypoint_num_gpus") is None
    variables = request["runtime_env"]["env_vars"]
    assert variables["TFBBB_DATA_DIR"] == str(tmp_path / "data")
    assert "TFBBB_ADMIN_KEY" not in variables


def test_wheel_and_lock_become_the_environment(
    settings: Settings, api: JobsApi, tmp_path: Path
) -> None:
    with ZipFile(tmp_path / "tfbbb.whl", "w") as wheel:
        wheel.writestr("service/trainer.py", "print('trained')")
    (tmp_path / "lock").write_text("numpy==2.1 \\\n    --hash=sha256:aa\n")
    files = {"ray_wheel": tmp_path / "tfbbb.whl", "ray_requirements": tmp_path / "lock"}
    launcher = RayLauncher(settings.model_copy(update=files))
    launcher.start(Lease("f" * 24, 1))
    (request,) = api.jobs.values()
    environment = request["runtime_env"]
    assert environment["working_dir"].startswith("gcs://")
    assert environment["pip"]["packages"] == ["numpy==2.1 --hash=sha256:aa"]
    with ZipFile(BytesIO(api.uploads[0])) as uploaded:
        assert "service/trainer.py" in uploaded.namelist()


def test_attempt_is_submitted_once(settings: Settings, api: JobsApi) -> None:
    lease = Lease("f" * 24, 1)
    # The second launcher has not heard the answer to the first.
    for launcher in (RayLauncher(settings), RayLauncher(settings)):
        launcher.start(lease)
        assert launcher.running() == [lease]
    assert api.submissions == 1


def test_death_of_a_node_puts_the_job_back(
    queue: Queue, dispatcher: Dispatcher, api: JobsApi, job_id: str
) -> None:
    api.set(name(job_id), "FAILED", message="The actor's node died.\nTraceback")
    dispatcher.step()
    assert states(queue, job_id) == ["queued", "running", "queued", "running"]
    assert reasons(queue, job_id) == ["Ray: The actor's node died"]
    assert list(api.jobs) == [name(job_id, 1), name(job_id, 2)]


def test_job_that_a_restarted_head_forgot_runs_again(
    queue: Queue, dispatcher: Dispatcher, api: JobsApi, job_id: str
) -> None:
    api.jobs.clear()
    dispatcher.step()
    assert list(api.jobs) == [name(job_id, 2)]
    assert reasons(queue, job_id) == ["the Ray cluster does not know its job any more"]


def test_trainer_runs_with_the_python_of_the_raylet(
    api: JobsApi, settings: Settings, tmp_path: Path
) -> None:
    python = tmp_path / "of_ray"
    python.write_text('#!/bin/sh\necho "$0 $*"\n')
    python.chmod(0o755)
    RayLauncher(settings).start(Lease("f" * 24, 1))
    (request,) = api.jobs.values()
    # Ray's raylet starts a supervisor, which starts the shell.
    supervisor = "import subprocess, sys; subprocess.run(sys.argv[1], shell=True)"
    raylet = "import subprocess, sys; subprocess.run([sys.executable, *sys.argv[2:]])"
    worker = f"--python_worker_command={python} setup_worker.py --port=1"
    environment = os.environ | {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    environment.pop("VIRTUAL_ENV", None)
    done = subprocess.run(
        [
            *(sys.executable, "-c", raylet, worker),
            *("-c", supervisor, request["entrypoint"]),
        ],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.stdout.startswith(f"{python} -m service.trainer"), done.stderr


def test_trainer_that_did_not_start_names_the_setting_of_its_python(
    queue: Queue, dispatcher: Dispatcher, api: JobsApi, job_id: str
) -> None:
    for attempt in (1, 2, 3):
        api.logs[name(job_id, attempt)] = (
            f"Running entrypoint for job {name(job_id, attempt)}: python\n"
            "/usr/bin/python3: No module named service\n"
        )
        api.set(name(job_id, attempt), "FAILED", driver_exit_code=1)
        dispatcher.step()
    assert job(queue, job_id).state == "failed"
    assert job(queue, job_id).error == (
        "Its process died 3 times, the last time: exit code 1; the last line of its "
        "log: /usr/bin/python3: No module named service; TFBBB_RAY_PYTHON must name a "
        "Python of the nodes that has tfbbb. Received: the one of the node's Ray"
    )


def test_output_of_every_attempt_is_in_the_log_once(
    queue: Queue, dispatcher: Dispatcher, api: JobsApi, job_id: str
) -> None:
    for text in ("one\n", "one\ntwo\n"):
        api.logs[name(job_id)] = text
        dispatcher.step()
    api.set(name(job_id), "STOPPED")
    dispatcher.step()
    api.logs[name(job_id, 2)] = "again\n"
    dispatcher.step()
    assert log(queue, job_id) == (
        f"Ray job {name(job_id, 1)}:\none\ntwo\nRay job {name(job_id, 2)}:\nagain\n"
    )


def test_next_dispatcher_takes_over_running_jobs(
    queue: Queue, dispatcher: Dispatcher, api: JobsApi, settings: Settings, job_id: str
) -> None:
    api.set(name(job_id), "RUNNING")
    api.logs[name(job_id)] = "one\n"
    dispatcher.step()
    dispatcher._shut_down()
    assert job(queue, job_id).state == "running"
    following = Dispatcher(queue, RayLauncher(settings))
    following.step()
    assert (api.submissions, api.stopped) == (1, [])
    assert job(queue, job_id).leased_by == following.id
    api.logs[name(job_id)] = "one\ntwo\n"
    following.step()
    assert log(queue, job_id) == f"Ray job {name(job_id)}:\none\ntwo\n"
    api.set(name(job_id), "FAILED", driver_exit_code=1)
    following.step()
    assert job(queue, job_id).attempt == 2


def test_jobs_of_a_killed_dispatcher_are_taken_over(
    queue: Queue, dispatcher: Dispatcher, api: JobsApi, settings: Settings, job_id: str
) -> None:
    silence(queue, dispatcher)
    following = Dispatcher(queue, RayLauncher(settings))
    following.step()
    assert job(queue, job_id).leased_by == following.id
    assert api.submissions == 1


def test_cancelled_job_is_stopped_on_its_node(
    queue: Queue, dispatcher: Dispatcher, api: JobsApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.job_process.dispatcher._SECONDS_TO_STOP", -1.0)
    (job_id,) = submitted(queue)
    dispatcher.step()
    api.set(name(job_id), "RUNNING")
    with queue.database.writing() as session:
        queue.cancel(session, session.get_one(Job, job_id))
    for _ in range(3):
        dispatcher.step()
    assert api.stopped == [name(job_id)]
    api.set(name(job_id), "STOPPED")
    dispatcher.step()
    assert job(queue, job_id).state == "cancelled"


def test_job_waits_while_the_cluster_does_not_answer(
    queue: Queue, settings: Settings, api: JobsApi
) -> None:
    # Port 9 of this machine: nothing listens there.
    lost = settings.model_copy(update={"ray_address": "http://127.0.0.1:9"})
    (job_id,) = submitted(queue)
    dispatcher = Dispatcher(queue, RayLauncher(lost))
    with pytest.raises(OSError, match="The Ray cluster does not answer"):
        dispatcher.step()
    dispatcher.step()
    assert states(queue, job_id) == ["queued", "running", "queued"]
    (reason,) = reasons(queue, job_id)
    assert "http://127.0.0.1:9: The Ray cluster does not answer" in reason
    assert api.submissions == 0


def test_outage_of_the_cluster_ends_no_job(
    queue: Queue, dispatcher: Dispatcher, monkeypatch: pytest.MonkeyPatch, job_id: str
) -> None:

    def lose(*arguments: Any, **options: Any) -> None:
        raise ConnectionError("Connection refused")

    monkeypatch.setattr(ray_launcher._Client, "_do_request", lose)
    for _ in range(2):
        dispatcher.step()
    assert states(queue, job_id) == ["queued", "running"]


def test_another_minor_version_of_ray_is_warned_of(
    settings: Settings, api: JobsApi
) -> None:
    assert check_cluster(settings) is None
    api.version = f"{ray.__version__.split('.')[0]}.1.0"
    warning = check_cluster(settings)
    assert warning is not None
    assert f"runs Ray {api.version}, and this machine has Ray" in warning


def test_another_major_version_of_ray_is_refused(
    settings: Settings, api: JobsApi
) -> None:
    api.version = "1.13.0"
    with pytest.raises(RayClusterError, match=r"runs Ray 1\.13\.0, which the client"):
        check_cluster(settings)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ray_address": None}, "needs the address"),
        ({"ray_address": "http://127.0.0.1:9"}, r"No Ray cluster answers at http"),
        ({"ray_address": "http://192.0.2.1:8265"}, "cannot share a SQLite database"),
    ],
)
def test_cluster_that_cannot_run_jobs_is_refused(
    settings: Settings, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(RayClusterError, match=message):
        check_cluster(settings.model_copy(update=changes))


def test_token_of_ray_is_sent(
    settings: Settings, api: JobsApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.token = "secret"
    (tmp_path / "token").write_text(f"{api.token}\n")
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(tmp_path / "token"))
    assert check_cluster(settings) is None
    RayLauncher(settings).start(Lease("f" * 24, 1))
    assert api.submissions == 1


def test_refused_token_is_called_what_it_is(
    settings: Settings, api: JobsApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.token = "secret"
    with pytest.raises(RayClusterError, match=r"needs a token: .* set RAY_AUTH_TOKEN"):
        check_cluster(settings)
    monkeypatch.setenv("RAY_AUTH_TOKEN", "wrong")
    with pytest.raises(RayClusterError, match="refuses the token"):
        check_cluster(settings)


def test_dispatcher_of_local_jobs_imports_no_ray() -> None:
    code = (
        "import sys; from service.job_process import dispatcher; "
        "from service.shared.settings import Settings; "
        "dispatcher.make_launcher(Settings()); sys.exit('ray' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
