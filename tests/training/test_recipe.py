"""A target alone: what is chosen, how it is measured, and tables that are odd."""

import math

import numpy as np
import pyarrow as pa
import pytest

from tests.trained import trained_table
from tests.training.conftest import NOISE, SLOPE
from tfbbb.judging.evaluation.judgement import LEARNED_NOTHING
from tfbbb.training import train_table
from tfbbb.training.cross_fitting import MemberRows
from tfbbb.training.job_clock import JobClock
from tfbbb.training.recipe import _metrics_from
from tfbbb.training.temperature_choice import _gain

ROWS = 120
SMALL = {"hidden_units": [8]}


def table(rows=ROWS, seed=0):
    generator = np.random.default_rng(seed)
    x = generator.uniform(-2, 2, rows)
    return pa.table({"x": x, "y": np.sin(2 * x) + 0.1 * generator.normal(size=rows)})


def test_all_rows_train_and_all_rows_are_measured(of_numbers):
    trained = of_numbers
    assert trained.num_training_rows == 195
    assert len(trained.held_out_rows) == 0
    assert trained.recipe["metrics_from"].startswith(
        "all 195 rows, each predicted by the 2 of 4 members that did not train on it"
    )
    assert "less error than the mean" in trained.judgement["sentences"][0]


def test_the_temperature_with_the_best_rows_left_out_is_kept(of_numbers):
    trained = of_numbers
    tried = trained.recipe["tried"]
    assert [trial["temperature"] for trial in tried] == [0.3, 0.1, 0.01]
    best = max(tried, key=lambda trial: trial["log_likelihood"])
    assert [trial for trial in tried if trial["kept"]] == [best]
    # Members that are too certain must not lose to members that learned nothing.
    assert all(trial["factor"] != 1.0 for trial in tried)
    assert trained.recipe["chosen"]["temperature"] == best["temperature"]
    assert trained.spec.training.temperature == best["temperature"]
    assert len(trained.model.members) == trained.spec.model.members == 4
    layer = trained.model.variational_layers[0]
    assert float(layer.kl_weight) == pytest.approx(best["temperature"] / 195)


def test_rows_left_out_are_predicted_about_as_well_as_new_rows(of_numbers):
    generator = np.random.default_rng(1)
    x, word = generator.normal(size=400), generator.choice(["a", "b"], size=400)
    y = SLOPE * x + NOISE * generator.normal(size=400)
    prediction = of_numbers.model.predictive({"x": x.astype("float32"), "word": word})
    rmse = math.sqrt(np.mean((prediction.mean[:, 0] - y) ** 2))
    # The mixture of all members is better than that of two; an RMSE of 195 rows has a
    # standard error of 5 % and more, of which four.
    assert 0.7 < rmse / of_numbers.metrics["rmse"] < 1.3


def test_time_that_runs_out_ends_training_and_is_said(compiled_functions):
    training = {"max_seconds": 10, "epochs": 1000, "kl_schedule": "constant"}
    model = {**SMALL, "members": 2, "likelihood": "normal"}
    spec = {"target": "y", "model": model, "training": training}
    noise = np.random.default_rng(1).normal(size=ROWS)
    # A trainer needed all the time to start.
    clock = JobClock(elapsed=10.0)
    trained = train_table(
        table().set_column(1, "y", pa.array(noise)), spec, clock=clock
    )
    assert trained.recipe["out_of_time"]
    assert trained.recipe["epochs"] < 1000
    assert trained.recipe["seconds"] > 10.0
    said = f"`max_seconds` = 10 ended the training after {trained.recipe['steps']} "
    for kind in ("sentences", "warnings"):
        assert said in trained.judgement[kind][-1]
    assert math.isfinite(trained.metrics["rmse"])
    assert not trained.judgement["learned"]
    assert not trained.judgement["becomes_latest"]
    assert LEARNED_NOTHING in trained.judgement["warnings"]


def heavy_tailed_counts():
    """Few giant counts, and a column whose greatest values are far from all others."""
    generator = np.random.default_rng(3)
    x, stays = generator.normal(size=(2, 200))
    stays = np.where(generator.uniform(size=200) < 0.9, 0.0, np.exp(3.0 + stays))
    mean = np.exp(1.0 + 0.4 * x + 0.1 * np.log1p(stays))
    counts = generator.negative_binomial(0.8, 0.8 / (0.8 + mean))
    counts[[7, 90]] = 150, 400
    return {"x": x, "stays": np.round(stays), "y": counts}


def decades():
    """Positive numbers over six decades, and more columns than rows tell apart."""
    generator = np.random.default_rng(4)
    x = generator.normal(size=(80, 30))
    y = np.exp(3.0 * x[:, 0] + generator.normal(size=80))
    return {"y": y, **{f"x{i}": x[:, i] for i in range(30)}}


@pytest.mark.slow
@pytest.mark.parametrize("rows", [heavy_tailed_counts, decades])
def test_no_mean_of_a_heavy_tailed_target_is_absurd(rows):
    training, model = {"steps": 150}, {"members": 4, "hidden_units": [16]}
    spec = {"target": "y", "training": training, "model": model}
    columns = rows()
    trained = trained_table(columns, spec)
    figures = trained.judgement["figures"]
    # Far worse than a constant is refused; 3 members of 4 are left for each row.
    assert figures["model"]["rmse"] < 1.1 * figures["mean"]["rmse"]
    assert figures["model"]["log_likelihood"] > figures["mean"]["log_likelihood"]
    far = {name: 100.0 * np.asarray(values) for name, values in columns.items()}
    prediction = trained.model.predictive(trained.schema.inputs(pa.table(far)))
    if trained.recipe["chosen"]["likelihood"]["name"] != "student_t":
        assert prediction.mean.max() < 3.0 * max(columns["y"])


@pytest.mark.slow
def test_many_rows_try_both_encodings_and_the_better_is_kept(tmp_path):
    reports = []
    many = table(rows=6000)
    spec = {"target": "y", "training": {"steps": 60}, "model": {"members": 2}}
    trained = train_table(many, spec, directory=tmp_path, report=reports.append)
    tried = trained.recipe["tried"]
    assert [(trial["network"], trial["temperature"]) for trial in tried] == [
        (encoding, temperature)
        for encoding in ("standardized", "piecewise_linear")
        for temperature in (0.1, 0.01)
    ]
    best = max(tried, key=lambda trial: trial["log_likelihood"])
    assert [trial for trial in tried if trial["kept"]] == [best]
    assert trained.spec.model.numeric_encoding == best["network"]
    assert trained.recipe["chosen"]["network"] == best["network"]
    steps = [at.step for at in reports]
    assert steps == sorted(steps)
    assert steps[-1] == reports[-1].steps > trained.recipe["steps"]
    # One for each network, and one for the best members alone.
    assert len({at.stage for at in reports}) == 3


def line(**training):
    """Trains on 20 rows of a line."""
    x = np.linspace(-3.0, 3.0, 20)
    y = 2 * x + np.random.default_rng(0).normal(0.0, 0.3, 20)
    model = {"members": 4, "likelihood": "normal"}
    trained = trained_table(
        {"x": x, "y": y}, {"target": "y", "model": model, "training": training}
    )
    return x, y, trained


def test_a_linear_network_is_tried_where_a_linear_model_competes():
    _, _, trained = line(steps=60, learning_rate=0.1, effort="quick")
    recipe = trained.recipe
    assert recipe["chosen"]["network"] == "linear"
    assert recipe["chosen"]["hidden_units"] == []
    assert recipe["chosen"]["temperature"] == 1.0


@pytest.mark.slow
def test_a_linear_network_is_as_certain_as_the_rule_of_bayes():
    # A posterior of a line needs steps to become as narrow as Bayes' rule says: the
    # variance of a line's mean is that of least squares, up to the covariance that a
    # mean field estimates lower.
    x, y, trained = line(steps=600)
    design = np.stack([np.ones(len(x)), x], axis=1)
    residuals = y - design @ np.linalg.lstsq(design, y)[0]
    inverse = np.linalg.inv(design.T @ design)
    leverage = np.einsum("ij,jk,ik->i", design, inverse, design)
    formula = leverage * np.sum(residuals**2) / (len(x) - 2)
    inputs = trained.schema.inputs({"x": x})
    epistemic = trained.model.predictive(inputs).epistemic[:, 0]
    assert 0.4 < np.median(epistemic / formula) < 2.0


@pytest.fixture(scope="module")
def tempered():
    """Classes, one of them rarer than the folds, at a temperature that is given."""
    labels = np.where(table()["x"].to_numpy() > 0, "high", "low").astype(object)
    labels[:2] = "rare"
    classes = table().set_column(1, "y", pa.array(labels))
    training = {"epochs": 3, "kl_schedule": {"name": "tempered", "temperature": 0.05}}
    return trained_table(classes, {"target": "y", "model": SMALL, "training": training})


def test_the_temperature_of_a_given_schedule_is_not_changed(tempered):
    recipe = tempered.recipe
    assert [trial["temperature"] for trial in recipe["tried"]] == [0.05]
    assert recipe["chosen"]["temperature"] == 0.05
    assert tempered.spec.training.temperature == 0.05
    assert recipe["steps_on_more_rows"] is None


def test_a_class_with_fewer_rows_than_folds_trains(tempered):
    assert tempered.schema.classes == ("high", "low", "rare")
    assert 0 <= tempered.metrics["accuracy"] <= 1


@pytest.mark.slow
def test_members_with_a_constant_target_have_finite_figures():
    """Row 5 alone differs: in each repeat, one member per temperature leaves it out."""
    y = np.where(np.arange(ROWS) == 5, 1.0, 0.0)
    constant = table().set_column(1, "y", pa.array(y))
    spec = {"target": "y", "task": "regression", "training": {"epochs": 3}}
    trained = trained_table(constant, spec)
    assert math.isfinite(trained.metrics["rmse"])


def test_the_gain_follows_the_law_of_an_average():
    """log f = a + b / m, from two to eight members."""
    a, b = 0.1, 0.6
    factor = {m: math.exp(a + b / m) for m in (1, 2, 8)}
    gain = _gain([factor[1], factor[1]], factor[2], 8)
    assert gain == pytest.approx(factor[8] / factor[2])
    assert _gain([1.3], 1.3, 8) == 1.0


@pytest.mark.slow
def test_classes_that_are_all_predicted_right_become_more_certain():
    x = np.repeat([-1.0, 1.0], 60)
    labels = np.where(x > 0, "high", "low")
    separable = pa.table({"x": x, "y": labels})
    trained = trained_table(separable, {"target": "y", "training": {"epochs": 100}})
    assert trained.metrics["accuracy"] == 1.0
    factors = [trial["factor"] for trial in trained.recipe["tried"]]
    assert all(1 / 128 < factor < 1.0 for factor in factors)
    choice = trained.recalibration_choice
    assert choice["chosen"].startswith(("temperature", "platt"))
    assert trained.metrics["log_likelihood"] > choice["before"]["log_likelihood"]


@pytest.mark.parametrize(
    ("repeats", "split", "goes_on", "told"),
    [
        (
            2,
            {"by": "group", "column": "ward", "groups": 20},
            True,
            "all 30 rows, each predicted by the 2 of 8 members that did not train on "
            "it or on others of its 'ward', as they were before they went on with more "
            "rows",
        ),
        (
            2,
            {"by": "time", "column": "day", "since": "90"},
            False,
            "the last 30 rows by 'day', from 90 on, predicted by the 2 of 8 members "
            "that trained on earlier rows alone",
        ),
        (
            0,
            {"by": "time", "column": "day", "since": "90"},
            False,
            "the last 30 rows by 'day', from 90 on, which no member trained on",
        ),
    ],
)
def test_the_rows_that_were_measured_are_told(repeats, split, goes_on, told):
    members = MemberRows.draw(90, (1.0,), 8, repeats)
    assert _metrics_from(members, 30, split, goes_on) == told
