"""The work per second of a key, in each protocol."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from service.shared.settings import Settings
from tests.service.serving import serving, wait_until_ready

# A rate so small that no credit comes back while the tests run; ten seconds' work, the
# first credit of a key, are two rows of 100 draws.
PER_SECOND = 20.0


PREDICT, INFER = "/v1/models/diabetes:predict", "/v2/models/diabetes/infer"
JSON = "application/json"
FORMATS = {
    "json": (PREDICT, JSON, b'{"instances": [[1, 2, 3]]}'),
    "open_inference": (
        INFER,
        JSON,
        b'{"inputs": [{"name": "inputs", "shape": [1, 3], "datatype": "FP32",'
        b' "data": [1, 2, 3]}]}',
    ),
}


@pytest.fixture(scope="module")
def client(saved_models: Path) -> Iterator[httpx.Client]:
    settings = Settings(models=saved_models, max_work_per_second=PER_SECOND)
    with serving(settings) as client:
        wait_until_ready(client)
        yield client


@pytest.mark.parametrize("name", FORMATS)
def test_key_over_its_rate_gets_429_in_each_protocol(
    client: httpx.Client, name: str
) -> None:
    path, kind, body = FORMATS[name]
    made = client.post("/v1/keys", json={"name": name, "scopes": ["predict"]}).json()
    headers = {"Authorization": f"Bearer {made['key']}", "Content-Type": kind}

    def send() -> httpx.Response:
        return client.post(path, content=body, headers=headers)

    # The key of the other protocol has spent its credit, and this one has not.
    answers = [send() for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert "TFBBB_MAX_WORK_PER_SECOND" in answers[2].json()["error"]
    assert 1 <= int(answers[2].headers["Retry-After"]) <= 5


def test_key_has_a_rate_of_its_own(client: httpx.Client) -> None:
    path, kind, body = FORMATS["json"]

    def statuses(rate: float) -> list[int]:
        spec = {"name": "own", "scopes": ["predict"], "max_work_per_second": rate}
        made = client.post("/v1/keys", json=spec).json()
        assert made["max_work_per_second"] == rate
        headers = {"Authorization": f"Bearer {made['key']}", "Content-Type": kind}
        answers = [client.post(path, content=body, headers=headers) for _ in range(4)]
        return [answer.status_code for answer in answers]

    # Ten seconds of work are one row of 100 draws, or more than four.
    assert statuses(PER_SECOND / 2) == [200, 429, 429, 429]
    assert statuses(100 * PER_SECOND) == [200, 200, 200, 200]
