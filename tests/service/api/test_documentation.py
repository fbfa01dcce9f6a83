import base64
import hashlib
import re

import pytest

from service.api.jobs.schemas import JobRequest
from service.api.keys.endpoints import KeyRequest
from service.api.labels.endpoints import LabelTarget


@pytest.fixture
def document(client):
    answer = client.get("/openapi.json").json()
    return answer


def schemas(part):
    """Returns all objects of a document, also those inside others."""
    if isinstance(part, list):
        return [found for item in part for found in schemas(item)]
    if not isinstance(part, dict):
        return []
    return [part, *(found for value in part.values() for found in schemas(value))]


def test_generators_of_clients_can_read_the_document(document):
    assert document["openapi"].startswith("3.1.")
    for schema in schemas(document):
        assert "itemSchema" not in schema
        if isinstance(schema.get("default"), dict):
            assert not schema.keys() & {"$ref", "allOf", "anyOf", "oneOf"}, schema
    titles = [each["title"] for each in document["components"]["schemas"].values()]
    assert len(set(titles)) == len(titles)


def test_every_reference_in_the_document_can_be_followed(document):
    given = [part["$ref"] for part in schemas(document) if "$ref" in part]
    found = {reference for reference in given if isinstance(reference, str)}
    assert found
    for reference in found:
        place = document
        for key in reference.removeprefix("#/").split("/"):
            place = place[key]


def test_every_operation_says_what_it_does_and_how_it_fails(document):
    for path, operations in document["paths"].items():
        for operation in operations.values():
            assert operation["tags"]
            assert operation["summary"]
            error = operation["responses"]["default"]["content"]["application/json"]
            assert error["schema"] == {"$ref": "#/components/schemas/ErrorBody"}, path
    # What FastAPI answers where nobody says otherwise.
    assert "HTTPValidationError" not in document["components"]["schemas"]


def test_every_body_of_json_has_a_short_example(document):
    schemas = document["components"]["schemas"]
    shown = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            content = operation.get("requestBody", {}).get("content", {})
            body = content.get("application/json", {})
            schema = body.get("schema", {})
            # Those of predictions stand beside their schema.
            if "$ref" in schema and "examples" not in body:
                name = schema["$ref"].rpartition("/")[2]
                (shown[f"{method} {path}"],) = schemas[name]["examples"]
    assert {key: set(example) for key, example in shown.items()} == {
        "post /v1/jobs": {"dataset_id", "target", "name"},
        "post /v1/keys": {"name", "scopes"},
        "post /v1/session": {"key"},
        "put /v1/models/{name}/labels/{label}": {"version"},
    }
    JobRequest.model_validate(shown["post /v1/jobs"])
    KeyRequest.model_validate(shown["post /v1/keys"])
    LabelTarget.model_validate(shown["put /v1/models/{name}/labels/{label}"])


def test_every_error_has_a_code_that_is_described(document):
    code = document["components"]["schemas"]["ErrorBody"]["properties"]["code"]
    told = "- `unknown_model` (404): There is no such model or version."
    assert told in code["description"]


def test_the_page_of_the_documentation_needs_no_other_machine(client):
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
    (script,) = re.findall(r"<script>(.*?)</script>", page.text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = page.headers["content-security-policy"]
    assert f"script-src 'sha256-{digest}' 'self';" in policy
    assert "default-src 'none'" in policy


def test_operations_that_need_a_key_say_its_scope(document):
    needed = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            signs_in_or_out = path == "/v1/session" and method != "get"
            is_open = path.startswith(("/health/", "/v2/health/")) or signs_in_or_out
            needed[method, path] = operation.get("security")
            assert (needed[method, path] is None) == is_open
    assert needed["post", "/v1/jobs"] == [{"key": ["train"]}]
    assert needed["post", "/v1/models/{name}:predict"] == [{"key": ["predict"]}]
    assert needed["get", "/v1/keys"] == [{"key": ["admin"]}]
