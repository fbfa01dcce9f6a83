"""One trial, as it trains."""

import numpy as np
import optuna
import pytest

from tests.training.tuning.quick_trials import rows
from tfbbb.tables import TableError
from tfbbb.tables.given_table import as_source
from tfbbb.training import train_table
from tfbbb.training.tuning.trial import run_trial

SPEC = {
    "target": "y",
    "features": ["x", "word"],
    "model": {"hidden_units": [3], "members": 4},
    "training": {"epochs": 20, "kl_schedule": "constant"},
}
TABLE = as_source(rows())


@pytest.fixture(scope="module")
def complete():
    return run_trial(TABLE, SPEC, [], test=TABLE.slice(0, 5))


def trial_of(stages):
    return optuna.create_trial(value=0.0, intermediate_values=stages)


@pytest.mark.slow
def test_a_trial_has_the_figures_of_its_training(complete):
    assert complete["state"] == "complete"
    assert sorted(complete["stages"]) == list(range(1, 21))
    assert len(complete["log_likelihoods"]) == 80
    assert len(complete["test"]) == 5
    trained = train_table(TABLE, SPEC, validate_left_out=True)
    found = np.mean(complete["log_likelihoods"], dtype=np.float64)
    # Two trainings differ in the last bits, which 20 epochs make larger.
    assert found == pytest.approx(trained.metrics["log_likelihood"], abs=0.02)


def test_a_trial_below_the_median_stops_early():
    better = [trial_of(dict.fromkeys(range(1, 21), 10.0))] * 4
    result = run_trial(TABLE, SPEC, better)
    assert result["state"] == "stopped"
    # No trial is judged before a quarter of its epochs.
    assert max(result["stages"]) == 5
    assert "log_likelihoods" not in result


def test_three_trials_stop_no_other(complete):
    better = [trial_of(dict.fromkeys(range(1, 21), 10.0))] * 3
    assert run_trial(TABLE, SPEC, better)["state"] == "complete"


def test_an_error_is_the_result_of_a_trial_but_of_the_default():
    spec = {**SPEC, "target": "z"}
    result = run_trial(TABLE, spec, [])
    assert result["state"] == "failed"
    assert "'z'" in result["error"]
    with pytest.raises(TableError, match="'z'"):
        run_trial(TABLE, spec, [], test=TABLE)


def test_a_trial_that_diverges_says_so():
    training = SPEC["training"] | {"learning_rate": 1e6}
    result = run_trial(TABLE, SPEC | {"training": training}, [])
    assert result["state"] == "diverged"
