from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from service.api.labels.repository import move
from service.shared.database.tables import Label
from tests.service.api.models.conftest import wait_until_latest
from tests.service.recorded import add_versions
from tests.service.serving import ask, refusal

EACH_DATABASE = True
BODY = {"instances": [[1, 2, 3]]}
TENSOR = {"name": "inputs", "shape": [1, 3], "datatype": "FP32", "data": [1, 2, 3]}


def put(client, label, version):
    return client.put(f"/v1/models/{label}", json={"version": version})


def versions_of(client, name):
    labels = client.get(f"/v1/models/{name}/labels").json()["labels"]
    return {label["label"]: label["version"] for label in labels}


def test_label_is_asked_as_its_version(client, publish):
    for number in (1, 2):
        publish("asked", number)
    wait_until_latest(client, "asked", 2)
    assert put(client, "asked/labels/champion", 1).status_code == 200
    for label, version in (("champion", "1"), ("latest", "2")):
        answer = ask(client, f"asked/labels/{label}", BODY).json()
        assert answer["model_version"] == version
        status = client.get(f"/v1/models/asked/labels/{label}").json()
        assert status["model_version_status"][0]["version"] == version
        metadata = client.get(f"/v1/models/asked/labels/{label}/metadata").json()
        assert metadata["model_spec"]["version"] == version
        path = f"/v2/models/asked/versions/{label}/infer"
        answer = client.post(path, json={"inputs": [TENSOR]}).json()
        assert answer["model_version"] == version
    headers = {"X-Request-Id": "move-to-2"}
    body = {"version": 2}
    path = "/v1/models/asked/labels/champion"
    assert client.put(path, json=body, headers=headers).json()["version"] == 2
    audit = {"kind": "label", "subject": "asked/champion"}
    moved = client.get("/v1/audit", params=audit).json()["changes"]
    assert [change["details"]["number"] for change in moved] == [2, 1]
    assert (moved[0]["actor"], moved[0]["request_id"]) == (
        "TFBBB_ADMIN_KEY",
        "move-to-2",
    )
    assert ask(client, "asked/labels/champion", BODY).json()["model_version"] == "2"


def test_labels_are_listed_with_models_and_versions(client, publish):
    for number in (1, 2):
        publish("listed", number)
    wait_until_latest(client, "listed", 2)
    for label in ("champion", "second"):
        assert put(client, f"listed/labels/{label}", 1).status_code == 200
    labels = {"latest": "2", "champion": "1", "second": "1"}
    assert versions_of(client, "listed") == {k: int(v) for k, v in labels.items()}
    models = {m["name"]: m for m in client.get("/v1/models").json()["models"]}
    assert models["listed"]["labels"] == labels
    assert client.get("/v1/models/listed").json()["labels"] == labels
    version = client.get("/v1/models/listed/versions/1").json()
    assert version["labels"] == {"champion": "1", "second": "1"}
    for text, is_found in {"IST": True, " second": True, "third": False}.items():
        found = client.get("/v1/models", params={"search": text}).json()["models"]
        assert ("listed" in {model["name"] for model in found}) == is_found, text
    assert client.delete("/v1/models/listed/labels/second").status_code == 204
    assert versions_of(client, "listed") == {"latest": 2, "champion": 1}


def test_latest_stays_where_it_is_put_until_a_newer_version(client, publish):
    for number in (1, 2):
        publish("put", number)
    wait_until_latest(client, "put", 2)
    made = put(client, "put/labels/latest", 1)
    assert made.json()["version"] == 1
    assert client.get("/v1/models/put/labels").json()["labels"] == [made.json()]
    assert client.get("/v1/models/put").json()["description"]["version"] == "1"
    assert ask(client, "put", BODY).json()["model_version"] == "1"
    assert versions_of(client, "put") == {"latest": 1}
    publish("put", 3)
    wait_until_latest(client, "put", 3)
    assert put(client, "put/labels/latest", 1).status_code == 200
    assert client.delete("/v1/models/put/labels/latest").status_code == 204
    wait_until_latest(client, "put", 3)
    assert put(client, "put/labels/latest", 2).status_code == 200
    refused = client.delete("/v1/models/put/versions/2")
    assert (refused.status_code, "by default" in refused.text) == (409, True)
    assert client.delete("/v1/models/put/versions/3").status_code == 204


def test_label_moves_to_nothing_that_does_not_answer(client, publish, models):
    for number in (1, 2):
        publish("broken", number)
    (models / "broken" / "2" / "saved_model.pb").write_bytes(b"\0")
    assert put(client, "broken/labels/champion", 1).status_code == 200
    response = put(client, "broken/labels/champion", 2)
    assert "saved_model.pb" in refusal(response, 409)
    assert put(client, "broken/labels/champion", 3).status_code == 404
    assert versions_of(client, "broken")["champion"] == 1


def test_concurrent_creations_of_a_label_leave_one(database):
    add_versions(database, "wine", 1, 2)
    with ThreadPoolExecutor(2) as executor:
        moved = executor.map(partial(move, database, "wine", "champion"), (1, 2))
        assert {label.number for label in moved} == {1, 2}
    with database.reading() as session:
        label = session.get_one(Label, ("wine", "champion"))
    assert label.number in (1, 2)


@pytest.mark.parametrize(
    ("label", "body", "status"),
    [
        ("-x", {"version": 1}, 400),
        ("champion", {"version": "1"}, 400),
        ("champion", {"version": 2**63}, 400),
        ("champion", {"version": 1, "force": True}, 400),
        ("champion", {}, 400),
    ],
)
def test_what_is_no_label_or_no_target_is_refused(
    client, publish, models, label, body, status
):
    if not (models / "plain").exists():
        publish("plain", 1)
    response = client.put(f"/v1/models/plain/labels/{label}", json=body)
    assert response.status_code == status, response.text
    assert "error" in response.json()


def test_unknown_label_is_not_found(client):
    for label in ("no_such", "%00"):
        response = ask(client, f"no_such/labels/{label}", BODY)
        assert "There is no such label; PUT creates labels" in refusal(response, 404)
        assert client.get(f"/v1/models/no_such/labels/{label}").status_code == 404
