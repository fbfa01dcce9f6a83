"""Two services that train through a partition."""

import itertools
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import make_url

from service.shared.queue import Queue
from tests.service.queued import job
from tests.service.replicas.relay import Relay
from tests.service.running import (
    ROW,
    Replica,
    check_jobs,
    point,
    stopped_at_the_end,
    submit,
    version_of,
)
from tests.waiting import wait_until

_LEASE_SECONDS = 20
_SETTINGS = {
    "TFBBB_LEASE_SECONDS": f"{_LEASE_SECONDS}",
    "TFBBB_CHECKPOINT_SECONDS": "0.5",
    "STAND_IN_SECONDS_PER_STEP": "0.2",
}
_PATHS = ("diabetes", "diabetes/labels/live", "diabetes/versions/1")


@contextmanager
def answering(replica: Replica, means: Mapping[int, float]) -> Iterator[list[int]]:
    """Asks a replica until the block ends, and checks every answer.

    Yields the versions that have answered so far.
    """
    over, versions = threading.Event(), list[int]()

    def ask() -> None:
        for path in itertools.cycle(_PATHS):
            if over.wait(0.05):
                return
            number = version_of(means, replica.predict(path, ROW))
            assert number == 1 or not path.endswith("1")
            versions.append(number)

    with ThreadPoolExecutor(1) as executor:
        asking = executor.submit(ask)
        try:
            yield versions
        finally:
            over.set()
        asking.result()


@pytest.fixture(scope="module")
def replicas(
    shared_url: str, store: str, root: Path, relay: Relay
) -> Iterator[list[Replica]]:
    """Two that train; the far one has a relay to the database."""
    url = make_url(shared_url).set(port=relay.port).render_as_string()
    shared = _SETTINGS | {"TFBBB_DATABASE_URL": shared_url, "TFBBB_STORE": store}
    near = Replica(root / "near", **shared)
    far = Replica(root / "far", **shared | {"TFBBB_DATABASE_URL": url})
    with stopped_at_the_end(near, far):
        for replica in near, far:
            replica.wait_until_ready()
        yield [near, far]


def are_training(queue: Queue, jobs: Sequence[str]) -> bool:
    rows = [job(queue, job_id) for job_id in jobs]
    return all(row.state == "running" and row.progress.get("step") for row in rows)


@pytest.mark.slow
def test_partition_loses_no_job_and_no_prediction(
    replicas: list[Replica],
    means: dict[int, float],
    elsewhere: Queue,
    relay: Relay,
) -> None:
    near, far = replicas
    point(near, 1)
    jobs = [submit(replicas, f"partition-{number}") for number in range(2)]
    wait_until(lambda: are_training(elsewhere, jobs), 120)
    # Both answer all the time, each request by one version.
    with answering(near, means), answering(far, means) as versions:
        # The far replica learns where the label points.
        wait_until(lambda: len(versions) > 5)
        relay.silent = True
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
            relay.silent = False
        wait_until(far.is_ready)
    wait_until(lambda: version_of(means, far.predict("diabetes/labels/live", ROW)) == 2)
    for row, replica in itertools.product(check_jobs(elsewhere, jobs), replicas):
        path = f"/v1/models/{row.name}/versions/{row.version}"
        wait_until(lambda r=replica, p=path: r.client.get(p).status_code == 200)
