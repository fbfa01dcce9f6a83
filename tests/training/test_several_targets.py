"""Models of several targets of a table."""

import json

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import tfbbb
from tests.cli.test_train import skip_training
from tests.trained import exported_table
from tfbbb.cli import app
from tfbbb.export.manifest import REPORT_FILE
from tfbbb.tables import Schema, TableError, read_table
from tfbbb.tables.writing import write_table
from tfbbb.training import SpecError, train_table

GENERATOR = np.random.default_rng(0)
ROWS = 240
X = GENERATOR.normal(size=(ROWS, 2))
NOISE = GENERATOR.multivariate_normal([0.0, 0.0], [[1.0, 0.9], [0.9, 1.0]], ROWS)
TABLE = pa.table(
    {
        "width": X[:, 0],
        "depth": X[:, 1],
        "weight": 100.0 + 30.0 * X[:, 0] + 10.0 * NOISE[:, 0],
        "price": X[:, 0] - X[:, 1] + 0.5 * NOISE[:, 1],
    }
)
TARGETS = ["weight", "price"]
HELD_OUT = ROWS // 3
SPEC = {
    "target": TARGETS,
    "training": {
        "epochs": 60,
        "batch_size": 64,
        "kl_schedule": "constant",
        "validation": {"fraction": HELD_OUT / ROWS},
    },
    "model": {"hidden_units": [8], "members": 2},
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return exported_table(TABLE, SPEC, tmp_path_factory.mktemp("several"))


@pytest.fixture(scope="module")
def exported(made):
    return made[0]


@pytest.fixture(scope="module")
def trained(made):
    return made[1]


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """Returns a file of the first rows, one of which lacks a target."""
    path = tmp_path_factory.mktemp("rows") / "rows.csv"
    write_table(TABLE.slice(0, 60), path)
    lines = path.read_text().splitlines()
    lines[3] = lines[3].rpartition(",")[0] + ","
    path.write_text("\n".join(lines) + "\n")
    return path


def run(*arguments):
    found = CliRunner().invoke(app, [str(x) for x in arguments])
    assert found.exit_code == 0, found.output
    return found.stdout


def test_the_noise_of_several_targets_varies_together(trained):
    assert trained.spec.model.likelihood.name == "multivariate_normal"
    prediction = trained.model.predictive(trained.schema.inputs(TABLE))
    drawn = prediction.sample(200) - prediction.mean
    correlation = np.corrcoef(drawn.reshape(-1, 2).T)[0, 1]
    assert 0.5 < correlation < 1.0


def test_each_target_is_judged_beside_baselines_of_its_own(trained):
    judgement = trained.judgement
    assert judgement["learned"]
    assert [each["name"] for each in judgement["targets"]] == TARGETS
    for each in judgement["targets"]:
        assert each["figures"]["model"]["r_squared"] > 0.5
        assert {"mean", "linear model"} <= each["figures"].keys()
    together = judgement["figures"]["model"]
    assert together["log_likelihood"] == pytest.approx(
        trained.metrics["log_likelihood"], rel=1e-6
    )
    alone = [x["figures"]["model"]["log_likelihood"] for x in judgement["targets"]]
    # Noise that varies together is known better than by its margins.
    assert together["log_likelihood"] > sum(alone) + 0.2


def test_boxes_of_rows_hold_all_targets(trained):
    inputs, y = trained.schema.inputs(TABLE), trained.schema.targets(TABLE)
    lower, upper = trained.model.predictive(inputs).interval(0.8, joint=True)
    held = ((lower <= y) & (y <= upper)).all(axis=1)
    # The standard errors of the rows and of the calibration.
    assert abs(held.mean() - 0.8) < 4.0 * np.sqrt(0.16 / ROWS + 0.16 / HELD_OUT)


def test_an_export_answers_as_the_model(trained, exported):
    loaded = tfbbb.load(exported)
    assert loaded.manifest.target == tuple(TARGETS)
    inputs = {name: TABLE[name].to_numpy()[:5] for name in ("width", "depth")}
    live = trained.model.predictive(trained.schema.inputs(TABLE.slice(0, 5)))
    answered = loaded.predictive(inputs)
    np.testing.assert_allclose(answered.mean, live.mean, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(
        answered.interval(0.9, joint=True),
        live.interval(0.9, joint=True),
        rtol=1e-3,
        atol=1e-3,
    )


def test_the_report_has_a_part_for_each_target(exported):
    report = json.loads((exported / "assets.extra" / REPORT_FILE).read_bytes())
    assert [part["target"] for part in report["targets"]] == TARGETS
    for part in report["targets"]:
        assert {"calibration", "held_out", "importance", "effects"} <= part.keys()


def test_a_prediction_has_columns_by_target(exported, rows, tmp_path):
    run("predict", exported, rows, "--output", tmp_path / "answer.csv", "--log-prob")
    answer = read_table(tmp_path / "answer.csv")
    for name in ("mean", "std", "lower_90", "upper_90", "joint_lower_90"):
        assert {f"{name}_weight", f"{name}_price"} <= {*answer.column_names}
    assert answer["log_prob"].null_count == 1


def test_commands_show_every_target(exported, rows):
    shown = run("evaluate", exported, rows)
    assert "'weight', 'price' of 59 rows:" in shown
    assert "all targets together, with errors in units of the spread" in shown
    assert "'price' alone:" in shown
    explained = json.loads(run("explain", exported, rows, "--json"))
    assert [part["target"] for part in explained["targets"]] == TARGETS


def test_a_command_trains_several_targets(trained, exported, rows, monkeypatch):
    jobs = skip_training(monkeypatch, trained, exported)
    options = ("--target", "weight", "--target", "price")
    run("train", rows, *options, "--output", rows.parent / "model")
    assert jobs[0].target == ("weight", "price")
    assert tfbbb.load(rows.parent / "model" / "1").manifest.targets.shape == (2,)


def test_training_goes_on_from_several_targets(trained, exported):
    first = TABLE.slice(0, 100)
    again = train_table(
        first, {"target": TARGETS, "training": {"epochs": 1}}, start_from=exported
    )
    assert again.schema.target_names == tuple(TARGETS)
    with pytest.raises(
        SpecError, match="that of the parent version, 'weight', 'price'"
    ):
        train_table(first, {"target": "price"}, start_from=exported)


def test_several_targets_are_numbers_that_some_rows_have_all():
    table = TABLE.append_column("kind", pa.array(["a", "b", "c"] * (ROWS // 3)))
    with pytest.raises(TableError, match="The target 'kind' "):
        Schema.infer(table, ["price", "kind"])
    lacks = pa.table({"x": np.arange(12.0), "a": [1.0, None] * 6, "b": [None, 2.0] * 6})
    with pytest.raises(TableError, match="No row has all of the targets 'a', 'b'"):
        train_table(lacks, {"target": ["a", "b"]})
