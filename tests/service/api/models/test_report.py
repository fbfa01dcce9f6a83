import json
from collections.abc import Callable
from pathlib import Path

import httpx

from tests.service.serving import ADMIN_KEY
from tfbbb.client import Client
from tfbbb.export.manifest import REPORT_FILE

REPORT = {"format": 1, "task": "regression", "target": "progression"}


def test_report_is_answered_as_written_and_may_be_cached(
    client: httpx.Client, publish: Callable[..., None], models: Path
) -> None:
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


def test_version_without_a_report_is_said(
    client: httpx.Client, publish: Callable[..., None]
) -> None:
    publish("unreported", 1)
    response = client.get("/v1/models/unreported/versions/1/report")
    assert response.status_code == 404
    assert response.json()["error"].endswith(
        "Received: version 1 of the model 'unreported'"
    )
    unknown = client.get("/v1/models/unreported/versions/2/report")
    assert unknown.status_code == 404
    assert "no such version" in unknown.json()["error"]
