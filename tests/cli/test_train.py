import json
import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from tests.cli.commands import refusal, sentence
from tests.small_disk import small_disk
from tfbbb.export.manifest import Manifest
from tfbbb.judging.evaluation.judgement import LEARNED_NOTHING
from tfbbb.tables.writing import write_table
from tfbbb.training.record import TrainingRecord

# A training of seconds, whose likelihood need not be found.
QUICK = Path(__file__).with_name("quick.json")
CODE = ("--column", "code=text")
FIT = ("--ignore", "day", *CODE, "--epochs", "2", "--spec", QUICK)


def test_training_starts_from_a_version_and_writes_the_next_one(
    run, table, regression, tmp_path
):
    shutil.copytree(regression[0], tmp_path / "models/effect")
    table.to_pandas().to_csv("frame.csv")
    # The training takes from the version which column of codes is text.
    result = run(
        *("train", "frame.csv", "--target", "effect", "--ignore", "cured"),
        *("--ignore", "day", "--epochs", "2", "--start-from", "1", "--spec", QUICK),
        *("--output", "models/effect"),
    )
    assert result.stdout.endswith("exported to models/effect/2\n")
    figures = "54 rows trained; figures of 6 rows that no member trained on"
    assert figures in result.stdout
    assert "epoch 2" in result.stderr
    rows = [line.split() for line in result.stdout.splitlines()]
    for words in (["dose", "(mg)", "number", "1"], ["ward", "text", "a,", "b"]):
        assert words in [row[: len(words)] for row in rows]
    assert "from 3 columns" in result.stdout
    manifest = Manifest.read("models/effect/2")
    assert [(feature.name, feature.kind) for feature in manifest.features] == [
        ("dose (mg)", "numeric"),
        ("ward", "categorical"),
        ("code", "categorical"),
    ]
    spec = TrainingRecord.read(tmp_path / "models/effect/2").spec
    assert spec.start_from is not None
    assert (spec.start_from.model, spec.start_from.version) == ("effect", 1)
    assert spec.training.epochs == 2
    assert f"{manifest.metrics['rmse']:.4g}" in result.stdout
    assert f"{100 * manifest.metrics['coverage_90']:.1f} %" in result.stdout


def test_options_and_a_file_make_the_job(run, table, regression, monkeypatch):
    jobs = skip_training(monkeypatch, regression[1], regression[0] / "1")
    table.to_pandas().to_csv("frame.csv")
    more = json.loads(QUICK.read_text())
    more["model"]["prior"] = "laplace"
    more["training"]["epochs"] = 9
    Path("more.json").write_text(json.dumps(more))
    result = run(
        *("train", "frame.csv", "--target", "effect", "--ignore", "cured"),
        *("--ignore", "day", "--epochs", "2", *CODE, "--spec", "more.json"),
        *("--quick", "--output", "models/effect"),
    )
    assert result.stdout.endswith("exported to models/effect/1\n")
    assert "Left out 'cured': As asked." in result.stdout
    # The index that pandas wrote.
    assert "no name and counts the rows" in result.stdout
    (job,) = jobs
    assert (job.model.prior.name, job.training.epochs) == ("laplace", 2)
    assert job.training.effort == "quick"
    assert job.columns["code"] == "text"


def test_a_text_target_is_classified_with_the_requested_network(
    run, data, classification, monkeypatch
):
    exported, trained = classification
    jobs = skip_training(monkeypatch, trained, exported / "1")
    result = run(
        *(
            "train",
            data,
            "--target",
            "cured",
            "--ignore",
            "effect",
            "--ignore",
            "day",
        ),
        *(*CODE, "--hidden", "7, 5", "--output", "cured"),
    )
    assert "classification of 'cured' in 2 classes from 3 columns" in result.stdout
    assert Manifest.read("cured/1").classes == ("no", "yes")
    assert jobs[0].model.hidden_units == (7, 5)
    assert f"{100 * trained.metrics['accuracy']:.1f} %" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.csv", "--target", "y"], "nowhere.csv does not exist."),
        (["DATA", "--target", "efect"], "did you mean 'effect'"),
        (["DATA", "--target", "day"], "'day' holds values of type date32"),
        (["DATA", "--target", "effect", "--column", "dos=text"], "column 'dos'"),
        (["empty.csv", "--target", "y"], "(--ignore 'x (mg)' leaves it out.)"),
        (["DATA", "--target", "effect", "--ignore", "Day"], "ignored column 'Day'"),
        (["DATA", "--target", "cured", "--task", "regression"], "has 'yes' in row 1"),
        (["few.csv", "--target", "y"], "The table has 9 rows; at least 10"),
        (["few.csv", "--target", "y", "--ignore", "x"], "No column is left to predict"),
        (["DATA", "--target", "effect", "--start-from", "3"], "/models/name/3; name"),
        (
            ["DATA", "--target", "effect", "--spec", "typo.json"],
            "`trainin` is unknown. Did you mean `training`?",
        ),
        (["DATA", "--target", "effect", "--spec", "list.json"], "hold a JSON object"),
        (
            ["DATA", "--target", "effect", "--quick", "--effort", "default"],
            "--quick is --effort quick: leave one of them out.",
        ),
    ],
)
def test_invalid_input_gets_one_sentence_and_writes_nothing(
    tfbbb, data, tmp_path, arguments, message
):
    rows = list(range(20))
    for name, columns in {
        "few": {"x": rows[:9], "y": rows[:9]},
        "empty": {"x (mg)": [None] * 20, "y": rows},
    }.items():
        write_table(pa.table(columns), tmp_path / f"{name}.csv")
    (tmp_path / "typo.json").write_text('{"trainin": {"epochs": 3}}')
    (tmp_path / "list.json").write_text("[]")
    arguments = [data if argument == "DATA" else argument for argument in arguments]
    result = tfbbb("train", *arguments, "--output", "models/name")
    assert message in sentence(result)
    assert not (tmp_path / "models").exists()


def test_what_was_found_about_the_file_is_printed(tfbbb, tmp_path):
    (tmp_path / "table.csv").write_text("Sales\na;b\n" + "1,5;2\n" * 20)
    # The target is wrong, so nothing trains.
    arguments = ("table.csv", "--target", "c", "--output", "models/name")
    result = tfbbb("train", *arguments)
    assert result.exit_code == 1
    assert result.stdout == (
        "UTF-8 text, separated by semicolons, with decimal commas, with the names of "
        "the columns in line 2.\n"
    )
    assert "no target column 'c'; its columns are 'a', 'b'" in result.stderr
    result = tfbbb("train", *arguments, "--sheet", "x")
    assert "Only .xlsx and .ods files have sheets" in result.stderr


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--hidden", "50,zero", "not a list of positive whole numbers"),
        ("--validation-fraction", "1", "must be less than 1"),
        ("--learning-rate", "nan", "must be more than 0"),
        ("--seed", "2147483648", "must be at most 2147483647"),
        ("--epochs", "0", "greater than or equal to 1"),
        ("--task", "ranking", "not one of"),
    ],
)
def test_arguments_out_of_range_are_refused(tfbbb, data, option, value, message):
    result = tfbbb(
        "train", data, "--target", "effect", "--output", "models/name", option, value
    )
    assert result.exit_code == 2
    # Typer may break the message into lines to fit the terminal.
    words = " ".join(result.stderr.replace("│", " ").split())
    assert f"Invalid value for '{option}'" in words
    assert message in words


def test_an_invalid_output_is_refused_before_training(tfbbb, data, tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "version").mkdir()
    (tmp_path / "version/saved_model.pb").write_text("")
    for output, message in {
        "file": "file is a file",
        "version": "version is a version of a model",
        "models/houses/1": "models/houses/1 names a version, but the command numbers",
    }.items():
        result = tfbbb("train", data, "--target", "effect", "--output", output)
        assert message in refusal(result)


def skip_training(monkeypatch, trained, exported=None, module="tfbbb.training"):
    """Gives a command a table that was trained, and perhaps exported, before.

    Returns the jobs of calls.
    """
    jobs = []

    def train_table(table, job, **options):
        jobs.append(job)
        return trained

    monkeypatch.setattr(f"{module}.train_table", train_table)
    if exported is not None:
        monkeypatch.setattr(
            type(trained),
            "export_to",
            lambda _, path, **options: shutil.copytree(exported, path),
        )
    return jobs


def test_a_model_that_learned_nothing_ends_with_exit_code_3(
    tfbbb, data, regression, monkeypatch
):
    trained = regression[1]
    said = {"sentences": [LEARNED_NOTHING], "warnings": [LEARNED_NOTHING]}
    judgement = {**trained.judgement, **said, "learned": False}
    trained = replace(trained, judgement=judgement)
    skip_training(monkeypatch, trained, regression[0] / "1")
    result = tfbbb(*("train", data, "--target", "effect", *FIT, "--output", "effect"))
    assert result.exit_code == 3
    assert f"Warning: {LEARNED_NOTHING}\n" in result.stdout
    assert result.stdout.endswith("exported to effect/1\n")


def test_training_that_diverges_gets_one_sentence_and_writes_nothing(
    tfbbb, data, tmp_path
):
    result = tfbbb(
        *("train", data, "--target", "effect", "--ignore", "cured", *FIT),
        *("--output", "models/effect", "--learning-rate", "1e6"),
    )
    assert result.exit_code == 1
    assert result.stderr.endswith(
        "Error: Training diverged: its loss or held-out figures are not finite; lower "
        "--learning-rate, or look for numbers that are far too large. "
        "Received: --learning-rate 1e+06\n"
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("size", "trained"), [(4096, 0), (100_000, 1)])
def test_a_full_disk_is_reported_and_nothing_is_left(
    tfbbb, data, regression, tmp_path, monkeypatch, size, trained
):
    jobs = skip_training(monkeypatch, regression[1])
    (tmp_path / "full").mkdir()
    with small_disk(tmp_path / "full", size):
        result = tfbbb("train", data, "--target", "effect", *FIT, "--output", "full/m")
        assert list((tmp_path / "full").iterdir()) == []
    assert "full/m: No space left on device" in refusal(result)
    # Where not even the directory of a version fits, nothing is trained.
    assert len(jobs) == trained
