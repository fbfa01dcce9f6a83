"""Two services with trainings through a partition."""

import itertools
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from sqlalchemy import make_url

from service.shared.database.tables import Job
from service.shared.queue import Queue
from tests.service.queued import job
from tests.service.replicas.relay import Relay
from tests.service.running import (
    ROW,
    STAND_IN,
    Replica,
    check_jobs,
    means_of_two_versions,
    point,
    stopped_at_the_end,
    submit,
    version_of,
)
from tests.service.serving import AS_ADMIN
from tests.waiting import wait_until

_LEASE_SECONDS = 20
_SETTINGS = {
    "TFBBB_LEASE_SECONDS": f"{_LEASE_SECONDS}",
    "TFBBB_CHECKPOINT_SECONDS": "0.5",
    "STAND_IN_SECONDS_PER_STEP": "0.2",
}


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
def database_relay(shared_url: str) -> Iterator[Relay]:
    """The way of the far replica to the database, which may fall silent."""
    port = make_url(shared_url).port
    assert port is not None
    with Relay(port) as relay:
        yield relay


@pytest.fixture(scope="module")
def replicas(
    shared_url: str, store: str, root: Path, database_relay: Relay
) -> Iterator[list[Replica]]:
    """Two that train; the far one has a relay to the database."""
    url = make_url(shared_url).set(port=database_relay.port).render_as_string()
    shared = _SETTINGS | {"TFBBB_DATABASE_URL": shared_url, "TFBBB_STORE": store}
    near = Replica(root / "near", module=STAND_IN, **shared)
    far = Replica(root / "far", module=STAND_IN, **shared | {"TFBBB_DATABASE_URL": url})
    with stopped_at_the_end(near, far):
        for replica in near, far:
            replica.wait_until_ready()
        yield [near, far]


@pytest.fixture(scope="module")
def means(
    replicas: list[Replica], elsewhere: Queue, real_models: Path
) -> dict[int, float]:
    return means_of_two_versions(replicas, elsewhere, real_models)


def check_served(replicas: Sequence[Replica], jobs: Sequence[Job]) -> None:
    """Waits until all replicas know the versions of jobs."""
    for row, replica in itertools.product(jobs, replicas):
        path = f"/v1/models/{row.name}/versions/{row.version}"
        wait_until(lambda r=replica, p=path: r.client.get(p).status_code == 200)


def are_training(queue: Queue, jobs: Sequence[str]) -> bool:
    rows = [job(queue, job_id) for job_id in jobs]
    return all(row.state == "running" and row.progress.get("step") for row in rows)


@pytest.mark.slow
def test_partition_loses_no_job_and_no_prediction(
    replicas: list[Replica],
    means: dict[int, float],
    elsewhere: Queue,
    database_relay: Relay,
) -> None:
    near, far = replicas
    point(near, 1)
    jobs = [submit(replicas, f"partition-{number}") for number in range(2)]
    wait_until(lambda: are_training(elsewhere, jobs), 120)
    load = Load(means)
    with load.on(replicas, per_second=20):
        # The far replica learns where the label points.
        wait_until(lambda: load.answers[far, 200] > 5)
        database_relay.silent = True
        try:
            wait_until(lambda: not far.is_ready())
            assert far.is_ready("/health/predicting")
            key = {"name": "x", "scopes": ["train"]}
            refused = far.client.post("/v1/keys", json=key)
            assert refused.status_code == 503
            point(near, 2)
            time.sleep(_LEASE_SECONDS)
            assert not far.is_ready()
        finally:
            database_relay.silent = False
        wait_until(far.is_ready)
    # Both have answered all the time, each request by one version.
    assert [load.statuses(replica) for replica in replicas] == [{200}, {200}]
    wait_until(lambda: version_of(means, far.predict("diabetes/labels/live", ROW)) == 2)
    check_served(replicas, check_jobs(elsewhere, jobs))
