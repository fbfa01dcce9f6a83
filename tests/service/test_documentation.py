import base64
import hashlib
import re
from typing import Any

import httpx
import pytest

from service.predictions.schemas import PredictRequest, request_body


@pytest.fixture
def document(client: httpx.Client) -> dict[str, Any]:
    answer: dict[str, Any] = client.get("/openapi.json").json()
    return answer


def test_every_reference_in_the_document_can_be_followed(
    document: dict[str, Any],
) -> None:
    def references(part: Any) -> set[str]:
        if isinstance(part, list):
            return set().union(*map(references, part))
        if not isinstance(part, dict):
            return set()
        found = set().union(*map(references, part.values()))
        return found | ({part["$ref"]} if isinstance(part.get("$ref"), str) else set())

    found = references(document)
    assert found
    for reference in found:
        place: Any = document
        for key in reference.removeprefix("#/").split("/"):
            place = place[key]


def test_every_operation_says_what_it_does_and_how_it_fails(
    document: dict[str, Any],
) -> None:
    for path, operations in document["paths"].items():
        for operation in operations.values():
            assert operation["tags"]
            assert operation["summary"]
            for status, response in operation["responses"].items():
                if not status.startswith("2"):
                    schema = response["content"]["application/json"]["schema"]
                    assert schema == {"$ref": "#/components/schemas/ErrorBody"}, path
    # What FastAPI answers where nobody says otherwise.
    assert "HTTPValidationError" not in document["components"]["schemas"]


def test_examples_are_what_the_schema_describes() -> None:
    examples = request_body()["content"]["application/json"]["examples"]
    for example in examples.values():
        PredictRequest.model_validate(example["value"])


def test_values_of_a_row_may_be_booleans() -> None:
    schema = request_body()["content"]["application/json"]["schema"]
    lists, objects = schema["properties"]["instances"]["anyOf"][0]["items"]["anyOf"]
    for values in (lists["items"], objects["additionalProperties"]):
        types = [option["type"] for option in values["anyOf"]]
        assert types == ["number", "boolean", "string", "null"]


def test_the_page_of_the_documentation_needs_no_other_machine(
    client: httpx.Client,
) -> None:
    page = client.get("/docs")
    assert not re.search(r"(https?:)?//[a-z]", page.text)
    named = re.findall(r'(?:src|href)="([^"]*)"', page.text)
    for path in (*named, "openapi.json"):
        assert client.get(f"/{path}").status_code == 200
    assert len(named) == 3
    bundle = client.get("/docs/swagger-ui-bundle.js")
    assert bundle.headers["content-type"].startswith("text/javascript")
    assert b"SwaggerUIBundle" in bundle.content
    assert client.get("/docs/__init__.py").status_code == 400


def test_the_page_of_the_documentation_runs_no_other_script(
    client: httpx.Client,
) -> None:
    page = client.get("/docs")
    (script,) = re.findall(r"<script>(.*?)</script>", page.text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = page.headers["content-security-policy"]
    assert f"script-src 'self' 'sha256-{digest}';" in policy
    assert "default-src 'none'" in policy


def test_operations_that_need_a_key_say_what_happens_without_one(
    document: dict[str, Any],
) -> None:
    for path, operations in document["paths"].items():
        for operation in operations.values():
            closed = not path.startswith("/health/")
            assert ("security" in operation) == closed
            assert ({"401", "403", "503"} <= operation["responses"].keys()) >= closed
