import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest
from sqlalchemy import delete, func, select

from service.api.jobs import event_stream
from service.shared.database import Database
from service.shared.database.tables import Dataset, Event, Job, ModelVersion
from service.shared.files import JobFiles
from service.shared.queue import Queue
from service.shared.settings import Settings
from tests.service.postgresql import new_database
from tests.service.queued import add_table, leased, states, submitted
from tests.service.recorded import add_versions
from tests.service.serving import refusal, serving
from tfbbb.tables import Schema
from tfbbb.training.job_clock import WAITING
from tfbbb.training.record import RECORD_FILE, TrainingRecord
from tfbbb.training.spec import JobSpec

COLUMNS = [
    {"name": "area", "type": "number", "missing": 0, "distinct": 90},
    {"name": "street", "type": "text", "missing": 0, "distinct": 7, "kind": "text",
     "most_common": [["Elm", 20]]},
    {"name": "price", "type": "number", "missing": 0, "distinct": 90},
]  # fmt: skip
USELESS = [
    {"name": "empty", "type": "number", "missing": 90, "distinct": 0},
    {"name": "same", "type": "number", "missing": 0, "distinct": 1},
]
UNKNOWN = "0" * 24
# Of what depends on the kind of database; the others run on SQLite.
ON_EACH_DATABASE = pytest.mark.parametrize(
    "settings", ["sqlite", "postgresql"], indirect=True
)


@pytest.fixture(scope="module")
def settings(request, tmp_path_factory):
    root, url = tmp_path_factory.mktemp("jobs"), None
    (root / "models").mkdir()
    if getattr(request, "param", "sqlite") == "postgresql":
        url = new_database(request.getfixturevalue("postgresql"))
    places = {"data_dir": root / "data", "models": root / "models"}
    return Settings(**places, database_url=url, job_slots=0, max_queued_jobs=2)


@pytest.fixture(scope="module")
def service(settings):
    with serving(settings) as client:
        yield client


@pytest.fixture
def queue(settings, service):
    """A queue without jobs."""
    database = Database(settings.effective_database_url)
    yield Queue(database, settings)
    with database.writing() as session:
        for table in (Job, Dataset, ModelVersion):
            session.execute(delete(table))
    database.close()


@pytest.fixture
def client(service, queue):
    return service


@pytest.fixture
def dataset_id(queue):
    return add_table(queue, columns=COLUMNS)


@pytest.fixture
def body(dataset_id):
    return {"dataset_id": dataset_id, "target": "price", "name": "houses"}


def post(client, body, key=None, **headers):
    if key is not None:
        headers["Idempotency-Key"] = key
    return client.post("/v1/jobs", json=body, headers=headers)


def count(queue):
    with queue.database.reading() as session:
        return session.scalar(select(func.count()).select_from(Job))


def test_three_fields_are_enough_to_queue_a_job(client, body, queue):
    response = post(client, body)
    assert response.status_code == 201
    job = response.json()
    assert job["state"] == "queued"
    assert (job["name"], job["target"]) == ("houses", "price")
    assert job["spec"]["training"]["effort"] == "default"
    assert job["progress"] == {}
    least, most = job["timing"]["seconds_left"]
    assert 0 < least < most
    assert job["started_at"] is job["version"] is None
    assert client.get(f"/v1/jobs/{job['id']}").json() == job
    assert states(queue, job["id"]) == ["queued"]


@pytest.mark.parametrize(
    ("change", "status", "field", "words"),
    [
        ({"name": "../houses"}, 400, "name", "name"),
        ({"dataset_id": UNKNOWN}, 404, "dataset_id", "no dataset"),
        (
            {"start_from": {"model": "houses", "version": 3}},
            *(404, "start_from", "no version 3"),
        ),
        ({"training": {"epochs": True}}, 400, "training.epochs", "epochs"),
        ({"epochs": 3}, 400, "epochs", "epochs"),
        ({"target": "prize"}, 422, "target", "price"),
        ({"features": ["aera"]}, 422, "features", "no feature column 'aera'"),
        ({"target": "empty"}, 422, "target", "no values"),
        ({"target": "same"}, 422, "target", "the same value in every row"),
        (
            {"target": "street", "task": "regression"},
            *(422, "target", "has texts such as 'Elm', but must hold numbers"),
        ),
    ],
)
def test_refusal_has_the_field_to_change_and_the_reason(
    client, body, queue, change, status, field, words
):
    wide = add_table(queue, columns=[*COLUMNS, *USELESS], sha256="1" * 64)
    response = post(client, body | {"dataset_id": wide} | change)
    assert response.status_code == status
    refusal = response.json()
    assert refusal["field"] == field
    assert words in refusal["error"]
    assert count(queue) == 0


@pytest.fixture
def parent(queue):
    """The field of a job that starts from a version, which is there."""
    add_versions(queue.database, "houses", 3)
    table = pa.table({"area": range(20), "street": ["a", "b"] * 10, "price": range(20)})
    spec = JobSpec.model_validate({"target": "price", "model": {"hidden_units": [3]}})
    record = queue.settings.models / "houses" / "3" / "assets.extra" / RECORD_FILE
    record.parent.mkdir(parents=True)
    schema = Schema.infer(table, "price", features=["area", "street"])
    record.write_bytes(TrainingRecord(spec, schema).to_json())
    return {"start_from": {"model": "houses", "version": 3}}


def test_a_job_may_start_from_a_version_that_is_there(client, body, parent, queue):
    body |= parent
    response = post(client, body)
    assert response.status_code == 201
    other = post(client, body | {"features": ["area"]})
    assert "also has the features 'street'" in refusal(other, 400)
    with queue.database.writing() as session:
        session.get_one(ModelVersion, ("houses", 3)).deleted_at = 2.0
    assert post(client, body).status_code == 404
    path = f"/v1/jobs/{response.json()['id']}"
    client.post(f"{path}:cancel")
    refused = client.post(f"{path}:retry")
    assert "version 3 of the model 'houses'" in refusal(refused, 409)


def test_the_same_request_sent_again_makes_no_second_job(client, body, queue):
    first, again = post(client, body, "one"), post(client, body, "one")
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()
    assert post(client, body | {"priority": 0}, "one").status_code == 200
    other = post(client, body | {"priority": 1}, "one")
    assert first.json()["id"] in refusal(other, 409)
    assert post(client, body, "two").status_code == 201
    assert count(queue) == 2


def test_no_more_jobs_wait_than_a_key_may_queue(client, body):
    first, second = (post(client, body, key).json() for key in ("one", "two"))
    refused = post(client, body)
    assert "2 jobs" in refusal(refused, 429)
    # The answer to what was queued before is still the same.
    assert post(client, body, "one").json() == first
    client.post(f"/v1/jobs/{second['id']}:cancel")
    third = post(client, body)
    assert third.status_code == 201
    assert client.post(f"/v1/jobs/{second['id']}:retry").status_code == 429


def test_jobs_are_listed_by_state_model_and_dataset(client, body, queue):
    mine = post(client, body).json()["id"]
    (other,) = submitted(queue, name="other", spec={"target": "y"})
    client.post(f"/v1/jobs/{other}:cancel")

    def ids(**params):
        return [j["id"] for j in client.get("/v1/jobs", params=params).json()["jobs"]]

    assert ids() == [other, mine]
    assert ids(state="queued") == ids(name="houses") == [mine]
    assert ids(dataset_id=body["dataset_id"]) == [mine]
    assert ids(state="cancelled", name="other") == [other]
    assert ids(state="cancelled", name="houses") == []


def test_a_list_that_can_not_be_is_refused(client):
    for parameters in (
        {"cursor": "x"},
        {"cursor": "1.0_\0"},
        {"cursor": "nan_1"},
        {"limit": "0"},
        {"state": "lost"},
        {"dataset_id": "'"},
    ):
        response = client.get("/v1/jobs", params=parameters)
        assert response.status_code == 400, parameters


def test_unknown_jobs_are_not_found_and_other_ids_refused(client):
    for method, verb in (("GET", ""), ("GET", "/events"), ("POST", ":cancel")):
        unknown = client.request(method, f"/v1/jobs/{UNKNOWN}{verb}")
        assert unknown.status_code == 404, (method, verb)
        for id in ("1", "%00", "x" * 24):
            response = client.request(method, f"/v1/jobs/{id}{verb}")
            assert response.status_code in (400, 404), (method, verb, id)


def test_a_running_job_tells_how_far_it_is(client, body, queue):
    id = post(client, body).json()["id"]
    lease = leased(queue)
    far = {"epoch": 1, "epochs": 4, "step": 10, "steps": 40}
    at = {"stage": "training", "done": 0.4, "seconds_left": [5.0, 10.0], "elapsed": 5.0}
    queue.heartbeat(lease, far, timing=at)
    files = JobFiles(queue.settings, id)
    files.directory.mkdir(parents=True)
    files.log.write_text("é" * 20_000 + "\nattempt 1\nepoch 1\n")
    job = client.get(f"/v1/jobs/{id}").json()
    assert (job["state"], job["attempt"]) == ("running", 1)
    assert far.items() <= job["progress"].items()
    assert job["timing"] == at
    assert job["log"] == "attempt 1\nepoch 1\n"
    queue.fail(lease, "The rows ran out")
    job = client.get(f"/v1/jobs/{id}").json()
    assert (job["state"], job["error"]) == ("failed", "The rows ran out")
    assert job["finished_at"] >= job["started_at"] >= job["created_at"]


def test_queued_job_is_cancelled_and_running_job_asked_to_stop(client, body, queue):
    running = post(client, body).json()["id"]
    lease = leased(queue)
    waiting = post(client, body).json()["id"]
    cancelled = client.post(f"/v1/jobs/{waiting}:cancel")
    assert cancelled.status_code == 200
    assert cancelled.json()["state"] == "cancelled"
    assert client.post(f"/v1/jobs/{waiting}:cancel").json() == cancelled.json()
    assert states(queue, waiting) == ["queued", "cancelled"]
    asked = client.post(f"/v1/jobs/{running}:cancel").json()
    assert (asked["state"], asked["cancel_requested"]) == ("running", True)
    assert queue.heartbeat(lease)


def test_failed_and_cancelled_jobs_are_tried_again_under_their_id(client, body, queue):
    id = post(client, body).json()["id"]
    refused = client.post(f"/v1/jobs/{id}:retry")
    assert "queued" in refusal(refused, 409)
    queue.fail(leased(queue), "of no use")
    again = client.post(f"/v1/jobs/{id}:retry").json()
    assert (again["id"], again["state"], again["error"]) == (id, "queued", None)
    assert again["finished_at"] is None
    client.post(f"/v1/jobs/{id}:cancel")
    assert client.post(f"/v1/jobs/{id}:retry").json()["state"] == "queued"


def test_a_job_whose_dataset_is_gone_is_not_tried_again(client, body, queue):
    id = post(client, body).json()["id"]
    client.post(f"/v1/jobs/{id}:cancel")
    with queue.database.writing() as session:
        session.delete(session.get_one(Dataset, body["dataset_id"]))
    assert client.get(f"/v1/jobs/{id}").json()["dataset_id"] is None
    refused = client.post(f"/v1/jobs/{id}:retry")
    assert "dataset" in refusal(refused, 409)


def events(client, id, after=0, most=10**6):
    """The events of a job; the connection is broken off after `most`."""
    headers = {"Last-Event-ID": str(after)}
    with client.stream("GET", f"/v1/jobs/{id}/events", headers=headers) as stream:
        assert stream.headers["Content-Type"].startswith("text/event-stream")
        event = {}
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


def run_through(queue, epochs):
    """Runs the next job, quickly."""
    lease = leased(queue)
    for epoch in range(1, epochs + 1):
        told = {"epoch": epoch, "epochs": epochs, "nll": 1 / epoch}
        queue.heartbeat(lease, {"step": epoch}, [told])
        time.sleep(0.01)
    queue.fail(lease, "It was only a test")


def test_events_come_as_they_happen_until_the_job_has_ended(client, body, queue):
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


def test_a_stream_tells_the_stage_while_nothing_happens(client, body, monkeypatch):
    monkeypatch.setattr(event_stream, "_LONGEST_SILENCE", 0.05)
    monkeypatch.setattr(event_stream, "_PAUSE", 0.1)
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


def test_a_key_that_is_revoked_hears_no_more(client, body):
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
    client, body, queue, monkeypatch
):
    monkeypatch.setattr(event_stream, "_AT_ONCE", 3)
    id = post(client, body).json()["id"]
    trainer = threading.Thread(target=run_through, args=(queue, 30))
    trainer.start()
    seen = []
    while len(seen) < 33:
        after = seen[-1] if seen else 0
        seen += [number for number, _, _ in events(client, id, after, most=4)]
    trainer.join()
    assert seen == list(range(1, 34))
    url = f"/v1/jobs/{id}/events"
    # Else a browser would come back for ever.
    nothing = client.get(url, params={"after": 33})
    assert (nothing.status_code, nothing.content) == (204, b"")
    assert client.get(url, params={"after": 32}).text.count("\nid: ") == 1
    for wrong in ("-1", "34"):
        refused = client.get(url, headers={"Last-Event-ID": wrong})
        assert refused.status_code == 400


@ON_EACH_DATABASE
def test_requests_sent_at_the_same_time_make_one_job(client, body, queue):
    start = threading.Barrier(8)

    def send():
        start.wait()
        return post(client, body, "one")

    with ThreadPoolExecutor(8) as executor:
        answers = list(executor.map(lambda _: send(), range(8)))
    assert sorted(answer.status_code for answer in answers) == [200] * 7 + [201]
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert count(queue) == 1


@ON_EACH_DATABASE
def test_jobs_are_listed_newest_first_page_by_page(client, queue):
    ids = submitted(queue, 3, spec={"target": "y"})[::-1]
    first = client.get("/v1/jobs?limit=2").json()
    cursor = {"limit": "2", "cursor": first["next_cursor"]}
    second = client.get("/v1/jobs", params=cursor).json()
    assert [job["id"] for job in first["jobs"] + second["jobs"]] == ids
    assert second["next_cursor"] is None


@ON_EACH_DATABASE
def test_only_ended_jobs_are_deleted_with_all_their_files(client, body, queue):
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
