"""Shadows of labels: what they predict, and that feedback scores them."""

import shutil
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.service.api.feedback.test_feedback import ROWS, TARGETS, found, give
from tests.waiting import wait_until
from tfbbb.client import Client

LABEL = "numbers/labels/live"


def counts(client: httpx.Client, model: str = "numbers") -> dict[str, float]:
    """The metrics of a model's shadows, by outcome or name."""
    families = text_string_to_metric_families(client.get("/metrics").text)
    return {
        sample.labels.get("outcome", sample.name): sample.value
        for family in families
        for sample in family.samples
        if sample.name.startswith("tfbbb_shadow") and sample.labels["model"] == model
    }


def put(client: httpx.Client, target: Any, label: str = LABEL) -> None:
    response = client.put(f"/v1/models/{label}", json=target)
    assert response.status_code == 200, response.text


def predicted(client: httpx.Client, rows: Any, **parameters: Any) -> Any:
    body = {"instances": rows, "parameters": parameters}
    response = client.post(f"/v1/models/{LABEL}:predict", json=body)
    assert response.status_code == 200, response.text
    return response.json()


@pytest.mark.slow
def test_feedback_about_recorded_rows_scores_version_and_shadow(
    client: httpx.Client,
) -> None:
    put(client, {"version": 2, "shadow": 1})
    before = counts(client).get("computed", 0)
    answer = predicted(client, ROWS[:3], record=True)
    assert answer["model_version"] == "2"
    wait_until(lambda: counts(client).get("computed", 0) == before + 1)
    given = [
        {"id": answer["prediction_id"], "row": row + 1, "target": TARGETS[row]}
        for row in range(3)
    ]
    one = client.post(
        "/v1/models/numbers/versions/1/feedback", json={"predictions": given[:1]}
    )
    assert one.json()["num_rows"] == {"1": 1}
    scored = give(client, {"predictions": given})
    assert scored.json()["num_rows"] == {"1": 2, "2": 3}
    assert give(client, {"predictions": given[:1]}).status_code == 409
    labels = client.get("/v1/models/numbers/labels").json()["labels"]
    (status,) = (label for label in labels if label["label"] == "live")
    # The versions are copies of one another.
    assert status["feedback"]["log_likelihood"] == pytest.approx(
        status["shadow"]["feedback"]["log_likelihood"]
    )
    assert status["shadow"]["feedback"]["num_rows"] == 3


def test_rows_of_a_label_are_scored_by_each_of_its_versions(
    client: httpx.Client,
) -> None:
    put(client, {"version": 2, "shadow": 1})
    with Client(str(client.base_url), client.headers["Authorization"][7:]) as service:
        model = service.model("numbers")
        assert sorted(model.feedback(ROWS, TARGETS, label="live")) == [1, 2]
        status = model.describe_labels()["live"]
        assert status["shadow"]["feedback"]["num_rows"] == len(ROWS)
    put(client, {"versions": {"1": 0.5, "2": 0.5}})
    body = {"instances": ROWS[:4], "targets": TARGETS[:4]}
    answer = client.post(f"/v1/models/{LABEL}/feedback", json=body)
    assert answer.json()["num_rows"] == {"1": 4, "2": 4}
    assert found(client, version=1)["num_rows"] == len(ROWS) + 4


def test_canary_records_the_version_that_answered(client: httpx.Client) -> None:
    put(client, {"version": 2})
    put(client, {"versions": {"2": 0.5, "1": 0.5}})
    answers = [
        predicted(client, ROWS[:1], record=True, routing_key=f"key {place}")
        for place in range(6)
    ]
    versions = [answer["model_version"] for answer in answers]
    assert set(versions) == {"1", "2"}
    given = [{"id": answer["prediction_id"], "target": 0.5} for answer in answers]
    body = {"predictions": given}
    counted = client.post(f"/v1/models/{LABEL}/feedback", json=body).json()["num_rows"]
    assert counted == {number: versions.count(number) for number in ("1", "2")}


def test_shadow_that_fails_fails_no_request(
    client: httpx.Client, feedback_models: Path, real_models: Path
) -> None:
    root = feedback_models / "mixed"
    if not root.exists():
        # The shadow has other features.
        shutil.copytree(real_models / "patients" / "1", root / "1")
        shutil.copytree(feedback_models / "numbers" / "2", root / "2")
    put(client, {"version": 2, "shadow": 1}, "mixed/labels/live")
    body = {"instances": ROWS[:2], "parameters": {"record": True}}
    path = "/v1/models/mixed/labels/live"
    answer = client.post(f"{path}:predict", json=body).json()
    assert answer["model_version"] == "2"
    wait_until(lambda: counts(client, "mixed").get("failed", 0) == 1)
    recorded = {"predictions": [{"id": answer["prediction_id"], "target": 1.0}]}
    for feedback in (recorded, {"instances": ROWS, "targets": TARGETS}):
        scored = client.post(f"{path}/feedback", json=feedback)
        assert scored.status_code == 200, scored.text
        assert scored.json()["num_rows"].keys() == {"2"}
