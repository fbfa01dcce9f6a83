import sys
from pathlib import Path

import pytest

from tests.cli.commands import sentence
from tests.cli.test_interruption import INTERRUPTED
from tests.cli.test_train import QUICK
from tfbbb.export.manifest import Manifest
from tfbbb.training.record import TrainingRecord

TUNE = ("--target", "effect", "--ignore", "cured", "--ignore", "day", "--epochs", "2")
TUNE = (*TUNE, "--spec", QUICK, "--output")


@pytest.mark.slow
def test_the_best_trial_is_exported_with_what_was_tried(run, data):
    result = run("tune", data, *TUNE, "models/effect", "--trials", "2")
    stdout = result.stdout
    assert stdout.endswith("exported to models/effect/1\n")
    tuning = Manifest.read("models/effect/1").lineage["tuning"]
    assert [trial["number"] for trial in tuning["trials"]] == [0, 1]
    figures = [trial["held_out"] for trial in tuning["trials"]]
    best = tuning["trials"][tuning["best"]]
    assert best["held_out"] == max(figures) >= figures[0]
    error = best["held_out_standard_error"]
    assert f"{best['held_out']:.3f} ± {error:.3f}" in stdout
    assert tuning["test_rows"] == 6
    assert f"{tuning['test']['tuned']:.3f}" in stdout
    assert "log-likelihood of 6 test rows, which no trial has seen" in stdout
    spec = TrainingRecord.read(Path("models/effect/1")).spec
    assert spec.training.epochs == 2
    if "learning_rate" in best["params"]:
        rate = spec.training.learning_rate
        assert rate == best["params"]["learning_rate"]


def test_ctrl_c_prints_the_trials_that_have_ended(
    tfbbb, data, regression, tmp_path, monkeypatch
):
    _, trained = regression
    trainings = iter([trained])

    def interrupted(*_, **__):
        try:
            return next(trainings)
        except StopIteration:
            raise KeyboardInterrupt from None

    monkeypatch.setattr("tfbbb.training.tuning.train_table", interrupted)
    result = tfbbb("tune", data, *TUNE, "models/effect", "--trials", "400")
    assert result.exit_code == INTERRUPTED
    assert "trial 0: " in result.stdout
    assert result.stdout.endswith("Interrupted after 1 of 400 trials.\n")
    assert not (tmp_path / "models").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["DATA", "--target", "efect"], "did you mean 'effect'"),
        (["DATA", "--target", "effect", "--spec", "parent.json"], "`start_from`"),
    ],
)
def test_invalid_input_gets_one_sentence_and_writes_nothing(
    tfbbb, data, tmp_path, arguments, message
):
    parent = '{"start_from": {"model": "effect", "version": 1}}'
    (tmp_path / "parent.json").write_text(parent)
    arguments = [data if argument == "DATA" else argument for argument in arguments]
    result = tfbbb("tune", *arguments, "--ignore", "day", "--output", "models/name")
    assert message in sentence(result)
    assert not (tmp_path / "models").exists()


def test_a_missing_optuna_is_named_before_the_table_is_read(tfbbb, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    result = tfbbb("tune", "nowhere.csv", *TUNE, "models/effect")
    assert result.exit_code == 1
    expected = "Error: This needs optuna: `pip install 'tfbbb[tune]'`.\n"
    assert result.stderr == expected
