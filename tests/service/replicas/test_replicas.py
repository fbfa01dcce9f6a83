"""Two whole services that share PostgreSQL and an object store."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import make_url

from service.shared.database import Database
from service.shared.queue import Queue
from service.shared.settings import Settings
from tests.service.postgresql import new_database
from tests.service.running import (
    ROW,
    TABLE,
    Replica,
    means_of_two_versions,
    new_key,
    point,
    stopped_at_the_end,
    version_of,
)
from tests.service.serving import refusal
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def shared_url(postgresql):
    """The URL of an empty database."""
    return new_database(postgresql)


@pytest.fixture(scope="module")
def means(replicas, elsewhere, saved_models):
    return means_of_two_versions(replicas, elsewhere, saved_models)


@pytest.fixture(scope="module")
def store(s3):
    return s3.new_store()


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("replicas")


@pytest.fixture(scope="module")
def elsewhere(shared_url, store, root):
    """The queue on another machine, which publishes."""
    settings = Settings(
        data_dir=root / "elsewhere",
        store=store,
        database_url=shared_url,
        lease_seconds=600.0,
    )
    database = Database(settings.effective_database_url)
    yield Queue(database, settings)
    database.close()


@pytest.fixture(scope="module")
def replicas(shared_url, store, root, relay):
    """Both start at once on an empty database, and run no jobs."""
    through = make_url(shared_url).set(port=relay.port).render_as_string()
    shared = {
        "TFBBB_STORE": store,
        "TFBBB_JOB_SLOTS": "0",
        "TFBBB_MAX_QUEUED_JOBS": "3",
    }
    found = [
        Replica(root / name, TFBBB_DATABASE_URL=address, **shared)
        for name, address in (("first", shared_url), ("second", through))
    ]
    with stopped_at_the_end(*found):
        for replica in found:
            replica.wait_until_ready()
        yield found


def test_version_published_elsewhere_answers_everywhere(replicas, means):
    for replica in replicas:
        while version_of(means, replica.predict("diabetes", ROW)) != 2:
            time.sleep(0.05)


def test_request_after_a_move_gets_the_new_version(replicas, means):
    first, second = replicas
    for number in 1, 2, 1, 2, 1:
        point(first, number)
        answer = second.predict("diabetes/labels/live", ROW)
        assert version_of(means, answer) == number


def test_answers_during_moves_are_each_of_one_version(replicas, means):
    over = threading.Event()

    def ask(replica):
        found = []
        while not over.is_set():
            answer = replica.predict("diabetes/labels/live", ROW)
            found.append(version_of(means, answer))
        return found

    with ThreadPoolExecutor(4) as executor:
        asking = [executor.submit(ask, replica) for replica in 2 * replicas]
        try:
            for move in range(6):
                point(replicas[move % 2], 1 + move % 2)
        finally:
            over.set()
        answers = [number for each in asking for number in each.result()]
    assert set(answers) == {1, 2}


def test_quota_holds_for_requests_at_the_same_time(replicas):
    _, headers = new_key(replicas[0])
    csv = {"Content-Type": "text/csv"} | headers
    table = replicas[0].post("/v1/datasets", content=TABLE, headers=csv)
    body = {"dataset_id": table["id"], "target": "y", "task": "regression"}

    def submit(place):
        made = replicas[place % 2].client.post(
            "/v1/jobs", json=body | {"name": f"model{place}"}, headers=headers
        )
        assert made.status_code in (201, 429), made.text
        return made.status_code

    for place in range(2):
        assert submit(place) == 201
    with ThreadPoolExecutor(8) as executor:
        statuses = list(executor.map(submit, range(8)))
    assert statuses.count(201) == 1


def test_slow_database_does_not_slow_predictions(replicas, means, relay):
    second = replicas[1]
    version_of(means, second.predict("diabetes/labels/live", ROW))
    relay.delay = 2.0
    try:
        statuses = [
            second.predict(path, ROW).status_code
            for path in 10 * ("diabetes", "diabetes/labels/live")
        ]
        assert set(statuses) == {200}
    finally:
        relay.delay = 0.0
    wait_until(second.is_ready)


def test_replica_without_database_predicts_and_is_not_ready(replicas, means, relay):
    first, second = replicas
    point(first, 1)
    wait_until(
        lambda: version_of(means, second.predict("diabetes/labels/live", ROW)) == 1
    )
    relay.silent = True
    try:
        wait_until(lambda: not second.is_ready())
        problem = second.client.get("/health/ready").json()["error"]
        assert problem.startswith("database: ")
        assert "go on predicting" in problem
        assert second.is_ready("/health/predicting")
        for path in "diabetes", "diabetes/labels/live", "diabetes/versions/2":
            version_of(means, second.predict(path, ROW))
        point(first, 2)
        assert version_of(means, first.predict("diabetes/labels/live", ROW)) == 2
        assert version_of(means, second.predict("diabetes/labels/live", ROW)) == 1
    finally:
        relay.silent = False
    wait_until(second.is_ready)
    wait_until(
        lambda: version_of(means, second.predict("diabetes/labels/live", ROW)) == 2
    )


def test_lost_bucket_is_reported_and_predictions_continue(replicas, means, s3, store):
    # The last test of these replicas: it removes their bucket.
    s3.remove_bucket(store)
    first = replicas[0]
    wait_until(lambda: not first.is_ready())
    assert "store: The store does not answer." in first.client.get("/health/ready").text
    version_of(means, first.predict("diabetes", ROW))
    upload = first.client.post("/v1/datasets", content=b"a,b\n5,6\n")
    assert "there is no such bucket" in refusal(upload, 503)
