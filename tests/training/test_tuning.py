"""The search: which trials there are, and what they and the choice see."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

import tfbbb
from tfbbb.base.diverged_training import TrainingDivergedError
from tfbbb.training import SpecError
from tfbbb.training.tuning import held_out, tune

SPEC = {"target": "y", "features": ["x", "word"]}


def rows(number=80):
    generator = np.random.default_rng(0)
    x = generator.normal(size=number)
    word = generator.choice(["a", "b"], size=number)
    y = x + (word == "b") + 0.1 * generator.normal(size=number)
    return {"x": x, "word": word, "row": np.arange(number) + 0.5, "y": y}


class Trainings:
    """Trainings whose figures follow from the learning rate; 0.01 is the best.

    They keep their tables and specs.
    """

    def __init__(self):
        self.tables, self.specs = [], []

    def __call__(self, table, spec):
        self.tables.append(table)
        self.specs.append(spec)
        rate = spec.training.learning_rate or 0.02
        if rate > 0.03:
            raise TrainingDivergedError(rate)
        height = -abs(np.log(rate / 0.01))
        noise = np.random.default_rng(0).normal(size=table.num_rows)
        return SimpleNamespace(height=height, log_likelihoods=height + 0.1 * noise)


@pytest.fixture
def train(monkeypatch):
    """Has quick trainings from now on; returns them."""

    def start():
        trainings = Trainings()
        monkeypatch.setitem(tune.__globals__, "train_table", trainings)
        return trainings

    def score_rows(trained, test):
        return np.full(len(test), trained.height, np.float32)

    monkeypatch.setitem(tune.__globals__, "_score_rows", score_rows)
    start()
    return start


def test_a_trial_is_the_default_and_the_best_is_no_worse(train):
    tuned = tune(rows(), SPEC, trials=12)
    default, *others = tuned.trials
    assert default is tuned.default
    assert default.user_attrs["fields"] == {}
    assert default.params == {}
    assert len({trial.params["learning_rate"] for trial in others}) == 11
    assert tuned.best.value == max(
        trial.value for trial in tuned.trials if trial.state.name == "COMPLETE"
    )
    assert tuned.best.value > default.value


def test_the_seed_decides_the_trials(train):
    first, second = (tune(rows(), SPEC, trials=4) for _ in range(2))
    assert [t.params for t in first.trials] == [t.params for t in second.trials]


def test_the_gain_has_the_error_of_paired_differences(train):
    tuned = tune(rows(), SPEC, trials=3)
    described = tuned.describe()
    noise = held_out(tuned.default)
    expected = np.std(noise, ddof=1) / np.sqrt(len(noise))
    figures = described["trials"][0]
    assert figures["held_out_standard_error"] == pytest.approx(expected, rel=1e-5)
    # All test rows gain the same.
    gain = tuned.test[0] - tuned.test_of_default[0]
    assert gain > 0.0
    assert described["test"]["gain"] == pytest.approx(gain)
    assert described["test"]["gain_standard_error"] == pytest.approx(0.0, abs=1e-6)
    assert described["test_rows"] == len(tuned.test) == 8


def test_no_trial_sees_a_test_row(train):
    trained = train()
    spec = {**SPEC, "training": {"validation": {"fraction": 0.25}}}
    tuned = tune(rows(), spec, trials=3)
    assert len(tuned.test) == 20
    seen = {row for table in trained.tables for row in table["row"].to_pylist()}
    assert len(seen) == 60
    for each in trained.specs:
        assert each.training.validation.fraction is None


@pytest.mark.parametrize(
    ("validation", "kept"),
    [
        ({"column": "is_test"}, {}),
        ({"time": "row"}, {"time": "row"}),
        ({"group": "patient"}, {"group": "patient"}),
    ],
)
def test_trials_hold_out_rows_as_the_spec_does(validation, kept, train):
    table = rows() | {"is_test": np.arange(80) < 8, "patient": np.arange(80) // 4}
    trained = train()
    tune(table, {**SPEC, "training": {"validation": validation}}, trials=1)
    inner = trained.specs[0].training.validation
    assert inner.model_dump(exclude_defaults=True) == kept
    others = trained.tables[0]["row"].to_numpy()
    test = np.setdiff1d(table["row"], others)
    if "column" in validation:
        assert "is_test" not in trained.tables[0].column_names
        assert sorted(test) == [row + 0.5 for row in range(8)]
    if "time" in validation:
        assert test.min() > others.max()
    if "group" in validation:
        assert not set(test // 4) & set(others // 4)


def test_fields_of_the_spec_are_not_searched(train):
    spec = {
        **SPEC,
        "model": {"hidden_units": [7], "activation": "tanh"},
        "training": {"epochs": 3, "batch_size": 9},
    }
    trained = train()
    tuned = tune(rows(), spec, trials=3)
    for trial in tuned.trials[1:]:
        assert trial.params.keys() == {"learning_rate", "encoding"}
    for each in trained.specs:
        assert each.model.hidden_units == (7,)
        assert each.training.epochs == 3


def test_a_space_of_ones_own_is_searched(train):
    trained = train()
    tuned = tune(
        rows(),
        {**SPEC, "model": {"activation": "tanh"}},
        trials=3,
        space=lambda trial: {"model": {"members": trial.suggest_int("members", 3, 9)}},
    )
    default, *others = tuned.trials
    assert default.params == {}
    for trial, spec in zip(others, trained.specs[1:], strict=False):
        assert spec.model.activation == "tanh"
        assert spec.model.members == trial.params["members"]


def test_a_failed_trial_is_kept_with_its_error(train):
    def space(trial):
        return {"model": {"members": -1}}

    ended = []
    tuned = tune(rows(), SPEC, trials=2, space=space, finished=ended.append)
    assert [trial.number for trial in ended] == [0, 1]
    assert tuned.best is tuned.default
    assert "members" in tuned.trials[1].user_attrs["error"]
    assert "members" in tuned.describe()["trials"][1]["error"]


def test_a_default_that_fails_ends_the_search(monkeypatch, train):
    def fail(*arguments, **options):
        raise SpecError("no")

    monkeypatch.setitem(tune.__globals__, "train_table", fail)
    with pytest.raises(SpecError, match="no"):
        tune(rows(), SPEC, trials=1)


def test_a_default_that_diverged_has_no_gain(train):
    tuned = tune(rows(), SPEC, trials=2)
    diverged = dataclasses.replace(tuned, test_of_default=np.zeros(0, np.float32))
    assert diverged.describe()["test"]["gain"] is None


def test_numbers_below_one_and_parent_versions_are_refused():
    with pytest.raises(ValueError, match="trials` must be a positive integer"):
        tune(rows(), SPEC, trials=0)
    with pytest.raises(SpecError, match="leave out `start_from`"):
        tune(rows(), {**SPEC, "start_from": {"model": "houses", "version": 1}})


def test_tune_is_a_name_of_the_package():
    for _ in range(2):
        assert tfbbb.tune is tfbbb.tuning.tune is tune
