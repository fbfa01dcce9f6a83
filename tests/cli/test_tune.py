import re
import sys

import pyarrow as pa
import pytest

from tests.cli.test_interruption import interrupt, running
from tests.cli.test_train import QUICK
from tfbbb.export.manifest import Manifest
from tfbbb.tables.writing import write_table
from tfbbb.training.record import TrainingRecord

TUNE = ("--target", "effect", "--ignore", "cured", "--ignore", "day", "--epochs", "2")
TUNE = (*TUNE, "--spec", QUICK, "--output", "models/effect")


@pytest.fixture(scope="module")
def tuned(tmp_path_factory, data):
    """A directory with a study of two trials, and what the command printed."""
    directory = tmp_path_factory.mktemp("tuned")
    options = ("--trials", "2", "--storage", "sqlite:///study.db")
    with running("tune", data, *TUNE, *options, directory=directory) as process:
        stdout, stderr = process.communicate()
    assert process.returncode == 0, stderr
    return directory, stdout, stderr


@pytest.mark.slow
def test_the_best_trial_is_exported_with_what_was_tried(tuned):
    directory, stdout, stderr = tuned
    assert stdout.endswith("exported to models/effect/1\n")
    assert "epoch 2/2" in stderr
    tuning = Manifest.read(directory / "models/effect/1").lineage["tuning"]
    assert [trial["number"] for trial in tuning["trials"]] == [0, 1]
    figures = [trial["held_out"] for trial in tuning["trials"]]
    best = tuning["trials"][tuning["best"]]
    assert best["held_out"] == max(figures) >= figures[0]
    error = best["held_out_standard_error"]
    assert f"{best['held_out']:.3f} ± {error:.3f}" in stdout
    assert tuning["test_rows"] == 6
    assert f"{tuning['test']['tuned']:.3f}" in stdout
    assert "log-likelihood of 6 test rows, which no trial has seen" in stdout
    spec = TrainingRecord.read(directory / "models/effect/1").spec
    assert spec.training.epochs == 2
    if tuning["best"]:
        units = best["params"]["units"]
        assert spec.model.hidden_units == (units,) * best["params"]["layers"]
        assert best["fields"]["model"]["hidden_units"] == list(spec.model.hidden_units)


def trial_lines(stdout):
    return sorted(line for line in stdout if re.match(r"trial \d+:", line))


def test_the_same_command_goes_on_until_ctrl_c(tuned, data):
    directory, first, _ = tuned
    options = ("--trials", "400", "--storage", "sqlite:///study.db")
    with running("tune", data, *TUNE, *options, directory=directory) as process:
        known = []
        for line in process.stdout:
            known.append(line)
            if line.startswith("trial 1:"):
                break
        stdout, stderr = interrupt(process)
    # The trials of the study, which are not trained again.
    assert trial_lines(known) == trial_lines(first.splitlines(keepends=True))
    assert "trials, by the log-likelihood of rows left out" in stdout
    assert "of 400 trials. The same command goes on.\n" in stdout
    assert "Traceback" not in stderr
    assert not (directory / "models/effect/3").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.csv", "--target", "y"], "nowhere.csv does not exist."),
        (["DATA", "--target", "efect"], "did you mean 'effect'"),
        (["DATA", "--target", "effect", "--ignore", "wad"], "did you mean 'ward'"),
        (["DATA", "--target", "effect", "--spec", "parent.json"], "`start_from`"),
        (
            ["DATA", "--target", "effect", "--storage", "study.db"],
            "cannot be opened: give the URL of a database",
        ),
        (["few.csv", "--target", "y"], "rows; at least 10"),
    ],
)
def test_invalid_input_gets_one_sentence_and_writes_nothing(
    tfbbb, data, tmp_path, arguments, message
):
    write_table(pa.table({"x": range(9), "y": range(9)}), tmp_path / "few.csv")
    parent = '{"start_from": {"model": "effect", "version": 1}}'
    (tmp_path / "parent.json").write_text(parent)
    arguments = [data if argument == "DATA" else argument for argument in arguments]
    # The dates are no feature.
    leave = [] if "few.csv" in arguments else ["--ignore", "day"]
    result = tfbbb("tune", *arguments, *leave, "--output", "models/name")
    assert result.exit_code == 1, result.output
    assert message in result.stderr
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "models").exists()


def test_no_trials_are_refused(tfbbb, data):
    result = tfbbb("tune", data, *TUNE, "--trials", "0")
    assert result.exit_code == 2
    # Typer may break the message into lines to fit the terminal.
    message = " ".join(result.stderr.replace("│", " ").split())
    assert "greater than or equal to 1" in message


def test_a_missing_optuna_is_named_before_the_table_is_read(tfbbb, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    result = tfbbb("tune", "nowhere.csv", *TUNE)
    assert result.exit_code == 1
    expected = "Error: This needs optuna: `pip install 'tfbbb[tune]'`.\n"
    assert result.stderr == expected
