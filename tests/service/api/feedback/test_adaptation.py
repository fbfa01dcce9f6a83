"""Intervals adapted to feedback, over HTTP: what changes them, and where it shows."""

import json
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from typer.testing import CliRunner

import tfbbb
from tests.service.api.feedback.test_feedback import ROWS, TARGETS, found, give
from tests.service.serving import ADMIN_KEY
from tfbbb.cli import app
from tfbbb.client import Client
from tfbbb.judging.adaptive_intervals import (
    LEVELS,
    AdaptiveIntervals,
    adapt_intervals,
    interval_scores,
)

ASKED = [0.5, 0.9]


def predicted(client: httpx.Client, model: str = "numbers", **parameters: Any) -> Any:
    body = {"instances": ROWS, "parameters": {"intervals": ASKED, **parameters}}
    response = client.post(f"/v1/models/{model}:predict", json=body)
    assert response.status_code == 200, response.text
    return response.json()


def bounds(answer: Any) -> Any:
    rows = answer["predictions"]
    return np.array([[row[name] for row in rows] for name in ("lower", "upper")])


def test_answers_are_adapted_to_the_feedback_in_its_order(
    client: httpx.Client, feedback_models: Path
) -> None:
    plain = predicted(client)
    assert predicted(client, adapt=True)["adapted"]["num_rows"] == 0
    targets = (5.0 * np.array(TARGETS)).tolist()
    for rows in (slice(0, 7), slice(7, 40)):
        give(client, {"instances": ROWS[rows], "targets": targets[rows]})
    prediction = tfbbb.load(feedback_models / "numbers" / "2").predictive(
        np.array(ROWS)
    )
    given = np.array(targets)[:, np.newaxis]
    scores = interval_scores(given, *prediction.interval(list(LEVELS)), discrete=False)
    expected = AdaptiveIntervals.start().update(scores)
    answer = predicted(client, adapt=True)
    assert answer["adapted"]["num_rows"] == 40
    assert answer["adapted"]["factors"] == pytest.approx(
        expected.describe()["factors"], rel=1e-4
    )
    ends = expected.ends(ASKED)
    np.testing.assert_allclose(
        bounds(answer),
        adapt_intervals(*bounds(plain), ends, ASKED, discrete=False),
        rtol=1e-3,
        atol=1e-3,
    )
    assert bounds(predicted(client)).tolist() == bounds(plain).tolist()
    assert found(client)["adapted"]["factors"] == answer["adapted"]["factors"]
    factor = answer["adapted"]["factors"]["0.9"]
    name = 'tfbbb_adapted_interval_factor{model="numbers",version="2"}'
    assert f"{name} {factor}" in client.get("/metrics").text


def test_headers_and_client_say_how_an_answer_is_adapted(client: httpx.Client) -> None:
    give(client, {"instances": ROWS, "targets": [30.0] * 40})
    adapted = predicted(client, adapt=True)["adapted"]
    assert adapted["factors"]["0.9"] > 2
    table = "x0,x1\n1,2\n0,1\n"
    path = "/v1/models/numbers:predict?intervals=0.9&adapt=true"
    csv = client.post(path, content=table, headers={"Content-Type": "text/csv"})
    assert json.loads(csv.headers["Adapted"]) == adapted
    with Client(str(client.base_url), ADMIN_KEY) as service:
        model = service.model("numbers")
        prediction = model.predict(ROWS, intervals=ASKED, adapt=True)
        assert prediction.adapted == adapted
        assert model.predict(ROWS, intervals=ASKED).adapted is None
        assert model.describe_feedback()["adapted"]["num_rows"] == 40


def test_adaptation_of_nothing_is_refused(client: httpx.Client) -> None:
    body = {"instances": ROWS, "parameters": {"adapt": True}}
    refused = client.post("/v1/models/numbers:predict", json=body)
    assert refused.status_code == 400
    assert "adapts `intervals`, so the request must ask" in refused.json()["error"]
    assert refused.json()["field"] == "parameters.adapt"


def test_command_line_adapts_and_says_how(client: httpx.Client, tmp_path: Path) -> None:
    variables = {"TFBBB_URL": str(client.base_url), "TFBBB_KEY": ADMIN_KEY}
    table = tmp_path / "rows.csv"
    table.write_text("x0,x1,y\n" + "1,2,30\n" * 40)
    runner = CliRunner(env=variables)
    before = runner.invoke(app, ["remote", "predict", "numbers", str(table)])
    told = runner.invoke(app, ["remote", "feedback", "numbers", str(table)])
    assert "adapted intervals of 90 %: 3.82" in told.stdout, told.output
    command = ["remote", "predict", "numbers", str(table), "--adapt"]
    after = runner.invoke(app, command)
    assert after.exit_code == 0, after.output
    assert before.stdout != after.stdout
