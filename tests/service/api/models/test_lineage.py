import hashlib
import json
import time
from collections.abc import Callable
from pathlib import Path

import httpx

from tests.service.serving import ask
from tfbbb.export.manifest import MANIFEST_PATH


def test_version_that_was_copied_into_its_place_has_a_lineage(
    client: httpx.Client, publish: Callable[..., None], models: Path
) -> None:
    publish("copied", 1)
    manifest = (models / "copied" / "1" / MANIFEST_PATH).read_bytes()
    answer = client.get("/v1/models/copied/versions/1").json()
    assert answer["lineage"]["digest"] == hashlib.sha256(manifest).hexdigest()
    assert answer["lineage"]["job_id"] is None
    description = answer["description"]
    assert description["libraries"] == json.loads(manifest)["libraries"]
    assert description["metrics"] == json.loads(manifest)["metrics"]


def test_version_changed_after_adoption_is_reported_and_not_served(
    client: httpx.Client, publish: Callable[..., None], models: Path
) -> None:
    publish("changed", 1)
    assert client.get("/v1/models/changed/versions/1").json()["lineage"] is not None
    manifest = models / "changed" / "1" / MANIFEST_PATH
    manifest.write_text(manifest.read_text().replace("442", "443", 1))
    (status,) = client.get("/v1/models/changed").json()["model_version_status"]
    while status["state"] != "END":
        time.sleep(0.05)
        (status,) = client.get("/v1/models/changed").json()["model_version_status"]
    assert "another manifest" in status["status"]["error_message"]
    response = ask(client, "changed/versions/1", {"instances": [[1, 2, 3]]})
    assert response.status_code == 503
