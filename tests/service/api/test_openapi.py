"""The API against its own description, by generated requests."""

import random
import shutil
from contextlib import closing

import hypothesis
import pytest
import schemathesis
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from service.shared.living_workers import WorkerFile
from service.shared.settings import Settings
from tests.service.sandboxed import reading_here
from tests.service.serving import AS_ADMIN, serving

_CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
)
_SLOW = [pytest.mark.slow]


class Known:
    """What there is, so that requests often meet something.

    Args:
        client: An admin of the service.
    """

    def __init__(self, client):
        self.ids = {"datasets": [upload(client, rows) for rows in (30, 40, 50)]}
        self.ids["jobs"] = ["0" * 24]
        self._chance = random.Random(0)

    def put_into(self, case):
        """Makes a generated request one of something that there is, often."""
        parameters = case.path_parameters or {}
        for name, values in (
            ("id", self.ids["jobs" if "/jobs" in case.path else "datasets"]),
            ("name", ["diabetes", "iris"]),
            ("version", [1, 2, 7]),
            ("label", ["latest", "champion"]),
        ):
            if name in parameters and self._chance.random() < 0.7:
                parameters[name] = self._chance.choice(values)
        if case.operation.label == "POST /v1/jobs" and isinstance(case.body, dict):
            body = case.body
            if self._chance.random() < 0.8:
                body["dataset_id"] = self._chance.choice(self.ids["datasets"])
                body["target"], body["name"] = "progression", "m"
                for key in ("features", "columns", "start_from"):
                    body.pop(key, None)
            for key in ("model", "training"):
                if self._chance.random() < 0.6:
                    body.pop(key, None)

    def take_from(self, case, response):
        """Takes up what a request has made."""
        if case.operation.label == "POST /v1/jobs" and response.status_code == 201:
            self.ids["jobs"].append(response.json()["id"])


def upload(client, num_rows):
    rows = [f"{20 + i},{20 + i % 9},{i * 7 % 50}\n" for i in range(num_rows)]
    answer = client.post(
        "/v1/datasets",
        content="age,bmi,progression\n" + "".join(rows),
        headers={"Content-Type": "text/csv"},
    )
    return str(answer.json()["id"])


@pytest.fixture(scope="module")
def api(saved_models, tmp_path_factory):
    """A service of its own: what is generated deletes things too."""
    root = tmp_path_factory.mktemp("models")
    shutil.copytree(saved_models, root, dirs_exist_ok=True)
    data = tmp_path_factory.mktemp("data")
    settings = Settings(models=root, data_dir=data, max_work=10_000, max_queued_jobs=50)
    # Without a worker, `/health/training` is 503.
    worker = WorkerFile(settings)
    with reading_here(), closing(worker), serving(settings) as client:
        yield client


@pytest.fixture(scope="module")
def known(api):
    return Known(api)


@pytest.fixture(scope="module")
def schema(api):
    document = api.get("/openapi.json").json()
    schema = schemathesis.openapi.from_dict(document)
    schema.config.update(base_url=str(api.base_url), headers=AS_ADMIN)
    return schema


def settings_for(examples):
    return hypothesis.settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )


@pytest.mark.parametrize(
    "examples", [pytest.param(2, id="few"), pytest.param(200, id="many", marks=_SLOW)]
)
def test_every_answer_is_as_documented(schema, known, examples):
    statuses = {}
    for result in schema.get_all_operations():
        operation = result.ok()
        if operation.path.endswith("/events"):
            continue  # Streams have tests of their own.

        @settings_for(examples)
        @hypothesis.given(case=operation.as_strategy())
        def check(case):
            known.put_into(case)
            response = case.call_and_validate(checks=list(_CHECKS))
            known.take_from(case, response)
            statuses.setdefault(case.operation.label, set()).add(response.status_code)

        check()
    # What was asked must have been there, or the documented answers were all errors.
    for label in (
        "GET /v1/jobs/{id}",
        "GET /v1/datasets/{id}",
        "GET /v1/models/{name}",
    ):
        assert 200 in statuses[label]
    assert 201 in statuses["POST /v1/jobs"]
