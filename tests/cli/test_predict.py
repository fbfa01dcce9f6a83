import io
import json
import os
import re
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from typer.testing import CliRunner

from tests.cli.commands import refusal, sentence, succeeded
from tests.exported_models import write_regression
from tfbbb.cli import app
from tfbbb.export import load
from tfbbb.tables import read_table
from tfbbb.tables.writing import with_sensible_digits, write_table


def parsed(text):
    return pyarrow.csv.read_csv(io.BytesIO(text.encode()))


def column(table, name):
    return table[name].to_numpy()


@pytest.fixture(scope="module")
def printed(regression, data):
    """What `tfbbb predict` prints for the version and the table, without options."""
    version = regression[0] / "1"
    result = succeeded(CliRunner().invoke(app, ["predict", str(version), str(data)]))
    return result.stdout


def test_a_regression_prints_both_variances_and_an_interval(
    run, data, table, regression
):
    path, trained = regression
    result = run("predict", path, data, "--level", "0.8")
    answers = parsed(result.stdout)
    assert answers.column_names == [
        *("mean", "std", "lower_80", "upper_80", "epistemic", "aleatoric"),
        "familiarity",
    ]
    model = load(path / "1")
    inputs = trained.schema.inputs(table)
    expected = model.predict(inputs)
    bounds = np.stack(model.predictive(inputs).interval(0.8), axis=1)
    for name, values in {
        "mean": expected["mean"],
        "std": np.sqrt(expected["variance"]),
        "epistemic": expected["epistemic"],
        "aleatoric": expected["aleatoric"],
        "lower_80": bounds[:, 0],
        "upper_80": bounds[:, 1],
        "familiarity": expected["familiarity"][:, np.newaxis],
    }.items():
        # Five digits of the standard deviation.
        atol = 1e-4 * np.sqrt(expected["variance"][:, 0].max())
        np.testing.assert_allclose(
            column(answers, name), values[:, 0], rtol=1e-4, atol=atol
        )


def test_a_classification_prints_class_names_and_probabilities(
    run, data, table, classification
):
    path, trained = classification
    result = run("predict", path, data, "--num-samples", "20", "--seed", "3")
    answers = parsed(result.stdout)
    assert answers.column_names == [
        *("class", "probability_no", "probability_yes"),
        *("entropy", "mutual_information", "familiarity"),
    ]
    inputs = trained.schema.inputs(table)
    expected = load(path / "1").predict(inputs, 20, 3)
    yes = column(answers, "probability_yes")
    np.testing.assert_allclose(yes, expected["probabilities"][:, 1], rtol=1e-4)
    assert answers["class"].to_pylist() == np.where(yes > 0.5, "yes", "no").tolist()
    for name in ("entropy", "mutual_information"):
        np.testing.assert_allclose(column(answers, name), expected[name], rtol=1e-4)


def test_sets_and_densities_of_known_targets_are_printed(
    tfbbb, run, data, table, classification, regression
):
    path, trained = classification
    options = ("--prediction-sets", "--level", "0.7", "--log-prob")
    result = run("predict", path, data, *options)
    answers = parsed(result.stdout)
    assert {"prediction_set_70", "log_prob"} < set(answers.column_names)
    model = load(path / "1")
    prediction = model.predictive(trained.schema.inputs(table))
    for text, inside in zip(
        answers["prediction_set_70"].to_pylist(),
        prediction.prediction_set(0.7),
        strict=True,
    ):
        names = [model.manifest.classes[i] for i in np.flatnonzero(inside)]
        assert json.loads(text) == names
    expected = prediction.log_prob(trained.schema.targets(table))
    np.testing.assert_allclose(column(answers, "log_prob"), expected, rtol=1e-4)
    refused = tfbbb("predict", path, data, "--intervals", "50")
    assert "Only numbers have intervals" in refusal(refused)

    path, trained = regression
    result = tfbbb("predict", path, data, "--log-prob")
    prediction = load(path / "1").predictive(trained.schema.inputs(table))
    expected = prediction.log_prob(trained.schema.targets(table))
    found = column(parsed(result.stdout), "log_prob")
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    refused = tfbbb("predict", path, data, "--prediction-sets")
    assert "Only classes have prediction sets" in refusal(refused)


def test_targets_that_are_no_numbers_have_no_density_but_a_warning(
    tfbbb, run, table, regression, tmp_path
):
    path, trained = regression
    name = trained.schema.target.name
    place = table.column_names.index(name)
    some = table.slice(0, 4)
    cells = [str(number) for number in some[name].to_pylist()]
    write_table(some.set_column(place, name, [cells]), tmp_path / "known.csv")
    odd = [cells[0], "unknown", "1e30", ""]
    write_table(some.set_column(place, name, [odd]), tmp_path / "some.csv")
    known = parsed(tfbbb("predict", path, "known.csv", "--log-prob").stdout)
    result = run("predict", path, "some.csv", "--log-prob")
    note = f"1 of 4 rows has a {name!r} that is not a number, such as 'unknown' in row"
    assert f"{note} 2; such a row has no log_prob." in result.stderr
    answers = parsed(result.stdout)
    expected = known["log_prob"].to_pylist()
    assert answers["log_prob"].to_pylist() == [expected[0], None, None, None]
    first, unknown, _, missing = answers["warnings"].to_pylist()
    assert unknown == "The target 'unknown' is not a number; it has no log_prob."
    assert first == missing == ""
    alone = some.slice(0, 1).set_column(place, name, [["unknown"]])
    write_table(alone, tmp_path / "alone.csv")
    result = tfbbb("predict", path, "alone.csv", "--log-prob")
    assert parsed(result.stdout)["log_prob"].to_pylist() == [None]
    result = tfbbb("evaluate", path, "alone.csv")
    assert "'unknown' in row 1; no row has a target to use." in refusal(result)
    result = run("evaluate", path, "some.csv")
    assert f"{note} 2; such rows are left out." in result.stderr
    assert f"1 of 4 rows have no {name!r} and are left out." in result.stderr
    assert f"{name!r} of 1 row:" in result.stdout


def test_output_files_hold_the_rows_of_stdout(run, data, regression, printed, tmp_path):
    path, _ = regression
    for name in ("answers.csv", "answers.parquet"):
        result = run("predict", path, data, "--output", name)
        assert result.stdout == ""
        assert f"60 rows written to {name}" in result.stderr
        shown = with_sensible_digits(read_table(tmp_path / name))
        for answer in parsed(printed).column_names:
            np.testing.assert_allclose(
                column(shown, answer), column(parsed(printed), answer), rtol=1e-6
            )
    assert (tmp_path / "answers.csv").read_text() == printed


def test_identifiers_and_kept_columns_stand_before_several_intervals(
    run, table, regression, tmp_path
):
    names = [f"p{row}" for row in range(table.num_rows)]
    write_table(table.append_column("patient", pa.array(names)), tmp_path / "new.csv")
    ends = ["lower_50", "upper_50", "lower_90", "upper_90"]
    options = ("--intervals", "50,90", "--output")
    run("predict", regression[0], "new.csv", *options, "few.parquet")
    few = read_table(tmp_path / "few.parquet")
    assert few.column_names[0] == "patient"
    assert few["patient"].to_pylist() == names
    assert few.column_names[3:7] == ends
    widths = [column(few, f"upper_{p}") - column(few, f"lower_{p}") for p in (50, 90)]
    assert np.all(widths[0] < widths[1])
    run("predict", regression[0], "new.csv", "--keep", *options, "all.jsonl")
    first = json.loads((tmp_path / "all.jsonl").read_text().splitlines()[0])
    assert list(first) == [*table.column_names, "patient", *few.column_names[1:]]
    assert first["mean"] == pytest.approx(column(few, "mean")[0], rel=1e-3)


def test_a_model_without_familiarity_is_told(run, tmp_path):
    write_regression(tmp_path / "older")
    (tmp_path / "rows.csv").write_text("age,bmi,bp\n1,2,3\n")
    result = run("predict", "older", "rows.csv")
    assert "familiarity" not in parsed(result.stdout).column_names
    assert "no reference of its training rows" in result.stderr


def test_predictions_do_not_depend_on_the_block_size(
    tfbbb, data, regression, printed, monkeypatch
):
    monkeypatch.setattr("tfbbb.cli.model_answers._ROWS_AT_ONCE", 7)
    in_blocks = tfbbb("predict", regression[0], data).stdout
    deviations = column(parsed(printed), "std")
    for name in ("mean", "lower_90", "upper_90"):
        differences = column(parsed(in_blocks), name) - column(parsed(printed), name)
        # At most one step of the last digit.
        assert np.all(np.abs(differences) <= 1.01e-4 * deviations)


def test_a_terminal_without_keras_gets_only_the_first_rows(regression, data):
    predict = f"""
import sys
sys.modules["keras"] = sys.modules["tensorflow_probability"] = None
from tfbbb.__main__ import main
sys.argv = ["tfbbb", "predict", {str(regression[0])!r}, {str(data)!r}]
main()
"""
    # A pseudo-terminal makes the program's stdout a terminal.
    program = f"""
import os, pty, sys
sys.exit(os.waitstatus_to_exitcode(pty.spawn([{sys.executable!r}, "-c", {predict!r}])))
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "COLUMNS": "200"},
    )
    # Nothing else, of TensorFlow say, is written to stdout or stderr.
    shown = re.sub(r"\x1b\[[\d;]*m", "", done.stdout)
    assert shown.startswith("┏")
    for heading in ("row", "mean", "lower 90", "familiarity"):
        assert f" {heading} " in shown
    assert "│ 20 " in shown
    assert "│ 21 " not in shown
    assert "and 40 rows more; --output writes all rows" in shown


def test_standard_input_has_the_answers_of_the_file(
    tfbbb, run, data, regression, printed
):
    answer = run("predict", regression[0], "-", input=data.read_bytes())
    assert answer.stdout == printed
    command = ("predict", regression[0], data, "--output")
    assert tfbbb(*command, "-").stdout == printed
    assert tfbbb(*command, "a.tsv.gz").exit_code == 0
    assert read_table("a.tsv.gz").equals(parsed(printed))


def test_a_file_with_a_header_only_has_an_empty_answer(
    tfbbb, table, regression, classification, tmp_path
):
    header = ",".join(f'"{name}"' for name in table.column_names)
    (tmp_path / "empty.csv").write_text(f"{header}\n")
    # No column of texts tells so many rows apart.
    write_table(table.slice(0, 9), tmp_path / "some.csv")
    for model in (regression[0], classification[0]):
        empty, some = (
            tfbbb("predict", model, name) for name in ("empty.csv", "some.csv")
        )
        assert empty.exit_code == 0, empty.output
        names = some.stdout.splitlines()[0].removesuffix(",warnings")
        assert empty.stdout.splitlines() == [names]
    (tmp_path / "other.csv").write_text("a,b\n")
    assert "no feature column" in tfbbb("predict", regression[0], "other.csv").output


def changed(table, name, values):
    index = table.column_names.index(name)
    return table.set_column(index, name, pa.array(values))


def test_missing_and_unseen_values_are_predicted_with_a_warning(
    run, table, regression, tmp_path
):
    asked = changed(table, "ward", ["a", "b", None] * 20)
    asked = changed(asked, "dose (mg)", ["5", "5", "5", "x", "99", "5"] * 10)
    write_table(asked, tmp_path / "asked.csv")
    result = run("predict", regression[0], "asked.csv")
    answers = pa.csv.read_csv(io.BytesIO(result.stdout_bytes))
    warnings = answers["warnings"].to_pylist()
    doubtful = f"{sum(map(bool, warnings))} of {len(warnings)} rows"
    assert f"what is doubtful about {doubtful}." in result.stderr
    assert warnings[0] == warnings[1] == ""
    fault = "'x', which is not a number and counts as missing"
    assert warnings[3] == f"Column 'dose (mg)' has {fault}."
    assert warnings[2] == (
        "Column 'ward' has no value; the mean of the categories is assumed."
    )
    assert warnings[4].startswith("Column 'dose (mg)' is 99, outside the range of tr")
    assert np.isfinite(answers["mean"].to_numpy()).all()


@pytest.mark.parametrize(
    ("model", "data", "options", "message"),
    [
        ("nowhere", "DATA", [], "nowhere is not a model: there is no such directory."),
        (".", "DATA", [], "neither a saved_model.pb nor numbered versions."),
        ("foreign", "DATA", [], "no model written by `export_predictive`"),
        ("MODEL", "nowhere.csv", [], "nowhere.csv does not exist."),
        ("MODEL", "few.csv", [], "no feature columns 'ward' and 'code'"),
        (
            "MODEL",
            "DATA",
            ["--output", "a.doc"],
            "a.doc has an unknown format: its name must end in .csv",
        ),
        ("MODEL", "DATA", ["--output", "nowhere/a.csv"], "no such directory"),
    ],
)
def test_a_missing_model_table_or_directory_is_named(
    tfbbb, regression, tmp_path, request, model, data, options, message
):
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign/saved_model.pb").write_text("")
    (tmp_path / "few.csv").write_text("dose (mg)\n1\n")
    model = regression[0] if model == "MODEL" else model
    data = request.getfixturevalue("data") if data == "DATA" else data
    result = tfbbb("predict", model, data, *options)
    assert message in sentence(result)


def test_a_level_must_be_a_probability(tfbbb, data, regression):
    result = tfbbb("predict", regression[0], data, "--level", "90%")
    assert result.exit_code == 2
    assert "90% is not between 0 and 1. Write 0.9." in result.stderr
