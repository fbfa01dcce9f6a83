"""Times of a table that may be cut off, trained, exported and asked."""

import json

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from service.shared.settings import Settings
from tests.cli.commands import succeeded
from tests.cli.test_train import skip_training
from tests.service.serving import ADMIN_KEY, ask, serving
from tests.trained import exported_table
from tfbbb.cli import app
from tfbbb.export.reader import load
from tfbbb.sklearn import BayesianRegressor
from tfbbb.tables import TableError
from tfbbb.tables.writing import write_table
from tfbbb.training import train_table
from tfbbb.training.target_likelihood import choose_likelihood

ROWS = 600
SPEC = {
    "target": "days",
    "event": "died",
    "model": {"members": 2, "hidden_units": [8]},
    "training": {
        "kl_schedule": "constant",
        "epochs": 60,
        "validation": {"fraction": 0.3},
    },
}


def make_table(rows=ROWS, noise=None, seed=0):
    """Times whose median is four times as long with a drug; a third is cut off."""
    generator = np.random.default_rng(seed)
    drug = generator.choice(["a", "b"], size=rows)
    age = generator.uniform(20.0, 80.0, size=rows)
    if noise is None:
        noise = np.log(generator.exponential(size=rows) / np.log(2.0))
    days = np.exp(4.0 + np.log(4.0) * (drug == "b") + 0.5 * noise)
    limits = generator.uniform(20.0, 300.0, size=rows)
    died = days <= limits
    return pa.table(
        {
            "drug": drug,
            "age": age,
            "days": np.where(died, days, limits),
            "died": np.where(died, "yes", "no"),
        }
    )


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    root = tmp_path_factory.mktemp("models") / "patients"
    _, trained = exported_table(make_table(), SPEC, root)
    return root, trained


def test_medians_and_survival_are_those_of_the_time_itself(exported):
    root, trained = exported
    assert [column.name for column in trained.schema.features] == ["drug", "age"]
    rows = {"drug": np.array(["a", "b"], dtype=object), "age": np.full(2, 50.0)}
    prediction = load(root / "1").predictive(rows)
    # 90 events or more of each drug: 6 per cent of a time, three times.
    np.testing.assert_allclose(
        prediction.quantile(0.5)[:, 0], np.exp(4.0) * np.array([1.0, 4.0]), rtol=0.2
    )
    survival = prediction.survival([20.0, np.exp(4.0), 300.0])[..., 0]
    assert (np.diff(survival, axis=1) < 0.0).all()
    assert survival[0, 1] == pytest.approx(0.5, abs=0.1)


def test_figures_are_of_times_that_are_known(exported):
    _, trained = exported
    figures = trained.judgement["figures"]
    assert set(figures) == {"model", "Kaplan-Meier curve"}
    assert figures["model"]["concordance"] > 0.6
    assert figures["Kaplan-Meier curve"]["concordance"] == 0.5
    better = figures["model"]["integrated_brier_score"]
    assert better < figures["Kaplan-Meier curve"]["integrated_brier_score"]
    assert trained.judgement["learned"]
    assert "rmse" not in trained.metrics
    # 180 rows: a standard error of 2.2 per cent.
    assert trained.metrics["coverage_90"] == pytest.approx(0.9, abs=0.07)
    assert trained.recalibration_choice["chosen"] == "none"
    assert "cut off" in trained.recalibration_choice["reason"]


def test_the_command_line_trains_predicts_and_evaluates(
    exported, tmp_path, monkeypatch
):
    root, trained = exported
    jobs = skip_training(monkeypatch, trained, root / "1")
    write_table(make_table(), tmp_path / "patients.csv")
    run, model = CliRunner().invoke, f"{tmp_path}/model/1"
    options = ("--target", "days", "--event", "died", "--output", f"{tmp_path}/model")
    result = succeeded(run(app, ["train", f"{tmp_path}/patients.csv", *options]))
    assert jobs[0].event == "died"
    write_table(make_table(rows=5).drop(["days", "died"]), tmp_path / "rows.csv")
    result = succeeded(
        run(app, ["predict", model, f"{tmp_path}/rows.csv", "--times", "30,365"])
    )
    assert "survival_30,survival_365" in result.stdout
    result = succeeded(
        run(app, ["evaluate", model, f"{tmp_path}/patients.csv", "--json"])
    )
    judged = json.loads(result.stdout)
    assert judged["figures"]["model"]["concordance"] is not None


def test_a_request_asks_for_survival_and_gives_pairs_as_targets(exported, tmp_path):
    row = {"drug": "b", "age": 40.0}
    body = {"instances": [row, row], "parameters": {"times": [30.0, 90.0]}}
    with serving(Settings(models=exported[0].parent)) as client:
        answer = ask(client, "patients", {**body, "targets": [[90.0, 1], [90.0, 0]]})
        assert answer.status_code == 200, answer.text
        first, second = answer.json()["predictions"]
        (at_30,), (at_90,) = first["survival"]
        assert 1.0 > at_30 > at_90 > 0.0
        # What still runs at 90 days is beyond them.
        assert np.exp(second["log_prob"]) == pytest.approx(at_90, rel=1e-5)
        assert first["log_prob"] != second["log_prob"]
        wrong = ask(client, "patients", {**body, "targets": [90.0, 90.0]})
        assert wrong.status_code == 400
        assert "a time and its event" in wrong.json()["error"]
        write_table(make_table(rows=5), tmp_path / "known.csv")
        for command in (
            ["predict", "patients", f"{tmp_path}/known.csv", "--log-prob"],
            ["feedback", "patients", f"{tmp_path}/known.csv"],
        ):
            place = ["--url", str(client.base_url), "--key", ADMIN_KEY]
            succeeded(CliRunner().invoke(app, ["remote", *command, *place]))
        told = client.get("v1/models/patients/versions/1/feedback")
        assert told.json()["num_rows"] == 5, told.text


@pytest.mark.parametrize(
    ("column", "values", "said"),
    [
        ("died", {7: "maybe"}, "'died'"),
        ("died", {7: None}, "has no value in row 8"),
        ("days", {7: 0.0}, "in row 8"),
        ("days", {7: -2.0}, "in row 8"),
        ("died", {0: 2.0} | dict.fromkeys(range(1, ROWS), 1.0), "is 2 in row 1"),
        ("died", dict.fromkeys(range(ROWS), 0.0), "happened in no row"),
    ],
)
def test_a_wrong_time_or_event_is_named_before_training(column, values, said):
    table = make_table()
    cells = dict(enumerate(table[column].to_pylist())) | values
    place = table.column_names.index(column)
    table = table.set_column(place, column, pa.array(cells.values()))
    with pytest.raises(TableError, match=said):
        train_table(table, SPEC)


@pytest.mark.parametrize("expected", ["weibull", "log_normal"])
def test_rows_left_out_choose_the_likelihood_of_times(expected):
    noise = None
    if expected == "log_normal":
        noise = np.random.default_rng(1).normal(size=2000)
    table = make_table(2000, noise).to_pandas()
    inputs = {name: table[name].to_numpy(object) for name in ("drug", "age")}
    inputs["age"] = inputs["age"].astype(float)
    targets = np.stack([table["days"], table["died"] == "yes"], axis=1).astype(float)
    assert choose_likelihood(inputs, targets).likelihood.name == expected


def test_an_estimator_reads_the_event_from_its_rows():
    frame = make_table().to_pandas()
    frame["died"] = frame["died"] == "yes"
    x, y = frame[["drug", "age", "died"]], frame["days"]
    short = {"kl_schedule": "constant", "epochs": 20, "likelihood": "weibull"}
    model = BayesianRegressor(event="died", members=1, hidden_units=[4], **short)
    model.fit(x, y)
    assert 0.5 < model.score(x, y) < 1.0
    assert np.isfinite(model.log_prob(x, y)).all()
    # The event is not known beforehand, and changes no prediction.
    np.testing.assert_array_equal(
        model.predict(x[:5]), model.predict(x[:5].assign(died=False))
    )
