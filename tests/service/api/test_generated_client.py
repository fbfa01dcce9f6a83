"""What programs that generate clients make of the description of the API."""

import json
import subprocess
import venv
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.service.inspecting import inspecting_here
from tests.service.serving import ADMIN_KEY

GENERATOR = "openapi-python-client==0.29.1"
PROGRAM = """
import sys

from tfbbb_client import AuthenticatedClient
from tfbbb_client.api.jobs import submit_job
from tfbbb_client.api.predictions import predict
from tfbbb_client.models import JobRequest, PredictRequest

url, key, dataset = sys.argv[1:]
client = AuthenticatedClient(base_url=url, token=key, raise_on_unexpected_status=True)
body = JobRequest.from_dict({"dataset_id": dataset, "target": "c", "name": "m"})
print(submit_job.sync(client=client, body=body).state)
rows = PredictRequest.from_dict({"instances": [[1.0, 2.0, 3.0]]})
print(predict.sync("diabetes", client=client, body=rows).model_version)
"""


@pytest.fixture
def document(client: httpx.Client) -> dict[str, Any]:
    """The description, which needs no key."""
    answer = httpx.get(client.base_url.join("/openapi.json"))
    assert answer.status_code == 200
    found: dict[str, Any] = answer.json()
    return found


def schemas(part: Any) -> list[dict[str, Any]]:
    """Returns all objects of a document, also those inside others."""
    if isinstance(part, list):
        return [found for item in part for found in schemas(item)]
    if not isinstance(part, dict):
        return []
    return [part, *(found for value in part.values() for found in schemas(value))]


def test_no_default_is_an_object_beside_a_reference(document: dict[str, Any]) -> None:
    for schema in schemas(document):
        if isinstance(schema.get("default"), dict):
            assert not schema.keys() & {"$ref", "allOf", "anyOf", "oneOf"}, schema


def test_the_document_keeps_to_openapi_3_1(document: dict[str, Any]) -> None:
    assert document["openapi"].startswith("3.1.")
    assert not any("itemSchema" in schema for schema in schemas(document))
    titles = [each["title"] for each in document["components"]["schemas"].values()]
    assert len(set(titles)) == len(titles)
    assert {"JobRequest", "ModelSpec", "PredictRequest"} <= {*titles}


@pytest.mark.slow
def test_a_generated_client_submits_a_job_and_predicts(
    client: httpx.Client, document: dict[str, Any], tmp_path: Path
) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", GENERATOR], check=True)
    (tmp_path / "openapi.json").write_text(json.dumps(document))
    command = [python, "-m", "openapi_python_client", "generate", "--meta", "none"]
    places = ["--path", "openapi.json", "--output-path", "tfbbb_client"]
    subprocess.run([*command, *places], check=True, cwd=tmp_path)
    with inspecting_here():
        table = "a,b,c\n" + "".join(f"{i},{i % 7},{i % 5}\n" for i in range(60))
        dataset = client.post("/v1/datasets", content=table).json()["id"]
    arguments = [str(client.base_url), ADMIN_KEY, dataset]
    said = subprocess.run(
        [python, "-c", PROGRAM, *arguments],
        check=True,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert said.stdout.split() == ["queued", "2"]
