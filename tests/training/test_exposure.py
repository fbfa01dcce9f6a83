"""Counts per a column of a table, trained, exported and asked."""

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from service.shared.settings import Settings
from tests.cli.commands import succeeded
from tests.cli.test_train import skip_training
from tests.service.serving import ask, serving
from tests.trained import exported_table
from tfbbb.cli import app
from tfbbb.export.reader import load
from tfbbb.judging.evaluation import Baselines
from tfbbb.tables import TableError
from tfbbb.tables.writing import write_table
from tfbbb.training import JobSpec, train_table
from tfbbb.training.spec import SpecError
from tfbbb.training.target_likelihood import choose_likelihood

ROWS = 300
QUICK = {
    "target": "claims",
    "exposure": "days",
    "model": {"members": 2, "hidden_units": [8]},
    "training": {"kl_schedule": "constant", "epochs": 60},
}


def make_table(dispersion=0.0, rows=ROWS, seed=0):
    """Counts whose rate per day triples from town to town; days differ 200-fold."""
    generator = np.random.default_rng(seed)
    town = generator.choice(["a", "b"], size=rows)
    age = generator.uniform(20.0, 80.0, size=rows)
    days = np.round(generator.uniform(5.0, 1000.0, size=rows), 1)
    rate = 0.01 * np.where(town == "b", 3.0, 1.0)
    if dispersion:
        rate = rate * generator.gamma(1.0 / dispersion, dispersion, size=rows)
    claims = generator.poisson(rate * days)
    return pa.table({"town": town, "age": age, "days": days, "claims": claims})


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    root = tmp_path_factory.mktemp("models") / "claims"
    _, trained = exported_table(make_table(), QUICK, root)
    return root, trained


def test_the_rate_is_learned_and_the_exposure_is_no_feature(exported):
    root, trained = exported
    assert [column.name for column in trained.schema.predictors] == ["town", "age"]
    assert trained.spec.model.likelihood.name == "poisson"
    model = load(root / "1")
    days = np.array([10.0, 10.0, 1000.0, 2000.0])
    towns = np.array(["a", "b", "b", "b"], dtype=object)
    mean = model.predict({"town": towns, "age": np.full(4, 50.0), "days": days})["mean"]
    # 100 rows of each town have some 500 events or more: 5 per cent, three times.
    np.testing.assert_allclose(mean[:, 0], [0.1, 0.3, 30.0, 60.0], rtol=0.15)
    assert mean[3] == pytest.approx(2.0 * mean[2], rel=1e-6)
    assert trained.judgement["learned"]
    # Its measure is a rate times an exposure, too: a constant that knew only the mean
    # count would be worse than this.
    assert trained.judgement["figures"]["mean"]["r_squared"] > 0.3


def test_the_command_line_trains_and_predicts_counts_per_a_column(
    exported, tmp_path, monkeypatch
):
    root, trained = exported
    jobs = skip_training(monkeypatch, trained, root / "1")
    table, rows = make_table(rows=20), tmp_path / "rows.csv"
    write_table(table, rows)
    run = CliRunner().invoke
    options = ("--target", "claims", "--exposure", "days")
    result = succeeded(
        run(app, ["train", f"{rows}", *options, "--output", f"{tmp_path}/model"])
    )
    assert jobs[0].exposure == "days"
    command = ["predict", f"{tmp_path}/model/1", f"{rows}"]
    write_table(table.drop(["claims"]), rows)
    result = succeeded(run(app, command))
    write_table(table.drop(["claims", "days"]), rows)
    result = run(app, command)
    assert result.exit_code != 0
    assert "'days'" in result.output


def test_a_request_needs_a_positive_exposure(exported):
    row = {"town": "b", "age": 40.0, "days": 100.0}
    with serving(Settings(models=exported[0].parent)) as client:
        once, twice = (
            ask(client, "claims", {"instances": [{**row, "days": days}]}).json()
            for days in (100.0, 200.0)
        )
        means = [answer["predictions"][0]["mean"][0] for answer in (once, twice)]
        assert means[1] == pytest.approx(2.0 * means[0], rel=1e-6)
        for days, said in (
            (0.0, "needs a positive number"),
            (-1.0, "needs a positive number"),
            (None, "has no value"),
        ):
            answer = ask(client, "claims", {"instances": [{**row, "days": days}]})
            assert answer.status_code == 400
            assert f"'days' {said}" in answer.json()["error"]
        (described,) = (
            feature
            for feature in client.get("v1/models/claims").json()["description"][
                "features"
            ]
            if feature["name"] == "days"
        )
        assert described["role"] == "exposure"


@pytest.mark.parametrize(
    ("value", "said"),
    [(0.0, "is 0 in row 8"), (-3.0, "is -3 in row 8"), (None, "no value in row 8")],
)
def test_a_wrong_exposure_is_named_before_training(value, said):
    table = make_table()
    days = table["days"].to_pylist()
    days[7] = value
    table = table.set_column(2, "days", pa.array(days))
    with pytest.raises(TableError, match=said):
        train_table(table, QUICK)


def test_a_column_whose_least_value_is_not_positive_is_refused_at_submission():
    columns = [{"name": name, "type": "number"} for name in ("age", "days", "claims")]
    columns[1]["min"] = 0.0
    with pytest.raises(SpecError, match="has the value 0"):
        JobSpec.model_validate(QUICK).check_columns(columns)


@pytest.mark.parametrize(
    ("dispersion", "expected"), [(0.0, "poisson"), (1.0, "negative_binomial")]
)
def test_rows_left_out_choose_poisson_or_negative_binomial(dispersion, expected):
    table = make_table(dispersion, rows=1000).to_pandas()
    inputs = {"town": table["town"].to_numpy(object), "age": table["age"].to_numpy()}
    days = table["days"].to_numpy()
    found = choose_likelihood(inputs, table["claims"].to_numpy(), exposures=days)
    assert found.likelihood.name == expected


def test_baselines_are_rates_times_the_exposure():
    table = make_table(rows=2000).to_pandas()
    inputs = {name: table[name].to_numpy() for name in ("age", "days")}
    targets = table[["claims"]].to_numpy(np.float64)
    baselines = Baselines.fit(inputs, targets, discrete=True, exposure="days")
    found = baselines.predict(inputs, targets)
    expected = inputs["days"] * targets.sum() / inputs["days"].sum()
    np.testing.assert_allclose(found["mean"].mean[:, 0], expected)
    # 90 % intervals of counts whose variance grows with the exposure, and within
    # which two rates lie: not exactly 0.9.
    short = inputs["days"] < 300.0
    for rows in (short, ~short):
        assert found["mean"].covered[rows].mean() == pytest.approx(0.9, abs=0.1)
