"""The stand-in model process answers as the real one does, but for the numbers."""

import io
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from service.shared.prediction_formats import ARROW, CSV
from service.shared.settings import Settings
from tests.service import stand_in
from tests.service.serving import serving, wait_until_ready

MODELS = "/v1/models/"
ROWS = [[1.0, 2.0, 3.0], [0.5, 0.0, -0.5]]
TENSOR = {"name": "inputs", "shape": [1, 3], "datatype": "FP32", "data": [1, 2, 3]}
NUMBERS = {"age": [1.0, 0.5], "bmi": [2.0, 0.0], "bp": [3.0, -0.5]}
# What differs from run to run, or is about the files.
# The stand-in answers no densities, and has no passes.
VARYING = {"digest", "published_at", "files", "signatures", "passes"}


class Request(NamedTuple):
    """A request, as both services get it."""

    path: str
    body: Any = None
    content: bytes | None = None
    headers: Mapping[str, str] | None = None

    def send(self, client: httpx.Client) -> httpx.Response:
        if self.body is None and self.content is None:
            return client.get(self.path)
        return client.post(
            self.path, json=self.body, content=self.content, headers=self.headers
        )


def predict(model: str, **body: Any) -> Request:
    return Request(f"{MODELS}{model}:predict", body)


def asked(model: str, rows: Any = ROWS, **parameters: Any) -> Request:
    return predict(model, instances=rows, parameters=parameters)


def table(reads: str, accept: str) -> Request:
    given, sink = pa.table(NUMBERS), io.BytesIO()
    if reads == CSV:
        pa.csv.write_csv(given, sink)
    else:
        with pa.ipc.new_stream(sink, given.schema) as writer:
            writer.write_table(given)
    headers = {"Content-Type": reads, "Accept": accept}
    path = f"{MODELS}diabetes:predict?quantiles=0.1,0.9&return_samples=true"
    return Request(path, content=sink.getvalue(), headers=headers)


PATIENT = [1.0, None, "f", None]
REQUESTS = {
    "moments": asked("diabetes"),
    "everything": asked(
        *("diabetes", ROWS),
        **{"num_samples": 7, "seed": 3, "return_samples": True},
        **{"quantiles": [0.1, 0.9], "intervals": [0.5, 0.8]},
    ),
    "missing values": asked("patients", [PATIENT, [1.0, 5.0, "male", ""]]),
    "classes": asked("iris", return_samples=True, prediction_sets=[0.5, 0.9]),
    "arrow": table(ARROW, ARROW),
    "csv": table(CSV, CSV),
    "open inference": Request("/v2/models/diabetes/infer", {"inputs": [TENSOR]}),
    "open inference metadata": Request("/v2/models/iris"),
    "list": Request("/v1/models"),
    "version": Request(f"{MODELS}diabetes/versions/1"),
    "metadata": Request(f"{MODELS}diabetes/metadata"),
    "unknown model": asked("none"),
    "short row": asked("diabetes", [[1.0, 2.0]]),
    "overflow": asked("diabetes", [[3e38, 3e38, 0.0]]),
    "unknown parameter": asked("diabetes", quantile=[0.5]),
}


def form(value: Any) -> Any:
    """Returns a document without its numbers."""
    if isinstance(value, dict):
        return {
            key: "varying" if key in VARYING else form(_as_numbers(key, item))
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [form(item) for item in value]
    if isinstance(value, float):
        return "float"
    if isinstance(value, str) and re.search(r":\d+$", value):
        return "tensor"
    return value


def _as_numbers(key: str, item: Any) -> Any:
    """Returns samples of classes, whose indices differ, as other numbers."""
    is_drawn = key == "samples" and isinstance(item, list)
    return np.array(item, float).tolist() if is_drawn else item


def content(response: httpx.Response) -> Any:
    kind = response.headers["content-type"].partition(";")[0]
    if kind == ARROW:
        found = pa.ipc.open_stream(response.content).read_all()
        return [found.schema.to_string(), found.to_pylist()]
    if kind == CSV:
        # Numbers of CSV have no type: a mean of 12 is written as 12.
        rows = pa.csv.read_csv(io.BytesIO(response.content)).to_pylist()
        return [
            {
                name: float(value) if isinstance(value, int) else value
                for name, value in row.items()
            }
            for row in rows
        ]
    return response.json()


@pytest.fixture(scope="module")
def real(real_models: Path) -> Iterator[httpx.Client]:
    settings = Settings(models=real_models, max_work=100_000, max_body_bytes=10**6)
    with serving(settings) as client:
        wait_until_ready(client)
        yield client


@pytest.fixture(scope="module")
def stands_in(saved_models: Path) -> Iterator[httpx.Client]:
    settings = Settings(models=saved_models, max_work=100_000, max_body_bytes=10**6)
    with serving(settings) as client:
        wait_until_ready(client)
        yield client


@pytest.mark.parametrize("name", REQUESTS)
def test_answer_has_the_form_of_the_real_one(
    real: httpx.Client, stands_in: httpx.Client, name: str
) -> None:
    expected, found = (REQUESTS[name].send(client) for client in (real, stands_in))
    assert found.status_code == expected.status_code, (found.text, expected.text)
    assert found.status_code != 500
    ignored = {"date", "content-length", "x-request-id", "etag"}
    headers = [
        {k: v for k, v in answer.headers.items() if k not in ignored}
        for answer in (expected, found)
    ]
    assert headers[1] == headers[0]
    assert form(content(found)) == form(content(expected))


def test_means_are_those_of_the_saved_models(
    real: httpx.Client, stands_in: httpx.Client
) -> None:
    rows = {"diabetes": ROWS, "patients": [PATIENT, [1.0, 5.0, "nörd", "süd"]]}
    for model, given in rows.items():
        answers = [asked(model, given).send(client) for client in (real, stands_in)]
        means = [
            [row["mean"][0] for row in answer.json()["predictions"]]
            for answer in answers
        ]
        # The mean of 100 draws has an error of 0.01: five of those, twice.
        assert means[0] == pytest.approx(means[1], abs=0.1)


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    root = tmp_path_factory.mktemp("faulty")
    stand_in.write_regression(root / "slow" / "1", seconds=1.0)
    stand_in.write_regression(root / "failing" / "1", fault="predict")
    stand_in.write_regression(root / "broken" / "1", fault="load")
    with serving(Settings(models=root, poll_seconds=0.1)) as client:
        wait_until_ready(client)
        yield client


@pytest.mark.parametrize(
    ("model", "status", "message"),
    [
        ("slow", 200, ""),
        ("failing", 500, "The service failed"),
        ("broken", 503, "the newest is 1: the stand-in cannot be loaded"),
    ],
)
def test_fault_of_a_model_becomes_an_error(
    faulty: httpx.Client, model: str, status: int, message: str
) -> None:
    wait_until_ready(faulty)
    # After a fault of the program the server closes the connection.
    headers = {"Connection": "close"}
    path, body = f"{MODELS}{model}:predict", {"instances": ROWS}
    answer = faulty.post(path, json=body, headers=headers)
    assert answer.status_code == status, answer.text
    assert message in answer.json().get("error", "")
    if model == "slow":
        assert answer.elapsed.total_seconds() >= 1.0
