import numpy as np
import pytest
from pydantic import ValidationError

from tfbbb.tables import Schema
from tfbbb.training.plan import (
    TrainingPlan,
    cross_fitting_folds,
    cross_fitting_repeats,
    kl_schedule_at,
)
from tfbbb.training.spec import JobSpec, SpecError

SCHEMA = Schema.infer({"x": np.arange(100.0), "y": np.arange(100.0)}, "y")


def spec(model=None, **training):
    return JobSpec.model_validate(
        {"target": "y", "model": model or {}, "training": training}
    )


def plan(num_rows, model=None, **training):
    given = spec(model, **training)
    targets = np.linspace(0, np.pi, num_rows, dtype=np.float32)[:, np.newaxis]
    repeats = cross_fitting_repeats(given, num_rows)
    return TrainingPlan.from_spec(given, SCHEMA, targets, repeats)


def test_by_default_1000_steps_are_planned():
    assert plan(320).steps == 1000
    assert plan(320, batch_size=7).steps == pytest.approx(1000, rel=0.02)


def test_many_rows_are_passed_over_three_times_at_least():
    assert plan(2 * 10**6).epochs == 3
    assert plan(10**6, steps=100).epochs == 1


def test_a_training_outlasts_its_warmup():
    assert plan(10**6, kl_schedule="linear_warmup").epochs == 20
    with pytest.raises(ValidationError, match="of 10 epochs leaves none of 10 at temp"):
        plan(100, kl_schedule="linear_warmup", epochs=10)
    with pytest.raises(SpecError, match="leaves none of 8 at temperature 1"):
        plan(320, kl_schedule="linear_warmup", steps=40)


def test_epochs_and_batches_that_are_given_are_taken():
    given = plan(100, epochs=3, batch_size=30)
    assert (given.epochs, given.batch_size, given.steps_per_epoch) == (3, 30, 4)


@pytest.mark.parametrize(
    ("num_rows", "training", "model", "repeats"),
    [
        (10, {}, {}, 2),
        (5000, {}, {}, 0),
        (400, {"validation": {"fraction": 0.2}}, {}, 0),
        (400, {"validation": {"time": "x"}}, {}, 2),
        (400, {"validation": {"time": "x", "fraction": 0.2}}, {}, 0),
        (400, {"validation": {"group": "x"}}, {}, 2),
        (400, {"validation": {"group": "x", "fraction": 0.2}}, {}, 0),
        (400, {"early_stopping": {}}, {}, 0),
        (400, {}, {"members": 1}, 0),
        (400, {}, {"members": 5}, 1),
        (400, {}, {"members": 6}, 2),
        (400, {"kl_schedule": "constant"}, {}, 2),
    ],
)
def test_rows_are_left_out_by_folds_where_members_allow(
    num_rows, training, model, repeats
):
    assert plan(num_rows, model, **training).repeats == repeats


@pytest.mark.parametrize(
    ("num_rows", "steps", "members"), [(400, 400, 8), (5000, 1000, 4)]
)
def test_a_quick_training_tries_one_network_at_one_temperature(
    num_rows, steps, members
):
    quick = plan(num_rows, effort="quick")
    assert quick.steps == pytest.approx(steps, rel=0.03)
    assert (quick.temperatures, quick.num_members) == ((0.1,), members)
    assert list(quick.networks) == ["piecewise_linear"]
    assert quick.repeats == plan(num_rows).repeats
    given = plan(num_rows, {"members": 3}, effort="quick", steps=50, batch_size=200)
    assert (given.group_size, given.steps) == (3, 50)


@pytest.mark.parametrize(
    ("num_rows", "members", "folds", "steps"), [(400, 16, 8, 1500), (5000, 8, 0, 3500)]
)
def test_the_best_training_has_twice_as_many_members(num_rows, members, folds, steps):
    best, default = plan(num_rows, effort="best"), plan(num_rows)
    assert best.group_size == members == 2 * default.group_size
    assert best.steps == pytest.approx(steps, rel=0.02)
    given = spec(effort="best")
    assert cross_fitting_folds(given, num_rows) == folds


def test_temperatures_are_tried_unless_a_schedule_is_given():
    assert plan(400).temperatures == (0.3, 0.1, 0.01)
    assert plan(5000).temperatures == (0.1, 0.01)
    assert plan(400, kl_schedule="constant").temperatures == (1.0,)
    assert plan(400, {"posterior": "low_rank_normal"}).temperatures == (1.0,)
    assert kl_schedule_at(1.0).name == "constant"
    assert kl_schedule_at(0.1).temperature == 0.1


def test_numbers_are_encoded_if_rows_are_many():
    assert encodings(9) == ["standardized"]
    assert encodings(10) == encodings(4999) == ["piecewise_linear"]
    assert encodings(400, {"numeric_encoding": "standardized"}) == ["standardized"]


def encodings(num_rows, model=None):
    networks = plan(num_rows, model).networks.values()
    return [network.numeric_encoding for network in networks]


def test_a_linear_network_is_planned_unless_layers_are_given():
    linear = plan(400).linear
    assert (linear.hidden_units, linear.numeric_encoding) == ((), "standardized")
    encoded = plan(400, {"numeric_encoding": "piecewise_linear"}).linear
    assert encoded.numeric_encoding == "piecewise_linear"
    # Two rows held out are too few to compare networks.
    assert plan(20, validation={"fraction": 0.1}).linear is None
    assert plan(400, {"hidden_units": [8]}).linear is None


def test_the_learning_rate_falls_along_a_cosine():
    of_step = plan(320).keras_learning_rate
    assert float(of_step(0)) == pytest.approx(0.02)
    assert float(of_step(500)) == pytest.approx(0.01)
    assert float(of_step(1000)) == pytest.approx(0.0, abs=1e-8)


@pytest.mark.parametrize(
    ("seconds", "networks", "temperatures"),
    [
        (None, ["standardized", "piecewise_linear"], (0.1, 0.01)),
        (80, ["standardized", "piecewise_linear"], (0.1, 0.01)),
        (79, ["piecewise_linear"], (0.1, 0.01)),
        (19, ["piecewise_linear"], (0.1,)),
    ],
)
def test_little_time_is_for_few_networks(seconds, networks, temperatures):
    found = plan(5000, max_seconds=seconds)
    assert list(found.networks) == networks
    assert found.temperatures == temperatures
