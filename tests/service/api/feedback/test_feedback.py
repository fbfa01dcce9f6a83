"""Feedback over HTTP: what is counted, and what the figures say."""

import numpy as np
import pytest
from typer.testing import CliRunner

import tfbbb
from service.shared.errors import InvalidRequest
from tests.service.serving import ADMIN_KEY
from tfbbb.cli import app
from tfbbb.client import Client
from tfbbb.scores.metrics import (
    brier_score,
    crps,
    interval_coverage,
    root_mean_squared_error,
)

GENERATOR = np.random.default_rng(1)
X = GENERATOR.normal(size=(40, 2)).astype("float32")
ROWS = X.tolist()
Y = GENERATOR.normal(size=(40, 1))
TARGETS = Y[:, 0].tolist()


def give(client, body, model="numbers"):
    return client.post(f"/v1/models/{model}/feedback", json=body)


def found(client, model="numbers", version=2):
    response = client.get(f"/v1/models/{model}/versions/{version}/feedback")
    assert response.status_code == 200
    return response.json()


def test_running_figures_are_those_of_all_rows(client, feedback_models):
    assert found(client)["num_rows"] == 0
    for rows in (slice(0, 1), slice(1, 15), slice(15, 40)):
        answer = give(client, {"instances": ROWS[rows], "targets": TARGETS[rows]})
        assert answer.status_code == 200
        assert answer.json()["num_rows"] == len(ROWS[rows])
        assert answer.json()["model_version"] == "2"
    feedback = found(client)
    assert feedback["num_rows"] == 40
    prediction = tfbbb.load(feedback_models / "numbers" / "2").predictive(X)
    log_prob = prediction.log_prob(Y)
    expected = {
        "log_likelihood": log_prob.mean(),
        "crps": crps(prediction, Y),
        "coverage_50": interval_coverage(prediction, Y, 0.5),
        "coverage_90": interval_coverage(prediction, Y, 0.9),
        "coverage_95": interval_coverage(prediction, Y, 0.95),
        "mean_absolute_error": np.abs(prediction.mean - Y).mean(),
        "rmse": root_mean_squared_error(prediction, Y),
    }
    figures = feedback["figures"]
    means = {name: figure["mean"] for name, figure in figures.items()}
    assert means == pytest.approx(expected, rel=1e-5)
    assert figures["log_likelihood"]["standard_error"] == pytest.approx(
        log_prob.std(ddof=1) / np.sqrt(40), rel=1e-5
    )
    assert figures["coverage_90"]["held_out"] == 0.88
    assert figures["crps"]["held_out"] is None


def test_classes_are_scored_by_name(client, feedback_models):
    targets = ["red", "green", "blue", "green"] * 10
    body = {"inputs": ROWS, "targets": targets}
    assert give(client, body, "classes").status_code == 200
    feedback = found(client, "classes", 1)
    prediction = tfbbb.load(feedback_models / "classes" / "1").predictive(X)
    indices = np.array([["red", "green", "blue"].index(name) for name in targets])
    right = prediction.probabilities.argmax(axis=1) == indices
    sets = prediction.prediction_set(0.9)[np.arange(40), indices]
    figures = {name: x["mean"] for name, x in feedback["figures"].items()}
    assert figures["accuracy"] == pytest.approx(right.mean())
    assert figures["coverage_90"] == pytest.approx(sets.mean())
    assert figures["brier_score"] == pytest.approx(brier_score(prediction, indices))


def test_drift_alarm_stays_with_its_row_and_time(client):
    assert give(client, {"instances": ROWS[:5], "targets": TARGETS[:5]}).is_success
    drift = found(client)["drift"]
    assert (drift["alarm"], drift["alarm_at"]) == (False, None)
    assert (drift["false_alarm_rate"], drift["threshold"]) == (0.05, 20.0)
    assert drift["reference_rows"] == 30
    shifted = {"instances": ROWS, "targets": [50.0] * 40}
    give(client, shifted)
    give(client, shifted)
    drift = found(client)["drift"]
    assert drift["alarm"]
    assert drift["greatest"] >= drift["martingale"] > 0
    assert 5 < drift["alarm_row"] <= 85
    give(client, {"instances": ROWS, "targets": TARGETS})
    after = found(client)["drift"]
    assert after["alarm_row"] == drift["alarm_row"]
    assert after["alarm_at"] == drift["alarm_at"]
    metrics = client.get("/metrics").text
    assert 'tfbbb_feedback_rows{model="numbers",version="2"} 125.0' in metrics
    assert 'tfbbb_drift_alarm{model="numbers",version="2"} 1.0' in metrics
    assert 'figure="coverage_90",model="numbers",version="2"' in metrics


@pytest.mark.parametrize(
    "body",
    [
        [],
        {},
        {"instances": [[1, 2]], "targets": [1, 2]},
        {"instances": [[1, 2]], "targets": ["one"]},
        {"instances": [[1, 2]], "targets": [1], "parameters": {}},
        {"instances": [[1, 2]], "inputs": [[1, 2]], "targets": [1]},
        {"instances": [[1, 2]]},
    ],
)
def test_malformed_feedback_is_refused_and_not_counted(client, body):
    response = give(client, body)
    assert response.status_code == InvalidRequest.status, response.text
    assert response.json()["error"]
    assert found(client)["num_rows"] == 0


def test_client_sends_feedback_in_blocks_to_one_version(client):
    rows, targets = np.tile(X, (30, 1)), np.tile(Y[:, 0], 30)
    with Client(str(client.base_url), ADMIN_KEY) as service:
        model = service.model("numbers")
        assert model.feedback(rows, targets, label="latest") == 2
        assert model.describe_feedback()["num_rows"] == 1200
        with pytest.raises(ValueError, match="1 targets and 1200 rows"):
            model.feedback(rows, [1.0])


def test_command_line_sends_the_rows_that_have_a_target(client, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("x0,x1,y\n1,2,3\n0,1,\n2,2,1\n")
    variables = {"TFBBB_URL": str(client.base_url), "TFBBB_KEY": ADMIN_KEY}
    command = ["remote", "feedback", "numbers", str(path), "--version", "1"]
    result = CliRunner(env=variables).invoke(app, command)
    assert result.exit_code == 0, result.output
    assert "2 rows scored version 1 of numbers" in result.stderr
    assert "feedback about 2 rows:" in result.stdout
    assert "no drift" in result.stdout
    assert found(client, version=1)["num_rows"] == 2
