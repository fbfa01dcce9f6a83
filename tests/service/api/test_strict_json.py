"""No endpoint answers with NaN or Infinity, whatever it was sent."""

import json
import re

import pytest

from service.shared.settings import Settings
from tests.service.serving import serving

NUMBERS = (
    "NaN",
    "Infinity",
    "-Infinity",
    '"NaN"',
    '"inf"',
    "1e400",
    "1e39",
    '"\N{FULLWIDTH DIGIT ONE}"',
)
ROW = "[59, 32.1, 101]"
MODEL = "/v1/models/diabetes"
# Bodies with a place for a number.
BODIES = [
    *(
        (f"{MODEL}:predict", f'{{"instances": [{ROW}], "parameters": {{{field}}}}}')
        for field in (
            *('"quantiles": [#]', '"intervals": [#]', '"times": [#]', '"seed": #'),
            *('"num_samples": #', '"deadline_ms": #'),
        )
    ),
    (f"{MODEL}:predict", '{"instances": [[59, 32.1, #]]}'),
    (f"{MODEL}:predict", f'{{"instances": [{ROW}], "targets": [#]}}'),
    (f"{MODEL}/feedback", f'{{"instances": [{ROW}], "targets": [#]}}'),
    (f"{MODEL}/feedback", '{"instances": [[59, 32.1, #]], "targets": [1]}'),
    (
        "/v2/models/diabetes/infer",
        '{"inputs": [{"name": "inputs", "shape": [1, 3], "datatype": "FP64", '
        '"data": [59, 32.1, #]}]}',
    ),
    ("/v1/keys", '{"name": "n", "scopes": ["predict"], "expires_in_seconds": #}'),
    ("/v1/session", '{"key": #}'),
    *(
        ("/v1/jobs", f'{{"dataset_id": "ID", "target": "y", "name": "n", {field}}}')
        for field in (
            *('"priority": #', '"training": {"max_seconds": #}'),
            *('"training": {"learning_rate": #}', '"training": {"steps": #}'),
            *('"training": {"validation": {"fraction": #}}', '"columns": {"x": #}'),
        )
    ),
]
PATHS = (
    *("/v1/models?search=#", "/v1/jobs?limit=#", "/v1/datasets/ID/preview?rows=#"),
    *("/v1/datasets?limit=#", "/v1/audit?limit=#", f"{MODEL}/versions/#"),
    *("/v1/jobs/#/events?after=#", f"{MODEL}:predict?num_samples=#"),
)
GETS = (
    *("/v1/models", MODEL, f"{MODEL}/versions/1", f"{MODEL}/versions/1/metadata"),
    *(f"{MODEL}/versions/1/feedback", f"{MODEL}/labels", "/v1/jobs", "/v1/datasets"),
    *("/v1/datasets/ID", "/v1/datasets/ID/preview", "/v1/keys", "/v1/audit"),
    *("/v2", "/v2/models/diabetes", "/openapi.json", "/health/ready"),
)
TABLE = "x,y\n" + "".join(
    f"{cell},{number}\n" for number, cell in enumerate([*NUMBERS, "1", "2"] * 5)
)


@pytest.fixture(scope="module")
def service(saved_models, tmp_path_factory):
    """A client and the id of a table with every odd number."""
    data = tmp_path_factory.mktemp("data")
    with serving(Settings(models=saved_models, data_dir=data)) as client:
        table = TABLE.replace('"', "").encode()
        answer = client.post("/v1/datasets", params={"name": "t.csv"}, content=table)
        yield client, answer.json()["id"]


def strict(response):
    """Parses an answer as JSON alone has it."""

    def refuse(text):
        raise AssertionError(f"{text} in {response.text[:500]}")

    return json.loads(response.content, parse_constant=refuse)


def post(service, path, body, number):
    client, dataset = service
    content = body.replace("#", number).replace("ID", dataset).encode()
    headers = {"Content-Type": "application/json"}
    return client.post(path, content=content, headers=headers)


def test_the_bodies_are_right_with_a_plain_number(service):
    found = [post(service, path, body, "1").is_success for path, body in BODIES]
    assert sum(found) >= 9


@pytest.mark.parametrize("number", NUMBERS)
def test_odd_numbers_get_a_sentence_or_an_answer(service, number):
    client, dataset = service
    for path, body in BODIES:
        response = post(service, path, body, number)
        answer = strict(response)
        assert response.status_code < 500, (path, body, response.text)
        if response.is_error:
            assert re.match(r"\S.*\S", answer["error"]), (path, body)
        else:
            # They are no numbers of JSON, and do not become one.
            assert number not in ("NaN", "Infinity", "-Infinity", "1e400"), path
    for path in PATHS:
        asked = path.replace("#", number.strip('"')).replace("ID", dataset)
        response = client.get(asked)
        assert response.status_code < 500, (asked, response.text)
        strict(response)


def test_what_is_told_afterwards_is_strict_json(service):
    client, dataset = service
    for path in GETS:
        strict(client.get(path.replace("ID", dataset)))
