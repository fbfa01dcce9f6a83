import asyncio
import json
import shutil
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pyarrow as pa
import pytest
from sqlalchemy import func, select
from sqlalchemy.exc import OperationalError

from service.api.feedback.retraining import offer_retraining
from service.api.jobs import event_stream
from service.api.keys.caller import Caller
from service.shared.database.tables import Dataset, Event, Job, Key, ModelVersion
from service.shared.files import JobFiles
from service.shared.queue import Queue
from service.shared.settings import Settings
from service.shared.store.directory_store import DirectoryStore
from tests.service.queued import leased, registered, states, submitted
from tests.service.serving import serving
from tests.service.transactions import calls_in_transactions
from tfbbb.tables import Schema
from tfbbb.training.job_clock import WAITING
from tfbbb.training.record import RECORD_FILE, TrainingRecord
from tfbbb.training.spec import JobSpec

COLUMNS = [
    {"name": "area", "type": "number", "missing": 0, "distinct": 90},
    {"name": "street", "type": "text", "missing": 0, "distinct": 7},
    {"name": "price", "type": "number", "missing": 0, "distinct": 90},
]
UNKNOWN = "0" * 24
# Of what does not depend on the kind of database; the others run on each.
ONE_DATABASE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@pytest.fixture
def settings(settings: Settings) -> Settings:
    settings.models.mkdir()
    alone = {"start_models": False, "start_dispatcher": False}
    return settings.model_copy(update=alone)


@pytest.fixture
def client(settings: Settings, queue: Queue) -> Iterator[httpx.Client]:
    with serving(settings) as client:
        yield client


@pytest.fixture
def dataset_id(queue: Queue) -> str:
    dataset = Dataset(
        name="houses.csv",
        sha256="0" * 64,
        format="csv",
        num_bytes=1000,
        num_rows=100,
        columns=COLUMNS,
        problems=[],
        created_at=1.0,
    )
    with queue.database.writing() as session:
        session.add(dataset)
    return dataset.id


@pytest.fixture
def body(dataset_id: str) -> dict[str, Any]:
    return {"dataset_id": dataset_id, "target": "price", "name": "houses"}


def post(
    client: httpx.Client, body: Any, key: str | None = None, **headers: str
) -> httpx.Response:
    if key is not None:
        headers["Idempotency-Key"] = key
    return client.post("/v1/jobs", json=body, headers=headers)


def count(queue: Queue) -> int:
    with queue.database.reading() as session:
        return session.scalar(select(func.count()).select_from(Job)) or 0


@ONE_DATABASE
def test_three_fields_are_enough_to_queue_a_job(
    client: httpx.Client, body: dict[str, Any], queue: Queue
) -> None:
    response = post(client, body)
    assert response.status_code == 201
    job = response.json()
    assert job["state"] == "queued"
    assert (job["name"], job["target"]) == ("houses", "price")
    assert job["spec"]["training"]["learning_rate"]["decay"] == "cosine"
    assert job["progress"] == {}
    assert job["eta_seconds"] is job["started_at"] is job["version"] is None
    assert client.get(f"/v1/jobs/{job['id']}").json() == job
    assert states(queue, job["id"]) == ["queued"]


REFUSALS: tuple[tuple[dict[str, Any], str, str | None, str], ...] = (
    ({"target": "prize"}, "invalid_request", "target", "price"),
    ({"features": ["area", "storeys"]}, "invalid_request", "features", "storeys"),
    ({"features": ["price"]}, "invalid_request", None, "price"),
    ({"name": "../houses"}, "invalid_request", "name", "name"),
    ({"name": "h" * 129}, "invalid_request", "name", "name"),
    ({"dataset_id": "houses.csv"}, "invalid_request", "dataset_id", "dataset_id"),
    ({"dataset_id": UNKNOWN}, "unknown_dataset", "dataset_id", "no dataset"),
    (
        {"start_from": {"model": "houses", "version": 3}},
        *("unknown_model", "start_from", "no version 3"),
    ),
    (
        {"model": {"hidden_units": [0]}},
        *("invalid_request", "model.hidden_units.0", "hidden_units"),
    ),
    (
        {"training": {"epochs": True}},
        *("invalid_request", "training.epochs", "epochs"),
    ),
    ({"epochs": 3}, "invalid_request", "epochs", "epochs"),
    ({"priority": 1e9}, "invalid_request", "priority", "priority"),
)


@ONE_DATABASE
def test_refusal_has_a_code_the_field_to_change_and_the_reason(
    client: httpx.Client, body: dict[str, Any], queue: Queue
) -> None:
    for change, code, field, words in REFUSALS:
        response = post(client, body | change)
        assert response.status_code == (404 if code.startswith("unknown") else 400)
        refusal = response.json()
        assert (refusal["code"], refusal["field"]) == (code, field), change
        assert words in refusal["error"], change
    assert count(queue) == 0


@pytest.fixture
def parent(queue: Queue) -> dict[str, Any]:
    """The field of a job that starts from a version, which is there."""
    version = ModelVersion(
        name="houses", number=3, digest="0" * 64, lineage={}, created_at=1.0
    )
    with queue.database.writing() as session:
        session.add(version)
    table = pa.table({"area": range(20), "street": ["a", "b"] * 10, "price": range(20)})
    spec = JobSpec.model_validate({"target": "price", "model": {"hidden_units": [3]}})
    record = queue.settings.models / "houses" / "3" / "assets.extra" / RECORD_FILE
    record.parent.mkdir(parents=True)
    schema = Schema.infer(table, "price", features=["area", "street"])
    record.write_bytes(TrainingRecord(spec, schema).to_json())
    return {"start_from": {"model": "houses", "version": 3}}


@pytest.fixture
def in_transactions(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each look into the store, or removal, was in a writing transaction."""
    places = (DirectoryStore, "version"), (shutil, "rmtree")
    return calls_in_transactions(monkeypatch, *places)


@ONE_DATABASE
def test_no_transaction_waits_for_the_parent_version_of_a_job(
    client: httpx.Client,
    body: dict[str, Any],
    parent: dict[str, Any],
    in_transactions: list[bool],
) -> None:
    assert post(client, body | parent).status_code == 201
    assert in_transactions == [False]


@ONE_DATABASE
def test_no_transaction_waits_for_the_removal_of_scratch(
    client: httpx.Client,
    body: dict[str, Any],
    settings: Settings,
    in_transactions: list[bool],
) -> None:
    id = post(client, body).json()["id"]
    client.post(f"/v1/jobs/{id}:cancel")
    files = JobFiles(settings, id)
    files.scratch.mkdir(parents=True)
    assert client.delete(f"/v1/jobs/{id}").status_code == 204
    assert in_transactions == [False]
    assert not files.directory.exists()


@ONE_DATABASE
def test_parent_version_deleted_while_it_is_read_is_unknown(
    client: httpx.Client,
    body: dict[str, Any],
    parent: dict[str, Any],
    queue: Queue,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def delete(store: DirectoryStore, name: str, number: int) -> Any:
        with queue.database.writing() as session:
            session.get_one(ModelVersion, (name, number)).deleted_at = 2.0
        raise FileNotFoundError(name)

    monkeypatch.setattr(DirectoryStore, "version", delete)
    refused = post(client, body | parent)
    assert refused.status_code == 404
    assert "no version 3" in refused.json()["error"]


@ONE_DATABASE
def test_a_job_may_start_from_a_version_that_is_there(
    client: httpx.Client, body: dict[str, Any], parent: dict[str, Any], queue: Queue
) -> None:
    body |= parent
    response = post(client, body)
    assert response.status_code == 201
    other = post(client, body | {"features": ["area"]})
    assert other.status_code == 400
    assert "also has the features 'street'" in other.json()["error"]
    with queue.database.writing() as session:
        session.get_one(ModelVersion, ("houses", 3)).deleted_at = 2.0
    assert post(client, body).status_code == 404
    path = f"/v1/jobs/{response.json()['id']}"
    client.post(f"{path}:cancel")
    refused = client.post(f"{path}:retry")
    assert refused.status_code == 409
    assert "version 3 of the model 'houses'" in refused.json()["error"]


@ONE_DATABASE
def test_the_body_that_is_offered_after_drift_makes_a_job(
    client: httpx.Client, body: dict[str, Any], parent: dict[str, Any], queue: Queue
) -> None:
    drifted = offer_retraining(queue, "houses", 3)
    # The only table is older than the version, so its rows may have trained it.
    assert drifted.body is None
    assert "Upload new rows with their targets" in drifted.sentence
    with queue.database.writing() as session:
        dataset = session.get_one(Dataset, body["dataset_id"])
        dataset.created_at = 1e10
    offered = offer_retraining(queue, "houses", 3).body
    assert offered == {
        **body,
        **parent,
        "features": ["area", "street"],
    }
    response = post(client, offered)
    assert response.status_code == 201, response.text
    with queue.database.writing() as session:
        dataset = session.get_one(Dataset, body["dataset_id"])
        dataset.columns = [x for x in COLUMNS if x["name"] != "street"]
    refused = offer_retraining(queue, "houses", 3)
    assert refused.body is None
    assert "The newest table does not suit" in refused.sentence


def test_the_same_request_sent_again_makes_no_second_job(
    client: httpx.Client, body: dict[str, Any], queue: Queue
) -> None:
    first, again = post(client, body, "one"), post(client, body, "one")
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()
    assert post(client, body | {"priority": 0}, "one").status_code == 200
    other = post(client, body | {"priority": 1}, "one")
    assert other.status_code == 409
    assert first.json()["id"] in other.json()["error"]
    assert post(client, body, "two").status_code == 201
    assert count(queue) == 2


def test_requests_sent_at_the_same_time_make_one_job(
    client: httpx.Client, body: dict[str, Any], queue: Queue
) -> None:
    answers: list[httpx.Response] = []
    start = threading.Barrier(8)

    def send() -> None:
        start.wait()
        answers.append(post(client, body, "one"))

    threads = [threading.Thread(target=send) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answer.status_code for answer in answers) == [200] * 7 + [201]
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert count(queue) == 1


def test_no_more_jobs_wait_than_a_key_may_queue(
    client: httpx.Client, body: dict[str, Any], queue: Queue
) -> None:
    with queue.database.writing() as session:
        session.scalars(select(Key)).one().max_queued_jobs = 2
    first, second = (post(client, body, key).json() for key in ("one", "two"))
    refused = post(client, body)
    assert refused.status_code == 429
    assert "2 jobs" in refused.json()["error"]
    # The answer to what was queued before is still the same.
    assert post(client, body, "one").json() == first
    client.post(f"/v1/jobs/{second['id']}:cancel")
    third = post(client, body)
    assert third.status_code == 201
    assert client.post(f"/v1/jobs/{second['id']}:retry").status_code == 429


def test_jobs_are_listed_newest_first_page_by_page(
    client: httpx.Client, queue: Queue
) -> None:
    ids = submitted(queue, 7, spec={"target": "y"})[::-1]
    listed: list[str] = []
    cursor: dict[str, str] = {}
    for size in (3, 3, 1):
        page = client.get("/v1/jobs", params={"limit": "3", **cursor}).json()
        assert len(page["jobs"]) == size
        listed += [job["id"] for job in page["jobs"]]
        cursor = {"cursor": page["next_cursor"]}
    assert listed == ids
    assert cursor["cursor"] is None


def test_jobs_are_listed_by_state_model_and_dataset(
    client: httpx.Client, body: dict[str, Any], queue: Queue
) -> None:
    mine = post(client, body).json()["id"]
    (other,) = submitted(queue, name="other", spec={"target": "y"})
    client.post(f"/v1/jobs/{other}:cancel")

    def ids(**params: str) -> list[str]:
        return [j["id"] for j in client.get("/v1/jobs", params=params).json()["jobs"]]

    assert ids() == [other, mine]
    assert ids(state="queued") == ids(name="houses") == [mine]
    assert ids(dataset_id=body["dataset_id"]) == [mine]
    assert ids(state="cancelled", name="other") == [other]
    assert ids(state="cancelled", name="houses") == []


def test_a_list_that_can_not_be_is_refused(client: httpx.Client) -> None:
    for parameters in (
        {"cursor": "x"},
        {"cursor": "W10"},
        {"cursor": "Ä"},
        {"cursor": "WzEuMCwiXHUwMDAwIl0"},  # The id is the character 0.
        {"limit": "0"},
        {"limit": "1000000"},
        {"state": "lost"},
        {"name": "\0"},
        {"dataset_id": "'"},
    ):
        response = client.get("/v1/jobs", params=parameters)
        assert response.status_code == 400, parameters


def test_unknown_jobs_are_not_found_and_other_ids_refused(
    client: httpx.Client,
) -> None:
    for method, verb in (
        ("GET", ""),
        ("DELETE", ""),
        ("GET", "/events"),
        ("POST", ":cancel"),
        ("POST", ":retry"),
    ):
        unknown = client.request(method, f"/v1/jobs/{UNKNOWN}{verb}")
        assert unknown.status_code == 404, (method, verb)
        for id in ("1", "%00", "..", "x" * 24, "0" * 10_000):
            response = client.request(method, f"/v1/jobs/{id}{verb}")
            assert response.status_code in (400, 404, 405), (method, verb, id)
            assert response.json().keys() == {"error", "code", "field"}


@ONE_DATABASE
def test_a_running_job_tells_how_far_it_is(
    client: httpx.Client, body: dict[str, Any], queue: Queue
) -> None:
    id = post(client, body).json()["id"]
    lease = leased(queue, registered(queue))
    far = {"epoch": 1, "epochs": 4, "step": 10, "steps": 40}
    progress = {**far, "seconds_per_step": 0.25}
    queue.heartbeat(lease, progress)
    files = JobFiles(queue.settings, id)
    files.directory.mkdir(parents=True)
    files.log.write_text("é" * 20_000 + "\nattempt 1\nepoch 1\n")
    job = client.get(f"/v1/jobs/{id}").json()
    assert (job["state"], job["attempt"]) == ("running", 1)
    assert progress.items() <= job["progress"].items()
    assert job["eta_seconds"] == 7.5
    assert job["log"] == "attempt 1\nepoch 1\n"
    queue.fail(lease, "The rows ran out")
    job = client.get(f"/v1/jobs/{id}").json()
    assert (job["state"], job["error"]) == ("failed", "The rows ran out")
    assert job["eta_seconds"] is None
    assert job["finished_at"] >= job["started_at"] >= job["created_at"]


@ONE_DATABASE
def test_queued_job_is_cancelled_and_running_job_asked_to_stop(
    client: httpx.Client, body: dict[str, Any], queue: Queue
) -> None:
    running = post(client, body).json()["id"]
    lease = leased(queue, registered(queue))
    waiting = post(client, body).json()["id"]
    cancelled = client.post(f"/v1/jobs/{waiting}:cancel")
    assert cancelled.status_code == 200
    assert cancelled.json()["state"] == "cancelled"
    assert client.post(f"/v1/jobs/{waiting}:cancel").json() == cancelled.json()
    asked = client.post(f"/v1/jobs/{running}:cancel").json()
    assert (asked["state"], asked["cancel_requested"]) == ("running", True)
    assert queue.heartbeat(lease)


@ONE_DATABASE
def test_failed_and_cancelled_jobs_are_tried_again_under_their_id(
    client: httpx.Client, body: dict[str, Any], queue: Queue
) -> None:
    id = post(client, body).json()["id"]
    refused = client.post(f"/v1/jobs/{id}:retry")
    assert refused.status_code == 409
    assert "queued" in refused.json()["error"]
    queue.fail(leased(queue, registered(queue)), "of no use")
    again = client.post(f"/v1/jobs/{id}:retry").json()
    assert (again["id"], again["state"], again["error"]) == (id, "queued", None)
    client.post(f"/v1/jobs/{id}:cancel")
    assert client.post(f"/v1/jobs/{id}:retry").json()["state"] == "queued"


@ONE_DATABASE
def test_a_job_whose_dataset_is_gone_is_not_tried_again(
    client: httpx.Client, body: dict[str, Any], queue: Queue
) -> None:
    id = post(client, body).json()["id"]
    client.post(f"/v1/jobs/{id}:cancel")
    with queue.database.writing() as session:
        session.delete(session.get_one(Dataset, body["dataset_id"]))
    assert client.get(f"/v1/jobs/{id}").json()["dataset_id"] is None
    refused = client.post(f"/v1/jobs/{id}:retry")
    assert refused.status_code == 409
    assert "dataset" in refused.json()["error"]


def test_only_ended_jobs_are_deleted_with_all_their_files(
    client: httpx.Client, body: dict[str, Any], queue: Queue
) -> None:
    id = post(client, body).json()["id"]
    files = JobFiles(queue.settings, id)
    files.scratch.mkdir(parents=True)
    assert client.delete(f"/v1/jobs/{id}").status_code == 409
    assert files.directory.exists()
    client.post(f"/v1/jobs/{id}:cancel")
    assert client.delete(f"/v1/jobs/{id}").status_code == 204
    assert client.delete(f"/v1/jobs/{id}").status_code == 404
    assert not files.directory.exists()
    with queue.database.reading() as session:
        assert session.scalar(select(func.count()).select_from(Event)) == 0


def events(
    client: httpx.Client, id: str, after: int = 0, most: int = 10**6
) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """The events of a job; the connection is broken off after `most`."""
    headers = {"Last-Event-ID": str(after)}
    with client.stream("GET", f"/v1/jobs/{id}/events", headers=headers) as stream:
        assert stream.headers["Content-Type"].startswith("text/event-stream")
        event: dict[str, str] = {}
        for line in stream.iter_lines():
            if line:
                name, _, value = line.partition(": ")
                event[name] = value
            elif "id" in event:
                found, event = event, {}
                if found["event"] == "stage":
                    continue  # A slow machine gets one more often.
                yield int(found["id"]), found["event"], json.loads(found["data"])
                most -= 1
                if most == 0:
                    return


def run_through(queue: Queue, epochs: int) -> None:
    """Runs the next job, quickly."""
    lease = leased(queue, registered(queue))
    for epoch in range(1, epochs + 1):
        told = {"epoch": epoch, "epochs": epochs, "nll": 1 / epoch}
        queue.heartbeat(lease, {"step": epoch}, [told])
        time.sleep(0.01)
    queue.fail(lease, "It was only a test")


def test_events_come_as_they_happen_until_the_job_has_ended(
    client: httpx.Client, body: dict[str, Any], queue: Queue
) -> None:
    id = post(client, body).json()["id"]
    trainer = threading.Thread(target=run_through, args=(queue, 5))
    told = []
    for event in events(client, id):
        told.append(event)
        if len(told) == 1:
            trainer.start()
    trainer.join()
    assert [number for number, _, _ in told] == list(range(1, 9))
    of_states = [data["state"] for _, type_, data in told if type_ == "state"]
    assert of_states == ["queued", "running", "failed"]
    of_epochs = [data["epoch"] for _, type_, data in told if type_ == "epoch"]
    assert of_epochs == [1, 2, 3, 4, 5]
    assert told[-1][2]["reason"] == "It was only a test"
    # Times are told in one way everywhere.
    job = client.get(f"/v1/jobs/{id}").json()
    assert told[0][2]["at"] == job["created_at"]
    assert told[-1][2]["at"] == job["finished_at"]


@ONE_DATABASE
def test_a_stream_tells_the_stage_while_nothing_happens(
    client: httpx.Client, body: dict[str, Any], monkeypatch: Any
) -> None:
    monkeypatch.setattr(event_stream, "_LONGEST_SILENCE", 0.05)
    id = post(client, body).json()["id"]
    with client.stream("GET", f"/v1/jobs/{id}/events") as stream:
        lines = stream.iter_lines()
        for _ in range(3):
            while next(lines) != "event: stage":
                continue
            told = [next(lines), next(lines)]
            data = next(x for x in told if x.startswith("data: "))
            assert json.loads(data.removeprefix("data: "))["stage"] == WAITING
            # The number of the event before: nobody misses the next one.
            assert "id: 1" in told
    status = client.get(f"/v1/jobs/{id}").json()
    assert status["timing"]["stage"] == WAITING
    assert status["eta_seconds"] is None


@ONE_DATABASE
def test_a_key_that_is_revoked_hears_no_more(
    client: httpx.Client, body: dict[str, Any]
) -> None:
    id = post(client, body).json()["id"]
    key = client.post("/v1/keys", json={"name": "x", "scopes": ["train"]}).json()
    own = {"Authorization": f"Bearer {key['key']}"}
    with client.stream("GET", f"/v1/jobs/{id}/events", headers=own) as stream:
        lines = stream.iter_lines()
        assert "" in lines  # The end of the first event.
        assert client.delete(f"/v1/keys/{key['id']}").status_code == 200
        assert client.post(f"/v1/jobs/{id}:cancel").status_code == 200
        assert "event: state" not in lines


def test_a_stream_that_broke_off_goes_on_without_a_gap(
    client: httpx.Client, body: dict[str, Any], queue: Queue, monkeypatch: Any
) -> None:
    monkeypatch.setattr(event_stream, "_AT_ONCE", 3)
    id = post(client, body).json()["id"]
    trainer = threading.Thread(target=run_through, args=(queue, 30))
    trainer.start()
    seen: list[int] = []
    while len(seen) < 33:
        after = seen[-1] if seen else 0
        seen += [number for number, _, _ in events(client, id, after, most=4)]
    trainer.join()
    assert seen == list(range(1, 34))
    url = f"/v1/jobs/{id}/events"
    # Else a browser would come back for ever.
    for known in ({"headers": {"Last-Event-ID": "33"}}, {"params": {"after": 33}}):
        nothing = client.get(url, **known)
        assert (nothing.status_code, nothing.content) == (204, b"")
    assert client.get(url, params={"after": 32}).text.count("\nid: ") == 1
    for wrong in ("-1", "one", "34", str(2**31)):
        refused = client.get(url, headers={"Last-Event-ID": wrong})
        assert refused.status_code == 400


@ONE_DATABASE
def test_a_listener_waits_while_the_database_is_away(
    queue: Queue, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (id,) = submitted(queue)
    queue.fail(leased(queue, registered(queue)), "of no use")
    look, looks = event_stream._next_events, [1, 2, 3]

    def look_later(*arguments: Any) -> Any:
        if looks.pop() > 1:
            raise OperationalError("select", {}, Exception("connection lost"))
        looks.append(1)
        return look(*arguments)

    async def listen() -> list[int | None]:
        anyone, never = Caller.anyone(queue.settings), asyncio.Event()
        stream = event_stream.follow(queue.database, anyone, id, 0, never)
        return [int(event.id or 0) async for event in stream]

    monkeypatch.setattr(event_stream, "_next_events", look_later)
    assert asyncio.run(listen()) == [1, 2, 3]
    assert caplog.messages == [
        f"could not read the events of job {id}: connection lost"
    ]


@ONE_DATABASE
def test_a_listener_is_let_go_when_the_service_stops(queue: Queue) -> None:
    (id,) = submitted(queue)

    async def listen() -> list[str | None]:
        stopping = asyncio.Event()
        told = []
        anyone = Caller.anyone(queue.settings)
        async for event in event_stream.follow(queue.database, anyone, id, 0, stopping):
            told.append(event.event)
            asyncio.get_running_loop().call_later(0.05, stopping.set)
        return told

    assert asyncio.run(listen()) == ["state"]
