"""Intervals adapted to feedback, over HTTP: what changes them, and where it shows."""

import json
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from typer.testing import CliRunner

import tfbbb
from service.shared.settings import Settings
from tests.service.api.feedback.test_feedback import (
    ROWS,
    TARGETS,
    found,
    give,
    recorded,
)
from tests.service.serving import ADMIN_KEY, REAL, serving, wait_until_ready
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


def replayed(models: Path, targets: Any) -> AdaptiveIntervals:
    """The ends after the rows, by the module alone."""
    prediction = tfbbb.load(models / "numbers" / "2").predictive(np.array(ROWS))
    lower, upper = prediction.interval(list(LEVELS))
    given = np.array(targets)[:, np.newaxis]
    scores = interval_scores(given, lower, upper, discrete=False)
    return AdaptiveIntervals.start().update(scores)


def test_before_feedback_nothing_is_adapted(client: httpx.Client) -> None:
    answer, plain = predicted(client, adapt=True), predicted(client)
    np.testing.assert_allclose(bounds(answer), bounds(plain), rtol=1e-6)
    factors = {f"{level:g}": 1.0 for level in LEVELS}
    assert answer["adapted"] == {"num_rows": 0, "factors": factors}
    assert "adapted" not in plain
    assert found(client)["adapted"] is None


def test_answers_are_adapted_to_the_feedback_in_its_order(
    client: httpx.Client, feedback_models: Path
) -> None:
    plain = predicted(client)
    targets = (5.0 * np.array(TARGETS)).tolist()
    for rows in (slice(0, 7), slice(7, 40)):
        give(client, {"instances": ROWS[rows], "targets": targets[rows]})
    expected = replayed(feedback_models, targets)
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


def test_late_labels_count_when_they_come(
    client: httpx.Client, feedback_models: Path
) -> None:
    late = recorded(client, ROWS[:2], intervals=[0.9], adapt=True)
    give(client, {"instances": ROWS[2:40], "targets": TARGETS[2:40]})
    targets = [{"id": late, "row": row, "target": 9.0} for row in (1, 2)]
    assert give(client, {"predictions": targets}).status_code == 200
    # The rows are those of the model: only the order of the targets differs.
    prediction = tfbbb.load(feedback_models / "numbers" / "2").predictive(
        np.array([*ROWS[2:], *ROWS[:2]])
    )
    lower, upper = prediction.interval(list(LEVELS))
    given = np.array([*TARGETS[2:], 9.0, 9.0])[:, np.newaxis]
    scores = interval_scores(given, lower, upper, discrete=False)
    expected = AdaptiveIntervals.start().update(scores).describe()["factors"]
    assert found(client)["adapted"]["factors"] == pytest.approx(expected, rel=1e-4)


def test_every_format_says_how_an_answer_is_adapted(client: httpx.Client) -> None:
    give(client, {"instances": ROWS, "targets": [30.0] * 40})
    adapted = predicted(client, adapt=True)["adapted"]
    assert adapted["factors"]["0.9"] > 2
    table = "x0,x1\n1,2\n0,1\n"
    path = "/v1/models/numbers:predict?intervals=0.9&adapt=true"
    csv = client.post(path, content=table, headers={"Content-Type": "text/csv"})
    assert json.loads(csv.headers["Adapted"]) == adapted
    tensor = {"name": "inputs", "shape": [1, 2], "datatype": "FP32", "data": [1, 2]}
    body = {"inputs": [tensor], "parameters": {"intervals": "0.9", "adapt": True}}
    infer = client.post("/v2/models/numbers/infer", json=body).json()
    assert json.loads(infer["parameters"]["adapted"]) == adapted
    with Client(str(client.base_url), ADMIN_KEY) as service:
        model = service.model("numbers")
        prediction = model.predict(ROWS, intervals=ASKED, adapt=True)
        assert prediction.adapted == adapted
        assert model.predict(ROWS, intervals=ASKED).adapted is None
        assert model.describe_feedback()["adapted"]["num_rows"] == 40
    np.testing.assert_allclose(
        prediction.lower, bounds(predicted(client, adapt=True))[0], rtol=1e-5
    )


def test_bounds_of_counts_are_counts(client: httpx.Client) -> None:
    give(client, {"instances": ROWS, "targets": [9.0] * 40}, "counts")
    lower, upper = bounds(predicted(client, "counts", adapt=True))
    assert lower.min() >= 0
    assert np.array_equal(upper, np.round(upper))
    assert (upper[:, 1] >= 9).mean() > 0.8


def test_sets_of_classes_grow_with_their_errors(client: httpx.Client) -> None:
    asked = {"intervals": None, "prediction_sets": [0.5, 0.8]}
    plain = predicted(client, "classes", **asked)
    before = predicted(client, "classes", adapt=True, **asked)
    assert before["predictions"] == plain["predictions"]
    # The least probable class of each row comes true.
    worst = np.argmin([row["probabilities"] for row in plain["predictions"]], axis=1)
    targets = [plain["classes"][index] for index in worst]
    give(client, {"instances": ROWS, "targets": targets}, "classes")
    answer = predicted(client, "classes", adapt=True, **asked)
    assert answer["adapted"]["factors"]["0.8"] > 1

    def size(found: Any) -> float:
        sets = [row["prediction_sets"][1] for row in found["predictions"]]
        return float(np.mean([len(names) for names in sets]))

    assert size(answer) > size(plain)


def test_adaptation_of_nothing_is_refused(client: httpx.Client) -> None:
    body = {"instances": ROWS, "parameters": {"adapt": True}}
    for model, asked in (("numbers", "intervals"), ("classes", "prediction_sets")):
        refused = client.post(f"/v1/models/{model}:predict", json=body)
        assert refused.status_code == 400
        assert f"adapts `{asked}`, so the request must ask" in refused.json()["error"]
        assert refused.json()["field"] == "parameters.adapt"


def test_a_drifted_version_says_how_to_train_anew(client: httpx.Client) -> None:
    give(client, {"instances": ROWS[:5], "targets": TARGETS[:5]})
    assert found(client)["retraining"] is None
    give(client, {"instances": ROWS, "targets": [50.0] * 40})
    retraining = found(client)["retraining"]
    # A table did not train this version.
    assert retraining["body"] is None
    assert "train a new one on rows of now" in retraining["sentence"]


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


@pytest.mark.slow
def test_a_restarted_service_and_another_one_answer_alike(
    client: httpx.Client, feedback_settings: Settings
) -> None:
    give(client, {"instances": ROWS, "targets": [3.0] * 40})
    with serving(feedback_settings, REAL) as other:
        wait_until_ready(other)
        assert predicted(other, adapt=True) == predicted(client, adapt=True)
        give(other, {"instances": ROWS, "targets": TARGETS})
        answer = predicted(client, adapt=True)
        assert answer["adapted"]["num_rows"] == 80
        assert predicted(other, adapt=True) == answer
