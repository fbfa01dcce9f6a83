"""The search: which trials there are, and that interruptions change none of them."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import optuna
import pytest

import tfbbb
from tests.training.tuning.quick_trials import quick_trial, rows
from tfbbb.training import SpecError
from tfbbb.training.tuning import StudyError, tune

SPEC = {"target": "y", "features": ["x", "word"]}


class Recorded:
    """Quick trials that keep their arguments, and stop like Ctrl-C after some."""

    def __init__(self, most=10**6):
        self.arguments, self._most = [], most

    def __call__(self, **arguments):
        if len(self.arguments) == self._most:
            raise KeyboardInterrupt
        self.arguments.append(arguments)
        return quick_trial(**arguments)


def quicken(patch):
    """Trials and the final training take no time."""
    names = tune.__globals__
    final = SimpleNamespace(metrics={})
    patch.setitem(names, "run_trial", quick_trial)
    patch.setitem(names, "train_table", lambda *_, **options: final)
    patch.setitem(
        names, "score_rows", lambda trained, test: np.zeros(len(test), np.float32)
    )


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    quicken(monkeypatch)


@pytest.fixture
def record(monkeypatch):
    """Records the trials from now on."""

    def start(*arguments):
        recorded = Recorded(*arguments)
        monkeypatch.setitem(tune.__globals__, "run_trial", recorded)
        return recorded

    return start


def same(trials):
    """The trials without their times, as values that can be compared."""
    return [
        (
            trial.number,
            trial.state,
            dict(trial.params),
            dict(trial.stages),
            trial.log_likelihoods.tolist(),
        )
        for trial in trials
    ]


@pytest.fixture(scope="module")
def twelve():
    """Twelve trials of one uninterrupted search."""
    with pytest.MonkeyPatch.context() as patch:
        quicken(patch)
        return tune(rows(), SPEC, trials=12)


def test_trial_0_is_the_default_and_the_best_is_no_worse(twelve):
    default, *others = twelve.trials
    assert (default.number, default.fields) == (0, {})
    assert default.params["learning_rate"] == 0.02
    assert default.params["units"] == 64
    assert len({trial.params["learning_rate"] for trial in others}) == 11
    assert {trial.state for trial in others} == {"complete", "diverged"}
    best = max(trial.log_likelihood for trial in twelve.trials)
    assert twelve.best.log_likelihood == best >= default.log_likelihood
    assert twelve.best.number > 0


def test_the_gain_has_the_error_of_paired_differences(twelve):
    gain, error = twelve.best.gain(twelve.trials[0])
    # The noise of the rows is the same in both, so their difference has none.
    assert gain == pytest.approx(
        twelve.best.log_likelihood - twelve.trials[0].log_likelihood, abs=1e-6
    )
    assert error < 1e-6
    n = len(twelve.best.log_likelihoods)
    expected = np.std(twelve.best.log_likelihoods, ddof=1) / np.sqrt(n)
    assert twelve.best.standard_error == pytest.approx(expected, rel=1e-5)


def test_processes_try_what_this_process_tries(twelve):
    tuned = tune(rows(), SPEC, trials=12, processes=2)
    assert same(tuned.trials) == same(twelve.trials)


@pytest.mark.parametrize("interrupted_after", [2, 9])
def test_an_interrupted_search_goes_on(interrupted_after, twelve, tmp_path, record):
    study = tmp_path / "study.db"
    record(interrupted_after)
    with pytest.raises(KeyboardInterrupt):
        tune(rows(), SPEC, trials=12, study=study)
    rest = record()
    tuned = tune(rows(), SPEC, trials=12, study=study)
    assert len(rest.arguments) == 12 - interrupted_after
    assert same(tuned.trials) == same(twelve.trials)


def test_more_trials_add_to_a_study(twelve, tmp_path, record):
    study = tmp_path / "study.db"
    finished = []
    tune(rows(), SPEC, trials=5, study=study)
    added = record()
    tuned = tune(
        *(rows(), SPEC),
        trials=12,
        study=study,
        finished=lambda trial: finished.append(trial.number),
    )
    assert len(added.arguments) == 7
    assert finished == list(range(12))
    assert same(tuned.trials) == same(twelve.trials)
    shown = optuna.load_study(study_name="tfbbb", storage=f"sqlite:///{study}")
    assert len(shown.trials) == 12
    assert shown.best_value == pytest.approx(twelve.best.log_likelihood)


def test_no_trial_sees_a_test_row(record):
    recorded = record()
    spec = {**SPEC, "training": {"validation": {"fraction": 0.25}}}
    tuned = tune(rows(), spec, trials=3)
    default, *others = recorded.arguments
    tested = set(default["test"]["row"].to_pylist())
    assert len(tested) == len(tuned.test) == 20
    for arguments in recorded.arguments:
        assert not tested & set(arguments["table"]["row"].to_pylist())
        assert "validation" not in arguments["spec"].get("training", {}) or not any(
            arguments["spec"]["training"]["validation"].values()
        )
    assert [arguments["test"] for arguments in others] == [None, None]


@pytest.mark.parametrize(
    ("validation", "kept"),
    [
        ({"column": "is_test"}, {}),
        ({"time": "row"}, {"time": "row"}),
        ({"group": "patient"}, {"group": "patient"}),
    ],
)
def test_trials_hold_out_rows_as_the_spec_does(validation, kept, record):
    table = rows() | {"is_test": np.arange(80) < 8, "patient": np.arange(80) // 4}
    recorded = record()
    spec = {**SPEC, "training": {"validation": validation}}
    tune(table, spec, trials=1)
    (arguments,) = recorded.arguments
    assert arguments["spec"]["training"]["validation"] == kept
    test = arguments["test"]["row"].to_numpy()
    others = arguments["table"]["row"].to_numpy()
    if "column" in validation:
        assert "is_test" not in arguments["table"].column_names
        assert sorted(test) == [row + 0.5 for row in range(8)]
    if "time" in validation:
        assert test.min() > others.max()
    if "group" in validation:
        assert not set(test // 4) & set(others // 4)


def test_fields_of_the_spec_are_not_searched(record):
    spec = {
        **SPEC,
        "model": {"hidden_units": [7], "activation": "tanh"},
        "training": {"epochs": 3, "batch_size": 9},
    }
    recorded = record()
    tuned = tune(rows(), spec, trials=3)
    for trial in tuned.trials:
        assert trial.params.keys() == {"learning_rate", "numeric_encoding"}
    for arguments in recorded.arguments:
        assert arguments["spec"]["model"]["hidden_units"] == [7]
        assert arguments["spec"]["training"]["epochs"] == 3


def test_a_space_of_ones_own_is_searched(record):
    recorded = record()
    tuned = tune(
        rows(),
        {**SPEC, "model": {"activation": "tanh"}},
        trials=3,
        space=lambda trial: {"model": {"members": trial.suggest_int("members", 3, 9)}},
    )
    assert tuned.trials[0].params == {}
    for trial, arguments in zip(tuned.trials[1:], recorded.arguments[1:], strict=True):
        assert trial.params.keys() == {"members"}
        assert arguments["spec"]["model"] == {"activation": "tanh", **trial.params}


def test_a_study_of_something_else_is_refused(tmp_path):
    study = tmp_path / "study.db"
    tune(rows(), SPEC, trials=1, study=study)
    with pytest.raises(StudyError, match="another table: name another file"):
        tune(rows(81), SPEC, trials=1, study=study)
    other = {**SPEC, "model": {"activation": "tanh"}}
    with pytest.raises(StudyError, match="another spec: name another file"):
        tune(rows(), other, trials=1, study=study)
    with pytest.raises(StudyError, match="another round size"):
        tune(rows(), SPEC, trials=1, study=study, round_size=2)


def test_a_study_without_a_trial_takes_any_table(tmp_path, record):
    study = tmp_path / "study.db"
    record(0)
    with pytest.raises(KeyboardInterrupt):
        tune(rows(), SPEC, trials=1, study=study)
    record()
    assert len(tune(rows(81), SPEC, trials=1, study=study).trials) == 1


def test_a_file_that_is_no_study_is_refused_and_kept(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("x,y\n" * 1000)
    with pytest.raises(StudyError, match=r"cannot be opened.*table\.csv'"):
        tune(rows(), SPEC, trials=1, study=path)
    assert path.read_text() == "x,y\n" * 1000
    with pytest.raises(StudyError, match="cannot be opened"):
        tune(rows(), SPEC, trials=1, study=tmp_path / "nowhere" / "study.db")


def test_a_failed_trial_is_kept_with_its_error(tmp_path, monkeypatch, record):
    def fail(test=None, **arguments):
        if test is None:
            return {"state": "failed", "error": "MemoryError: no", "seconds": 1.0}
        return quick_trial(test=test, **arguments)

    study = tmp_path / "study.db"
    monkeypatch.setitem(tune.__globals__, "run_trial", fail)
    tuned = tune(rows(), SPEC, trials=2, study=study)
    again = record()
    assert same(tune(rows(), SPEC, trials=2, study=study).trials) == same(tuned.trials)
    assert again.arguments == []
    assert tuned.best.number == 0
    assert [trial.error for trial in tuned.trials] == ["", "MemoryError: no"]
    assert tuned.describe()["trials"][1]["error"] == "MemoryError: no"


def test_a_default_that_fails_ends_the_search(monkeypatch):
    def fail(**arguments):
        raise SpecError("no")

    monkeypatch.setitem(tune.__globals__, "run_trial", fail)
    with pytest.raises(SpecError, match="no"):
        tune(rows(), SPEC, trials=1)


def test_a_progress_bar_counts_trials(capfd):
    tune(rows(), SPEC, trials=2, progress="trials")
    assert "trials 2/2" in capfd.readouterr().err


def test_a_default_that_diverged_has_no_gain(twelve):
    diverged = dataclasses.replace(
        twelve.trials[0], state="diverged", test=np.zeros(0, np.float32)
    )
    tuned = dataclasses.replace(twelve, trials=[diverged, *twelve.trials[1:]])
    assert np.isnan(tuned.test_gain).all()
    assert tuned.describe()["test"]["gain"] is None


@pytest.mark.parametrize("name", ["trials", "round_size", "processes"])
def test_numbers_below_one_are_refused(name):
    with pytest.raises(ValueError, match=rf"{name}` must be a positive integer"):
        tune(rows(), SPEC, **{name: 0})


def test_a_parent_version_is_refused():
    spec = {**SPEC, "start_from": {"model": "houses", "version": 1}}
    with pytest.raises(SpecError, match="leave out `start_from`"):
        tune(rows(), spec)


def test_tune_is_a_name_of_the_package():
    for _ in range(2):
        assert tfbbb.tune is tfbbb.tuning.tune is tune
