"""Two services with trainings through a partition, with a wrong clock, and kills."""

import itertools
import os
import random
import shutil
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import make_url, select

from service.shared.database.tables import Event, Job, ModelVersion
from service.shared.job_state import ENDED
from service.shared.queue import Queue
from tests.service.postgresql import new_database
from tests.service.queued import job, states
from tests.service.replicas.namespace import (
    FAR,
    HERE,
    Namespace,
    network_namespace,
    own_host_name,
)
from tests.service.replicas.relay import Relay
from tests.service.replicas.running import (
    ROW,
    SERVICE,
    STAND_IN,
    TABLE,
    Replica,
    means_of_two_versions,
    point,
    stopped_at_the_end,
    version_of,
    wait_until,
)
from tests.service.serving import AS_ADMIN
from tests.service.stores import S3

# By how many seconds `fast_clock.c` is fast.
_SKEW = 600
# For jobs whose trainers may have to start anew, on a loaded machine.
_SECONDS_TO_END = 600.0
_SETTINGS = {"TFBBB_CHECKPOINT_SECONDS": "0.5", "STAND_IN_SECONDS_PER_STEP": "0.2"}


@dataclass(frozen=True)
class Form:
    """The short form of the tests, with stand-in trainers, or the long one.

    Attributes:
        module: The service.
        lease_seconds: In the long form, leases end during the partition.
        partition_seconds: How long the partition lasts at least.
        num_kills: How many processes are killed.
        num_jobs: How many jobs are submitted meanwhile.
    """

    module: tuple[str, ...]
    lease_seconds: int
    partition_seconds: int
    num_kills: int
    num_jobs: int


_FORMS = [
    pytest.param(Form(STAND_IN, 45, 8, num_kills=4, num_jobs=1), id="short"),
    pytest.param(
        Form(SERVICE, 20, 60, num_kills=20, num_jobs=4),
        id="long",
        marks=pytest.mark.slow,
    ),
]


class Load:
    """Asks replicas all the time, and checks every answer.

    Attributes:
        answers: How often each replica gave each status; 0 stands for no answer.
    """

    def __init__(self, means: Mapping[int, float]) -> None:
        self.answers: Counter[tuple[Replica, int]] = Counter()
        self._means = means

    @contextmanager
    def on(self, replicas: Sequence[Replica], per_second: float) -> Iterator[None]:
        """Asks each replica until the block ends."""
        over = threading.Event()
        with ThreadPoolExecutor(len(replicas)) as executor:
            asking = [
                executor.submit(self._ask, replica, 1 / per_second, over)
                for replica in replicas
            ]
            try:
                yield
            finally:
                over.set()
            for each in asking:
                each.result()

    def statuses(self, replica: Replica) -> set[int]:
        return {status for other, status in self.answers if other is replica}

    def _ask(self, replica: Replica, pause: float, over: threading.Event) -> None:
        paths = ("diabetes", "diabetes/labels/live", "diabetes/versions/1")
        with httpx.Client(base_url=replica.url, headers=AS_ADMIN, timeout=60) as client:
            for path in itertools.cycle(paths):
                if over.wait(pause):
                    return
                status = 0
                try:
                    answer = client.post(
                        f"/v1/models/{path}:predict", json={"instances": [ROW]}
                    )
                    status = answer.status_code
                except httpx.TransportError:
                    pass
                if status == 200:
                    number = version_of(self._means, answer)
                    assert number == 1 or not path.endswith("1")
                self.answers[replica, status] += 1


@pytest.fixture(scope="module")
def namespace() -> Iterator[Namespace]:
    with network_namespace() as namespace:
        yield namespace


@pytest.fixture(scope="module")
def database_relay(shared_url: str, namespace: Namespace) -> Iterator[Relay]:
    """The way of the far replica to the database, which the namespace can drop."""
    port = make_url(shared_url).port
    assert port is not None
    with Relay(port, HERE) as relay:
        yield relay


@pytest.fixture(scope="module", params=_FORMS)
def form(request: pytest.FixtureRequest) -> Form:
    assert isinstance(request.param, Form)
    return request.param


@pytest.fixture(scope="module")
def shared_url(form: Form, postgresql: str) -> str:
    """A database for each form."""
    return new_database(postgresql)


@pytest.fixture(scope="module")
def store(form: Form, s3: S3) -> str:
    return s3.new_store()


@pytest.fixture(scope="module")
def root(form: Form, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("faults")


@pytest.fixture(scope="module")
def replicas(
    form: Form,
    shared_url: str,
    store: str,
    root: Path,
    namespace: Namespace,
    database_relay: Relay,
) -> Iterator[list[Replica]]:
    """Two that train: the far one has a network of its own, and a fast clock."""
    settings = _SETTINGS | {"TFBBB_LEASE_SECONDS": str(form.lease_seconds)}
    s3 = int(os.environ["AWS_ENDPOINT_URL"].rpartition(":")[2])
    url = make_url(shared_url).set(host=HERE, port=database_relay.port)
    with Relay(s3, HERE) as storage:
        near = Replica(
            root / "near",
            shared_url,
            store,
            module=form.module,
            prefix=own_host_name("near"),
            **settings,
        )
        far = Replica(
            root / "far",
            url.render_as_string(),
            store,
            host=FAR,
            module=form.module,
            prefix=namespace.prefix,
            AWS_ENDPOINT_URL=f"http://{HERE}:{storage.port}",
            LD_PRELOAD=str(fast_clock(root)),
            **settings,
        )
        with stopped_at_the_end(near, far):
            for replica in near, far:
                replica.wait_until_ready()
            yield [near, far]


def fast_clock(directory: Path) -> Path:
    """Compiles `fast_clock.c`."""
    if (compiler := shutil.which("cc")) is None:
        pytest.skip("there is no C compiler on this machine: no cc")
    library, source = directory / "fast_clock.so", Path(__file__).parent
    paths = [str(library), str(source / "fast_clock.c")]
    options = ["-shared", "-fPIC", "-fno-builtin", "-o", *paths, "-ldl"]
    subprocess.run([compiler, *options], check=True)
    return library


@pytest.fixture(scope="module")
def means(
    replicas: list[Replica], elsewhere: Queue, real_models: Path
) -> dict[int, float]:
    return means_of_two_versions(replicas, elsewhere, real_models)


def submit(replicas: Sequence[Replica], name: str, steps: int) -> str:
    """Queues a job, however often processes are killed; returns its id."""
    csv = {"Content-Type": "text/csv"}
    table = ask_until_answered(replicas, "/v1/datasets", content=TABLE, headers=csv)
    body = {
        "dataset_id": table["id"],
        "target": "y",
        "task": "regression",
        "name": name,
        "training": {"steps": steps},
    }
    once = {"Idempotency-Key": name}
    made = ask_until_answered(replicas, "/v1/jobs", json=body, headers=once)
    return str(made["id"])


def ask_until_answered(
    replicas: Sequence[Replica], path: str, headers: Mapping[str, str], **body: Any
) -> Any:
    """Posts to one replica after the other until one has answered."""
    for replica in itertools.cycle(replicas):
        try:
            answer = httpx.post(
                replica.url + path, headers={**AS_ADMIN, **headers}, timeout=30, **body
            )
        except httpx.TransportError:
            pass
        else:
            if answer.status_code < 500:
                assert answer.is_success, answer.text
                return answer.json()
        time.sleep(0.2)
    raise AssertionError


def check_jobs(queue: Queue, jobs: Sequence[str], replicas: Sequence[Replica]) -> None:
    """Waits for the end of jobs: each has one, and each success has one version."""
    due = time.monotonic() + _SECONDS_TO_END
    while not all(job(queue, job_id).state in ENDED for job_id in jobs):
        rows = [job(queue, job_id) for job_id in jobs]
        assert time.monotonic() < due, [
            (row.state, row.attempt, row.deaths, row.machine, row.progress)
            for row in rows
        ]
        time.sleep(0.1)
    with queue.database.reading() as session:
        versions = list(session.scalars(select(ModelVersion)))
    succeeded = 0
    for job_id in jobs:
        row, told = job(queue, job_id), states(queue, job_id)
        assert [state for state in told if state in ENDED] == told[-1:] == [row.state]
        published = [v.number for v in versions if v.job_id == job_id]
        if row.state == "succeeded":
            succeeded += 1
            assert published == [row.version]
            for replica in replicas:
                path = f"/v1/models/{row.name}/versions/{row.version}"
                wait_until(lambda r=replica, p=path: r.client.get(p).status_code == 200)
        else:
            # A trainer that was killed three times without progress.
            assert "died 3 times" in (row.error or "")
            assert published == []
    assert 2 * succeeded > len(jobs)
    for name in {version.name for version in versions}:
        # The store has nothing beside what is recorded: nothing is published twice.
        recorded = sorted(v.number for v in versions if v.name == name)
        assert queue.store.numbers(name) == recorded


def are_training(queue: Queue, jobs: Sequence[str]) -> bool:
    rows = [job(queue, job_id) for job_id in jobs]
    return all(row.state == "running" and row.progress.get("step") for row in rows)


@pytest.mark.slow
def test_partition_loses_no_job_and_no_prediction(
    form: Form,
    replicas: list[Replica],
    means: dict[int, float],
    elsewhere: Queue,
    namespace: Namespace,
    database_relay: Relay,
) -> None:
    near, far = replicas
    point(near, 1)
    jobs = [submit(replicas, f"partition-{number}", 12_000) for number in range(2)]
    wait_until(lambda: are_training(elsewhere, jobs), 120)
    with elsewhere.database.reading() as session:
        now = elsewhere.database.now(session)
        for row in session.scalars(select(Job).where(Job.id.in_(jobs))):
            # Also on the fast clock.
            assert 0 < (row.lease_expires_at or 0) - now <= form.lease_seconds
    load = Load(means)
    with load.on(replicas, per_second=20):
        # The far replica learns where the label points.
        wait_until(lambda: load.answers[far, 200] > 5)
        namespace.drop(database_relay.port)
        try:
            began = time.monotonic()
            wait_until(lambda: not far.is_ready())
            assert far.is_ready("/health/predicting")
            key = {"name": "x", "scopes": ["train"]}
            refused = far.client.post("/v1/keys", json=key)
            assert refused.status_code == 503
            point(near, 2)
            time.sleep(max(0.0, began + form.partition_seconds - time.monotonic()))
            assert not far.is_ready()
        finally:
            namespace.heal()
        wait_until(far.is_ready)
    # Both have answered all the time, each request by one version.
    assert [load.statuses(replica) for replica in replicas] == [{200}, {200}]
    wait_until(lambda: version_of(means, far.predict("diabetes/labels/live", ROW)) == 2)
    check_jobs(elsewhere, jobs, replicas)
    if form.lease_seconds > 2 * form.partition_seconds:
        # No dispatcher has taken a job from the other.
        assert [job(elsewhere, job_id).attempt for job_id in jobs] == [1, 1]


def test_job_on_a_fast_clock_has_the_times_of_the_database(
    replicas: list[Replica], elsewhere: Queue
) -> None:
    _, far = replicas
    date = far.client.get("/health/live").headers["date"]
    there = time.mktime(time.strptime(date, "%a, %d %b %Y %H:%M:%S %Z"))
    assert there - time.mktime(time.gmtime()) > _SKEW / 2
    with elsewhere.database.reading() as session:
        now = elsewhere.database.now(session)
        began = now - _SKEW / 2
        for event in session.scalars(select(Event)):
            assert began < event.created_at <= now
        for version in session.scalars(select(ModelVersion)):
            assert began < version.created_at <= now


def test_key_expires_by_the_clock_of_the_database(replicas: list[Replica]) -> None:
    near, far = replicas
    made = far.post(
        "/v1/keys",
        json={"name": "short", "scopes": ["predict"], "expires_in_seconds": 300},
    )
    headers = {"Authorization": f"Bearer {made['key']}"}
    # By the fast clock it would have expired already.
    for replica in near, far:
        assert replica.client.get("/v1/models", headers=headers).status_code == 200
    long = near.post(
        "/v1/keys",
        json={"name": "long", "scopes": ["predict"], "expires_in_seconds": 300},
    )
    assert made["expires_at"] <= long["expires_at"]


def test_kills_of_any_process_lose_nothing(
    form: Form,
    replicas: list[Replica],
    means: dict[int, float],
    elsewhere: Queue,
) -> None:
    chance = random.Random(form.num_kills)
    point(replicas[0], 1)
    # Each kind, and then any: the first jobs are trained meanwhile.
    kinds = ["trainer", "models", "dispatcher", "api"]
    kinds += chance.choices([*kinds, "service"], k=form.num_kills - len(kinds))
    jobs, load = [], Load(means)
    with load.on(replicas, per_second=20):
        for place, kind in enumerate(kinds):
            if place * form.num_jobs >= len(jobs) * form.num_kills:
                jobs.append(submit(replicas, f"kills-{place}", 2000))
            time.sleep(chance.uniform(0.0, 4.0))
            replica = chance.choice(replicas)
            replica.kill(kind)
            if kind in ("api", "service"):
                replica.start()
        for replica in replicas:
            wait_until(replica.is_ready, 120)
    for replica in replicas:
        # While a process is started anew there is no answer, or 503.
        assert 200 in load.statuses(replica) <= {0, 200, 503}
    check_jobs(elsewhere, jobs, replicas)
