"""What the service says of a version: its lineage and its report."""

import hashlib
import json

import numpy as np
import pytest

from tests.service.serving import ADMIN_KEY, ask, refusal
from tests.waiting import wait_until
from tfbbb.client import Client, ServiceError
from tfbbb.export.manifest import MANIFEST_PATH, REPORT_FILE
from tfbbb.export.reader import load

REPORT = {"format": 1, "task": "regression", "target": "progression"}


def test_version_that_was_copied_into_its_place_has_a_lineage(client, publish, models):
    publish("copied", 1)
    manifest = (models / "copied" / "1" / MANIFEST_PATH).read_bytes()
    answer = client.get("/v1/models/copied/versions/1").json()
    assert answer["lineage"]["digest"] == hashlib.sha256(manifest).hexdigest()
    assert answer["lineage"]["job_id"] is None
    description = answer["description"]
    assert description["libraries"] == json.loads(manifest)["libraries"]
    assert description["metrics"] == json.loads(manifest)["metrics"]


def test_version_changed_after_adoption_is_reported_and_not_served(
    client, publish, models
):
    publish("changed", 1)
    assert client.get("/v1/models/changed/versions/1").json()["lineage"] is not None
    manifest = models / "changed" / "1" / MANIFEST_PATH
    manifest.write_text(manifest.read_text().replace("442", "443", 1))

    def status():
        (found,) = client.get("/v1/models/changed").json()["model_version_status"]
        return str(found)

    wait_until(lambda: "another manifest" in status())
    response = ask(client, "changed/versions/1", {"instances": [[1, 2, 3]]})
    assert response.status_code == 503


def test_report_is_answered_as_written_and_may_be_cached(client, publish, models):
    publish("reported", 1)
    path = models / "reported" / "1" / "assets.extra" / REPORT_FILE
    path.write_text(json.dumps(REPORT))
    url = "/v1/models/reported/versions/1/report"
    response = client.get(url)
    assert response.json() == REPORT
    assert response.headers["content-type"] == "application/json"
    assert "immutable" in response.headers["cache-control"]
    # The next user of a browser, with another key, must not see it.
    assert response.headers["vary"] == "Authorization, Cookie"
    with Client(str(client.base_url), ADMIN_KEY) as service:
        assert service.model("reported").describe_report(1) == REPORT


def test_version_without_a_report_is_said(client, publish):
    publish("unreported", 1)
    response = client.get("/v1/models/unreported/versions/1/report")
    assert response.status_code == 404
    assert response.json()["error"].endswith(
        "Received: version 1 of the model 'unreported'"
    )
    unknown = client.get("/v1/models/unreported/versions/2/report")
    assert "no such version" in refusal(unknown, 404)


def test_a_version_is_downloaded_as_it_is(client, publish, models, tmp_path):
    publish("fetched", 3)
    url = "/v1/models/fetched"
    wait_until(lambda: "latest" in client.get(url).json().get("labels", ()))
    directory, copy = models / "fetched" / "3", tmp_path / "copy"
    with Client(str(client.base_url), ADMIN_KEY) as service:
        service.model("fetched").download(copy)
        with pytest.raises(FileExistsError):
            service.model("fetched").download(copy, version=3)
        with pytest.raises(ServiceError, match="no such version"):
            service.model("fetched").download(tmp_path / "other", version=4)
    for path in directory.rglob("*"):
        if path.is_file():
            assert (
                copy / path.relative_to(directory)
            ).read_bytes() == path.read_bytes()
    rows = [[1.0, 2.0, 3.0]]
    answer = ask(client, "fetched", {"instances": rows}).json()["predictions"]
    np.testing.assert_allclose(
        load(copy).predict(rows)["mean"][0], answer[0]["mean"], rtol=1e-6
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy"]
