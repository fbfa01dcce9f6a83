"""`tfbbb evaluate` and `explain` of the models of this folder."""

import json
import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.cli.commands import refusal
from tfbbb.cli.figures import judgement_rows
from tfbbb.export import load
from tfbbb.tables.writing import write_table


def test_a_model_is_judged_beside_the_baselines_of_its_training(
    run, data, table, regression
):
    path, trained = regression
    result = run("evaluate", path, data, "--json")
    judged = json.loads(result.stdout)
    inputs, targets = trained.schema.inputs(table), trained.schema.targets(table)
    prediction = load(path / "1").predictive(inputs)
    figures = judged["figures"]
    assert list(figures) == ["model", "mean", "linear model"]
    errors = prediction.mean - targets
    assert figures["model"]["rmse"] == pytest.approx(np.sqrt(np.mean(errors**2)))
    assert figures["model"]["log_likelihood"] == pytest.approx(
        np.mean(prediction.log_prob(targets)), rel=1e-5
    )
    training = np.setdiff1d(np.arange(len(targets)), trained.held_out_rows)
    mean = targets[training].mean()
    assert figures["mean"]["rmse"] == pytest.approx(
        np.sqrt(np.mean((targets - mean) ** 2)), rel=1e-5
    )
    linear = trained.baselines.predict(inputs, targets)["linear model"]
    assert figures["linear model"]["rmse"] == pytest.approx(
        np.sqrt(linear.errors(targets).mean())
    )


def test_a_table_without_targets_cannot_judge(tfbbb, table, regression, tmp_path):
    write_table(table.drop_columns("effect"), tmp_path / "new.csv")
    result = tfbbb("evaluate", regression[0], "new.csv")
    assert "no target column 'effect'" in refusal(result)


def test_rows_without_a_target_are_left_out_and_counted(
    tfbbb, data, table, regression, tmp_path
):
    effects = table["effect"].to_pylist()
    place = table.column_names.index("effect")
    shorter = table.set_column(place, "effect", [[None, None, *effects[2:]]])
    write_table(shorter, tmp_path / "some.csv")
    write_table(table.slice(2), tmp_path / "rest.csv")
    some, rest = (
        tfbbb("evaluate", regression[0], name, "--json")
        for name in ("some.csv", "rest.csv")
    )
    assert some.exit_code == 0, some.output
    assert f"2 of {table.num_rows} rows have no 'effect'" in some.stderr
    assert json.loads(some.stdout) == json.loads(rest.stdout)
    empty = pa.nulls(table.num_rows, pa.float64())
    write_table(table.set_column(place, "effect", empty), tmp_path / "none.csv")
    refused = tfbbb("evaluate", regression[0], "none.csv")
    assert "No row of the table has a target: column 'effect'" in refusal(refused)
    options = ("--num-samples", "20", "--json")
    one = json.loads(tfbbb("explain", regression[0], "some.csv", *options).stdout)
    # Rows of the file, which begins with two that are left out.
    assert one["uncertainty"]["row"][:2] == [3, 4]
    found, whole = one["least_like_training"]["rows"][0], one["uncertainty"]["row"]
    place = whole.index(found["row"])
    assert found["epistemic"] == one["uncertainty"]["epistemic"][place]
    explained = tfbbb("explain", regression[0], "none.csv", "--num-samples", "20")
    assert "no importance can be measured" in explained.stdout, explained.output


def test_a_column_that_cannot_be_read_is_said_and_ends_with_3(
    tfbbb, table, regression, tmp_path
):
    place = table.column_names.index("dose (mg)")
    spoiled = [f"{dose} of it" for dose in table["dose (mg)"].to_pylist()]
    write_table(table.set_column(place, "dose (mg)", [spoiled]), tmp_path / "odd.csv")
    said = "Column 'dose (mg)' is not as in training in 60 of 60 rows: 60 cannot be "
    few = ("--num-samples", "10")
    for command, options in (
        ("evaluate", few),
        ("explain", ("--rows", "5", *few)),
        ("predict", ("--output", "answer.csv")),
    ):
        result = tfbbb(command, regression[0], "odd.csv", *options)
        assert result.exit_code == 3, result.output
        assert said in result.output
        assert "can use no cell of 'dose (mg)'" in result.stderr
    assert (tmp_path / "answer.csv").exists()
    judged = json.loads(tfbbb("evaluate", regression[0], "odd.csv", "--json").stdout)
    assert judged["warnings"][0].startswith(said)


def test_targets_far_from_those_of_training_are_said(run, table, regression, tmp_path):
    place = table.column_names.index("effect")
    hundredfold = pc.multiply(table["effect"], 100.0)
    write_table(table.set_column(place, "effect", hundredfold), tmp_path / "pct.csv")
    result = run("evaluate", regression[0], "pct.csv", "--num-samples", "10")
    warning = r"Warning: The target 'effect' is about \d{3} in these rows, and 5\.\d+ ±"
    assert re.search(warning, result.stdout)


def test_an_explanation_names_the_column_that_matters(run, data, table, regression):
    result = run("explain", regression[0], data, "--json", "--num-samples", "20")
    found = json.loads(result.stdout)
    # The effect is the dose, and 1 more in one of two wards.
    assert found["importance"][0]["name"] == "dose (mg)"
    assert {entry["name"] for entry in found["effects"]} == {
        *("dose (mg)", "ward", "code")
    }
    dose = next(e for e in found["effects"] if e["name"] == "dose (mg)")
    assert dose["mean"][-1] - dose["mean"][0] > 1.0
    assert len(found["uncertainty"]["row"]) == table.num_rows
    assert found["least_like_training"]["by"] == "familiarity"


def test_without_targets_effects_and_rows_are_explained(
    run, table, classification, tmp_path
):
    write_table(table.drop_columns("cured"), tmp_path / "new.csv")
    result = run("explain", classification[0], "new.csv", "--rows", "20")
    assert "20 of 60 rows" in result.stdout
    assert "no importance can be measured" in result.stdout
    assert "of yes" in result.stdout
    assert "rows least like training, by familiarity" in result.stdout


def test_huge_figures_have_few_digits():
    figures = {"r_squared": -1978088715843455942656.0, "log_likelihood": -17731.25}
    rows = judgement_rows({"figures": {"model": figures}})
    assert rows[1] == ["model", "-1.978e+21", "-17731"]
