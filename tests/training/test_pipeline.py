"""Each step of a training sets its fields and leaves the others as they are."""

from dataclasses import fields, replace

import numpy as np
import pytest

from tfbbb.base.diverged_training import TrainingDivergedError
from tfbbb.tables import TableError
from tfbbb.tables.given_table import as_source
from tfbbb.training import candidates
from tfbbb.training.pipeline import (
    STEPS,
    calibrate_model,
    compare_baselines,
    judge_model,
    learn_familiarity,
    make_plan,
    prepare_rows,
    result,
    train_best_network,
    train_networks,
)
from tfbbb.training.pipeline import _plan as plan_of
from tfbbb.training.run import ProgressOfAll, Run
from tfbbb.training.spec import JobSpec

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=60)
TABLE = {"x": X.tolist(), "y": (3.0 * X + GENERATOR.normal(0, 0.1, 60)).tolist()}
SPEC = {
    "target": "y",
    "model": {"hidden_units": [4], "members": 4, "likelihood": "normal"},
    "training": {"epochs": 3, "seed": 1},
}


def start(**changes):
    spec = JobSpec.model_validate(SPEC | changes)
    return Run(
        source=as_source(TABLE),
        spec=spec,
        weights=None,
        parent=None,
        directory=None,
        checkpoint_seconds=30.0,
        xla=False,
        report=ProgressOfAll(lambda progress: None),
        should_stop=lambda: False,
    )


@pytest.fixture(scope="module")
def runs():
    """The run before the first step and after each."""
    found = [start()]
    for step in STEPS:
        found.append(step(found[-1]))
    return found


def changed(before, after):
    return {
        field.name
        for field in fields(Run)
        if getattr(before, field.name) is not getattr(after, field.name)
    }


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (prepare_rows, {"prepared"}),
        (make_plan, {"plan", "networks", "members"}),
        (train_networks, {"candidates", "outcomes"}),
        (compare_baselines, {"inputs", "targets", "baselines"}),
        (train_best_network, {"candidates", "steps_on_more_rows"}),
        (calibrate_model, {"calibrated", "scored"}),
        (learn_familiarity, {"familiarity", "extrapolation"}),
        (judge_model, {"judgement", "recipe"}),
    ],
)
def test_a_step_sets_its_fields_alone(runs, step, expected):
    place = STEPS.index(step)
    assert changed(runs[place], runs[place + 1]) == expected


def test_a_likelihood_that_is_given_is_taken(runs):
    assert runs[1].likelihoods is None
    assert result(runs[-1]).spec.model.likelihood.name == "normal"


def test_a_column_that_the_table_lacks_is_refused_by_the_first_step():
    with pytest.raises(TableError, match="other"):
        prepare_rows(start(target="other"))


def test_a_calibration_needs_no_training_of_this_process(runs):
    """A step reads the fields of its run alone, so it can be repeated."""
    again = calibrate_model(replace(runs[5], calibrated=None, scored=None))
    assert again.calibrated.metrics == pytest.approx(runs[6].calibrated.metrics)
    np.testing.assert_allclose(again.scored.log_prob, runs[6].scored.log_prob)


def test_members_go_on_only_if_rows_left_out_are_more_likely(runs, monkeypatch):
    trained, going_on = runs[4], runs[5]
    before, after = trained.best.choice, going_on.best.choice
    assert going_on.steps_on_more_rows > 0
    ratio = after.gain / before.gain
    assert ratio != 1.0
    assert after.gain_of_intervals == pytest.approx(ratio * before.gain_of_intervals)
    assert going_on.best.model is not trained.best.model
    weights = trained.best.model.get_weights()
    monkeypatch.setattr(candidates, "choice_with_more_rows", lambda *_: None)
    same = train_best_network(trained)
    assert same.steps_on_more_rows == 0
    assert same.best is trained.best
    for kept, expected in zip(same.best.model.get_weights(), weights, strict=True):
        np.testing.assert_array_equal(kept, expected)
    # The figures are those of members that did not see the rows, in both cases.
    metrics = calibrate_model(same).calibrated.metrics
    assert metrics == pytest.approx(runs[6].calibrated.metrics)


def test_figures_that_are_not_finite_end_the_training(runs, monkeypatch):
    monkeypatch.setattr(
        "tfbbb.training.recalibration.prediction_figures",
        lambda *_: {"rmse": 1.0, "nll": np.inf},
    )
    with pytest.raises(TrainingDivergedError):
        calibrate_model(runs[5])


def test_the_last_run_is_the_result(runs):
    trained = result(runs[-1])
    assert trained.num_training_rows == 60
    assert trained.metrics == runs[6].calibrated.metrics
    assert trained.spec.training.learning_rate == runs[2].plan.learning_rate
    assert trained.judgement["learned"]


def test_counts_get_a_likelihood_of_counts_and_the_last_ones_measure_it():
    generator = np.random.default_rng(3)
    x, days = generator.uniform(-1, 1, 300), generator.permutation(300)
    counts = generator.poisson(np.exp(1 + x) * generator.gamma(1.0, 1.0, 300))
    model = {"hidden_units": [4], "members": 4}
    run = start(model=model, training={"epochs": 2, "validation": {"time": "day"}})
    run = replace(run, source=as_source({"x": x, "day": days, "y": counts}))
    for step in STEPS:
        run = step(run)
    trained = result(run)
    assert trained.spec.model.likelihood.name == "negative_binomial"
    (kept,) = [trial for trial in trained.recipe["likelihoods"] if trial["kept"]]
    assert kept["likelihood"] == "negative_binomial"
    assert kept["gain"] > 2 * kept["standard_error"] > 0
    assert trained.recipe["metrics_from"].startswith("the last 60 rows by 'day', from")
    assert sorted(days[run.places]) == list(range(240, 300))
    assert len(trained.log_likelihoods) == 60


@pytest.mark.parametrize(
    ("with_target", "without_target", "validation"),
    [(4999, 7, {}), (5000, 0, {}), (5000, 7, {"fraction": 0.3})],
)
def test_the_recipe_follows_from_the_rows_with_a_target(
    with_target, without_target, validation
):
    x = GENERATOR.normal(size=with_target + without_target)
    y = np.where(np.arange(len(x)) < without_target, np.nan, x)
    spec = {"target": "y", "training": {"validation": validation}}
    spec["model"] = {"likelihood": "normal"}
    run = start(**spec)
    run = prepare_rows(replace(run, source=as_source({"x": x, "y": y})))
    plan = plan_of(run, None)
    few = with_target < 5000
    assert run.prepared.num_rows == with_target
    assert run.prepared.rows_without_target == without_target
    assert (len(run.prepared.held_out_rows) == 0) is (few and not validation)
    assert (plan.repeats > 0) is (few and not validation)
    if not few or validation:
        measured = make_plan(run).places
        assert not set(measured) & set(run.prepared.training_rows)
    assert plan.group_size == (8 if few else 4)
    assert plan.learning_rate == (0.02 if few else 0.01)
    units = (64, 64) if few else (128, 128)
    assert {tuple(net.hidden_units) for net in plan.networks.values()} == {units}
    encodings = {"piecewise_linear"} if few else {"piecewise_linear", "standardized"}
    assert set(plan.networks) == encodings
