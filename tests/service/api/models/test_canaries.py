"""Labels that point at two versions: which of them answers, and what is refused."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.service.api.models.conftest import wait_until_latest
from tests.service.serving import ADMIN_KEY, ask
from tfbbb.client import Client

Publish = Callable[..., None]
ROW = [1.0, 2.0, 3.0]
NAMES = ["age", "bmi", "bp"]
KEYS = [f"customer-{number}" for number in range(12)]


@pytest.fixture
def canary(
    client: httpx.Client, publish: Publish, request: pytest.FixtureRequest
) -> str:
    """The path of a label of a model of two versions, which share its requests."""
    name = request.node.originalname
    for number in (1, 2):
        publish(name, number, log_likelihood=-float(number), coverage_90=0.9)
    wait_until_latest(client, name, 2)
    assert put(client, f"{name}/labels/live", {"version": 1}).status_code == 200
    half = {"versions": {"1": 0.5, "2": 0.5}}
    assert put(client, f"{name}/labels/live", half).status_code == 200
    return f"{name}/labels/live"


def put(client: httpx.Client, label: str, target: Any) -> httpx.Response:
    return client.put(f"/v1/models/{label}", json=target)


def by_json(client: httpx.Client, label: str, key: str) -> str:
    body = {"instances": [ROW], "parameters": {"routing_key": key}}
    version = ask(client, label, body).json()["model_version"]
    assert isinstance(version, str)
    return version


def by_csv(client: httpx.Client, label: str, key: str) -> Any:
    response = client.post(
        f"/v1/models/{label}:predict?routing_key={key}",
        content="age,bmi,bp\n1,2,3\n",
        headers={"Content-Type": "text/csv"},
    )
    return response.headers["Model-Version"]


def by_open_inference(client: httpx.Client, label: str, key: str) -> Any:
    tensor = {"name": "inputs", "shape": [1, 3], "datatype": "FP32", "data": ROW}
    body = {"inputs": [tensor], "parameters": {"routing_key": key}}
    path = f"/v2/models/{label.replace('labels', 'versions')}/infer"
    return client.post(path, json=body).json()["model_version"]


def test_every_format_routes_a_key_to_the_same_version(
    client: httpx.Client, canary: str
) -> None:
    chosen = [by_json(client, canary, key) for key in KEYS]
    assert set(chosen) == {"1", "2"}
    for route in (by_csv, by_open_inference):
        assert [route(client, canary, key) for key in KEYS] == chosen
    with Client(str(client.base_url), ADMIN_KEY) as service:
        model = service.model(canary.partition("/")[0])
        found = [
            model.predict([ROW] * 3, label="live", routing_key=key).version
            for key in KEYS
        ]
        assert list(map(str, found)) == chosen


def test_request_id_is_the_key_of_a_request_without_one(
    client: httpx.Client, canary: str
) -> None:
    chosen = {
        key: {
            client.post(
                f"/v1/models/{canary}:predict",
                json={"instances": [ROW]},
                headers={"X-Request-Id": key},
            ).json()["model_version"]
            for _ in range(2)
        }
        for key in KEYS
    }
    assert chosen == {key: {by_json(client, canary, key)} for key in KEYS}


def test_canary_is_the_version_that_is_new_to_the_label(
    client: httpx.Client, canary: str
) -> None:
    for weight in (0.1, 0.9):
        target = {"versions": {"1": 1 - weight, "2": weight}}
        status = put(client, canary, target).json()
        assert (status["version"], status["canary"]["version"]) == (1, 2)
        assert status["canary"]["weight"] == pytest.approx(weight)
    described = client.get(f"/v1/models/{canary}").json()["model_version_status"]
    assert [version["version"] for version in described] == ["1", "2"]
    name = canary.partition("/")[0]
    for number in ("1", "2"):
        version = client.get(f"/v1/models/{name}/versions/{number}").json()
        assert version["labels"]["live"] == number
    assert put(client, canary, {"version": 1, "shadow": 2}).status_code == 200
    models = client.get("/v1/models").json()["models"]
    (listed,) = (model for model in models if model["name"] == name)
    assert (listed["canaries"], listed["shadows"]) == ({}, {"live": "2"})
    assert put(client, canary, {"versions": {"1": 0.9, "2": 0.1}}).status_code == 200
    models = client.get("/v1/models").json()["models"]
    (listed,) = (model for model in models if model["name"] == name)
    assert listed["labels"]["live"] == "1"
    assert listed["canaries"]["live"]["version"] == "2"
    assert listed["canaries"]["live"]["weight"] == pytest.approx(0.1)
    assert put(client, canary, {"version": 2}).json()["canary"] is None


def test_gate_refuses_a_canary_as_it_refuses_a_move(
    client: httpx.Client, canary: str
) -> None:
    target = {"versions": {"1": 0.5, "2": 0.5}, "gate": {"max_nll_increase": 0.5}}
    refused = put(client, canary, target)
    assert refused.status_code == 409
    assert "cannot move from version 1 to version 2" in refused.json()["error"]
    assert put(client, canary, target | {"force": True}).status_code == 200


def test_canary_and_shadow_are_not_deleted(
    client: httpx.Client, canary: str, publish: Publish
) -> None:
    name = canary.partition("/")[0]
    publish(name, 3)
    publish(name, 4)
    wait_until_latest(client, name, 4)
    target = {"versions": {"1": 0.5, "2": 0.5}, "shadow": 3}
    assert put(client, canary, target).json()["shadow"]["version"] == 3
    for number in (1, 2, 3):
        response = client.delete(f"/v1/models/{name}/versions/{number}")
        assert response.status_code == 409
        assert "'live'" in response.json()["error"]
    assert put(client, canary, {"version": 1}).status_code == 200
    assert client.delete(f"/v1/models/{name}/versions/2").status_code == 204


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ({"versions": {"1": 0.5, "3": 0.5}}, 404),
        ({"version": 1, "shadow": 1}, 400),
        ({"versions": {"1": 0.5, "2": 0.4}}, 400),
        ({"versions": {"1": 1.5, "2": -0.5}}, 400),
        ({"versions": {"1": 0.4, "2": 0.3, "3": 0.3}}, 400),
        ({"versions": {"1": 0.5, "2": 0.5}, "version": 1}, 400),
    ],
)
def test_targets_that_are_no_two_versions_are_refused(
    client: httpx.Client, publish: Publish, target: Any, status: int
) -> None:
    if client.get("/v1/models/refusing").status_code == 404:
        publish("refusing", 1)
        publish("refusing", 2)
        wait_until_latest(client, "refusing", 2)
    response = put(client, "refusing/labels/live", target)
    assert response.status_code == status, response.text
    assert response.json()["error"]
