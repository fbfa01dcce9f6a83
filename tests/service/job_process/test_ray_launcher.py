"""Jobs on a Ray cluster, whose Jobs API is a stand-in."""

import os
import subprocess
import sys
import time
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
from service.job_process.ray_launcher import (
    RayLauncher,
    locked_requirements,
    submission_id,
)
from service.shared import job_events as events
from service.shared.database import Database
from service.shared.database.tables import DispatcherRegistration, Job
from service.shared.files import JobFiles
from service.shared.queue import Lease, Queue, StaleAttemptError
from service.shared.ray_cluster import RayClusterError, check_cluster
from service.shared.settings import Settings
from tests.service.job_process.jobs_api import JobsApi, jobs_api
from tests.service.queued import job, let_expire, states, submitted


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


def test_no_more_jobs_are_submitted_than_there_are_slots(
    queue: Queue, dispatcher: Dispatcher, api: JobsApi
) -> None:
    submitted(queue, 3)
    for _ in range(3):
        dispatcher.step()
    assert api.submissions == 2


def test_attempt_is_submitted_once(settings: Settings, api: JobsApi) -> None:
    lease = Lease("f" * 24, 1)
    # The second launcher has not heard the answer to the first.
    for launcher in (RayLauncher(settings), RayLauncher(settings)):
        launcher.start(lease)
        assert launcher.running() == [lease]
    assert api.submissions == 1


def test_lease_is_renewed_until_the_trainer_does(
    queue: Queue, dispatcher: Dispatcher, api: JobsApi, job_id: str
) -> None:
    for status, starts, renewed in (
        ("PENDING", False, True),
        ("RUNNING", False, True),
        ("RUNNING", True, False),
    ):
        api.set(name(job_id), status)
        dispatcher.step()
        if starts:
            queue.heartbeat(Lease(job_id, 1))
        before = job(queue, job_id).lease_expires_at
        dispatcher._renewed_at = float("-inf")
        dispatcher.step()
        assert (job(queue, job_id).lease_expires_at != before) == renewed


def test_trainer_that_never_starts_on_its_node_is_stopped(
    queue: Queue,
    dispatcher: Dispatcher,
    api: JobsApi,
    monkeypatch: pytest.MonkeyPatch,
    job_id: str,
) -> None:
    clock = time.monotonic
    # A job may wait for a node for ever, but not start for ever.
    monkeypatch.setattr(time, "monotonic", lambda: clock() + 1e4)
    dispatcher.step()
    assert api.stopped == []
    api.set(name(job_id), "RUNNING")
    dispatcher.step()
    monkeypatch.setattr(time, "monotonic", lambda: clock() + 1e4 + 301.0)
    dispatcher.step()
    assert api.stopped == [name(job_id)]
    api.set(name(job_id), "STOPPED")
    dispatcher.step()
    assert reasons(queue, job_id) == ["it did not start within 300 s"]


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


def test_given_python_trains(settings: Settings, api: JobsApi) -> None:
    python = {"ray_python": "/opt/the python"}
    RayLauncher(settings.model_copy(update=python)).start(Lease("f" * 24, 1))
    (request,) = api.jobs.values()
    assert request["entrypoint"].startswith("'/opt/the python' -m service.trainer")


@pytest.mark.parametrize("activated", [False, True])
def test_trainer_runs_with_the_python_of_the_raylet(
    api: JobsApi, settings: Settings, tmp_path: Path, activated: bool
) -> None:
    for program in ("of_ray", "python"):
        (tmp_path / program).write_text('#!/bin/sh\necho "$0 $*"\n')
        (tmp_path / program).chmod(0o755)
    RayLauncher(settings).start(Lease("f" * 24, 1))
    (request,) = api.jobs.values()
    # Ray's raylet starts a supervisor, which starts the shell.
    supervisor = "import subprocess, sys; subprocess.run(sys.argv[1], shell=True)"
    raylet = "import subprocess, sys; subprocess.run([sys.executable, *sys.argv[2:]])"
    worker = f"--python_worker_command={tmp_path}/of_ray setup_worker.py --port=1"
    environment = os.environ | {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    environment.pop("VIRTUAL_ENV", None)
    if activated:
        environment["VIRTUAL_ENV"] = str(tmp_path)
    done = subprocess.run(
        [
            *(sys.executable, "-c", raylet, worker),
            *("-c", supervisor, request["entrypoint"]),
        ],
        env=environment,
        capture_output=True,
        text=True,
    )
    python = tmp_path / ("python" if activated else "of_ray")
    assert done.stdout.startswith(f"{python} -m service.trainer"), done.stderr


def test_exit_code_and_last_line_of_a_trainer_are_told(
    queue: Queue, dispatcher: Dispatcher, api: JobsApi, job_id: str
) -> None:
    api.logs[name(job_id)] = f"INFO attempt 1 of job {job_id}\nNo space left\n\n"
    api.set(name(job_id), "FAILED", driver_exit_code=137, message="failed")
    dispatcher.step()
    assert reasons(queue, job_id) == [
        "exit code 137; the last line of its log: No space left"
    ]


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


def test_result_of_a_trainer_is_not_a_death(
    queue: Queue, dispatcher: Dispatcher, api: JobsApi, job_id: str
) -> None:
    queue.fail(Lease(job_id, 1), "of no use")
    api.set(name(job_id), "FAILED", driver_exit_code=1)
    dispatcher.step()
    assert (job(queue, job_id).error, job(queue, job_id).deaths) == ("of no use", 0)


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


def test_jobs_of_a_living_dispatcher_are_left_to_it(
    queue: Queue, dispatcher: Dispatcher, settings: Settings, job_id: str
) -> None:
    Dispatcher(queue, RayLauncher(settings)).step()
    assert job(queue, job_id).leased_by == dispatcher.id


def test_jobs_of_a_killed_dispatcher_are_taken_over(
    queue: Queue, dispatcher: Dispatcher, api: JobsApi, settings: Settings, job_id: str
) -> None:
    silence(queue, dispatcher)
    following = Dispatcher(queue, RayLauncher(settings))
    following.step()
    assert job(queue, job_id).leased_by == following.id
    assert api.submissions == 1


def test_cancelled_job_is_stopped_on_its_node(
    queue: Queue,
    dispatcher: Dispatcher,
    api: JobsApi,
    monkeypatch: pytest.MonkeyPatch,
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
    queue: Queue, settings: Settings, api: JobsApi, caplog: pytest.LogCaptureFixture
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


def test_expired_attempt_is_submitted_anew(
    queue: Queue, dispatcher: Dispatcher, api: JobsApi, job_id: str
) -> None:
    let_expire(queue, Lease(job_id, 1))
    dispatcher.step()
    assert list(api.jobs) == [name(job_id, 1), name(job_id, 2)]


def test_late_output_of_an_attempt_leaves_that_of_the_next(
    queue: Queue, dispatcher: Dispatcher, api: JobsApi, job_id: str
) -> None:
    let_expire(queue, Lease(job_id, 1))
    dispatcher.step()
    for text in ("one", "one, and more", "one, and much more"):
        for attempt in (2, 1):
            api.logs[name(job_id, attempt)] = f"{text} of {attempt}\n"
        dispatcher.step()
    assert log(queue, job_id).endswith(
        f"Ray job {name(job_id, 2)}:\none, and much more of 2\n"
    )
    assert "\0" not in log(queue, job_id)


def test_outage_of_the_cluster_lets_no_lease_expire(
    queue: Queue,
    dispatcher: Dispatcher,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # One job waits for a node, and another has lost its dispatcher.
    (waiting,) = submitted(queue)
    dispatcher.step()
    (lost,) = submitted(queue)
    ended = Dispatcher(queue, RayLauncher(settings))
    ended.step()
    assert job(queue, lost).leased_by == ended.id
    silence(queue, ended)

    def lose(*arguments: Any, **options: Any) -> None:
        raise ConnectionError("Connection refused")

    monkeypatch.setattr(ray_launcher._Client, "_do_request", lose)
    before = job(queue, waiting).lease_expires_at
    dispatcher._renewed_at = float("-inf")
    dispatcher.step()
    assert (job(queue, waiting).lease_expires_at or 0.0) > (before or 0.0)
    assert dispatcher._renewed_at > 0
    # It is taken over when the cluster answers.
    assert job(queue, lost).leased_by == ended.id


def test_one_of_two_dispatchers_takes_a_job_over(
    queue: Queue, dispatcher: Dispatcher, api: JobsApi, settings: Settings, job_id: str
) -> None:
    silence(queue, dispatcher)
    ((lease, ended),) = queue.without_dispatcher()
    assert (lease, ended) == (Lease(job_id, 1), dispatcher.id)
    queue.take_over(lease, ended, "first")
    with pytest.raises(StaleAttemptError, match="was taken over"):
        queue.take_over(lease, ended, "second")
    assert job(queue, job_id).leased_by == "first"


def test_lock_file_becomes_one_requirement_per_line(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text(
        "# made by a tool\n"
        "numpy==2.1 ; sys_platform != 'win32' \\\n"
        "    --hash=sha256:aa \\\n"
        "    --hash=sha256:bb\n"
        "    # via tfbbb\n"
        "scipy==1.14 \\\n"
        "    --hash=sha256:cc\n"
    )
    assert locked_requirements(tmp_path / "lock") == [
        "numpy==2.1 ; sys_platform != 'win32' --hash=sha256:aa --hash=sha256:bb",
        "scipy==1.14 --hash=sha256:cc",
    ]


def test_cluster_of_the_same_version_passes_without_warning(
    settings: Settings,
) -> None:
    assert check_cluster(settings) is None


def test_another_minor_version_of_ray_is_warned_of(
    settings: Settings, api: JobsApi
) -> None:
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


@pytest.mark.parametrize("source", ["variable", "named file", "default file"])
def test_token_of_ray_is_sent(
    settings: Settings,
    api: JobsApi,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    source: str,
) -> None:
    api.token = "secret"
    if source == "variable":
        monkeypatch.setenv("RAY_AUTH_TOKEN", api.token)
    else:
        file = tmp_path / ".ray" / "auth_token"
        if source == "named file":
            file = tmp_path / "token"
            monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(file))
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"{api.token}\n")
    assert check_cluster(settings) is None
    RayLauncher(settings).start(Lease("f" * 24, 1))
    assert api.submissions == 1


@pytest.mark.parametrize(
    ("sent", "message"),
    [(None, "needs a token: .* set RAY_AUTH_TOKEN"), ("wrong", "refuses the token")],
)
def test_refused_token_is_called_what_it_is(
    queue: Queue,
    dispatcher: Dispatcher,
    settings: Settings,
    api: JobsApi,
    monkeypatch: pytest.MonkeyPatch,
    sent: str | None,
    message: str,
) -> None:
    api.token = "secret"
    if sent is not None:
        monkeypatch.setenv("RAY_AUTH_TOKEN", sent)
    with pytest.raises(RayClusterError, match=message):
        check_cluster(settings)
    (job_id,) = submitted(queue)
    with pytest.raises(OSError, match=message):
        dispatcher.step()
    assert states(queue, job_id) == ["queued", "running", "queued"]
    # The token is read again, and the job waits no longer.
    monkeypatch.setenv("RAY_AUTH_TOKEN", api.token)
    dispatcher._may_launch_at = float("-inf")
    dispatcher.step()
    assert api.submissions == 1


def test_token_file_that_cannot_be_read_is_named(
    settings: Settings, api: JobsApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", "/no/such/file")
    for ask in (check_cluster, lambda s: RayLauncher(s).start(Lease("f" * 24, 1))):
        with pytest.raises((RayClusterError, OSError), match="PATH=/no/such/file"):
            ask(settings)


def test_dispatcher_of_local_jobs_imports_no_ray() -> None:
    code = (
        "import sys; from service.job_process import dispatcher; "
        "from service.shared.settings import Settings; "
        "dispatcher.make_launcher(Settings()); sys.exit('ray' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
