import json

import numpy as np
import onnxruntime
import pyarrow as pa
import pytest

import tfbbb
from tests.tables.workbooks import write_xlsx
from tests.trained import trained_table
from tfbbb.export.manifest import REPORT_FILE, Manifest
from tfbbb.export.versions import next_version
from tfbbb.judging.drift_reference import DriftReference
from tfbbb.scores.metrics import calibration_error
from tfbbb.tables import TableError
from tfbbb.tables.scan import TableScan
from tfbbb.tables.writing import write_table
from tfbbb.training import JobSpec, train_table
from tfbbb.training.preparation import prepare
from tfbbb.training.recalibration import prediction_figures

ROWS = 400
NOISE = 2.0


def spec(target="y", **training):
    parts = {"model": {}, "recalibration": "auto"}
    parts = {name: training.pop(name, part) for name, part in parts.items()}
    return JobSpec.model_validate({"target": target, "training": training, **parts})


# One posterior, and a tenth of the rows held out.
BRIEF = spec(
    epochs=1,
    validation={"fraction": 0.1},
    kl_schedule="constant",
    model={"members": 1, "likelihood": "normal"},
    recalibration="none",
)


@pytest.fixture(scope="module")
def table():
    """A line in x, with noise of known size, beside columns of no influence."""
    generator = np.random.default_rng(0)
    x = generator.uniform(100, 200, size=ROWS)
    return pa.table(
        {
            "x": x,
            "word": generator.choice(["a", "b"], size=ROWS),
            "y": 0.3 * x + NOISE * generator.normal(size=ROWS),
        }
    )


OF_NOISE = spec(
    epochs=150,
    validation={"fraction": 0.2},
    kl_schedule="constant",
    model={"members": 2, "likelihood": "normal"},
    recalibration="none",
)


@pytest.fixture(scope="module")
def trained(table):
    return trained_table(table, OF_NOISE)


@pytest.mark.slow
def test_the_held_out_figures_are_those_of_the_noise(trained):
    # 80 held-out rows: standard errors of about 8 % for the deviation, 0.08 nats for
    # the log-likelihood and 0.034 for the coverage; four of them.
    best = -0.5 * np.log(2 * np.pi * np.e * NOISE**2)
    assert len(trained.held_out_rows) == 80
    np.testing.assert_allclose(trained.metrics["rmse"], NOISE, rtol=0.32)
    np.testing.assert_allclose(trained.metrics["log_likelihood"], best, atol=0.32)
    np.testing.assert_allclose(trained.metrics["coverage_90"], 0.9, atol=0.136)


def test_held_out_rows_reach_neither_statistics_nor_weights(table):
    trained = train_table(table, BRIEF)
    rows = np.setdiff1d(np.arange(ROWS), trained.held_out_rows)
    assert trained.num_training_rows == len(rows) == 360
    x = table["x"].to_numpy()[rows]
    assert trained.schema.features[0].mean == pytest.approx(x.mean(), rel=1e-12)

    others = table["y"].to_numpy().copy()
    others[trained.held_out_rows] += 10 * NOISE
    again = train_table(table.set_column(2, "y", pa.array(others)), BRIEF)
    weights = zip(trained.model.weights, again.model.weights, strict=True)
    for weight, same in weights:
        np.testing.assert_array_equal(weight, same)


@pytest.mark.slow
# Whether these rows tell of a widening depends on the last digits.
@pytest.mark.filterwarnings("ignore:An ONNX file does not widen:UserWarning")
def test_large_offsets_of_columns_and_target_change_no_prediction(tmp_path):
    import tensorflow as tf

    generator = np.random.default_rng(0)
    x = generator.integers(0, 40, 60)
    y = 3 * x + generator.integers(0, 60, 60)
    answers = []
    for offset in (0, 1_700_000_000):
        table = pa.table({"x": x + offset, "kind": ["a", "b"] * 30, "y": y + offset})
        model = {"members": 1, "likelihood": "student_t"}
        asked = spec(epochs=3, validation={"fraction": 0.1}, model=model)
        trained = train_table(table, asked)
        inputs = trained.schema.inputs(table)
        live = trained.model.predictive(inputs, num_samples=100)
        found = {
            "mean": live.mean,
            "quantiles": live.quantile([0.1, 0.9])[..., 0],
            "samples": live.sample(2)[..., 0].T,
        }
        answers.append({name: values - offset for name, values in found.items()})
    for name, values in answers[0].items():
        # Single precision of standardised numbers, after three epochs.
        np.testing.assert_allclose(answers[1][name], values, atol=0.01, err_msg=name)
    assert trained.schema.features[0].high == x.max() + offset
    path = tmp_path / "model"
    trained.export_to(path)
    trained.export_to(f"{path}.onnx", format="onnx")
    loaded = tfbbb.load(path)
    assert loaded.manifest.numpy.missing is None
    signature = tf.saved_model.load(str(path)).signatures["serving_default"]
    given = {name: tf.constant(values) for name, values in inputs.items()}
    session = onnxruntime.InferenceSession(f"{path}.onnx")
    exported = {
        "loaded": loaded.predict(table.to_pydict())["mean"],
        "tensorflow": signature(**given)["mean"],
        "onnx": session.run(["mean"], inputs)[0],
    }
    for name, values in exported.items():
        # Single precision has steps of 128 here; ONNX has other draws.
        np.testing.assert_allclose(values - live.mean, 0.0, atol=0.5, err_msg=name)


def test_the_figures_are_computed_from_the_predictive_distribution(
    table, trained, monkeypatch
):
    assert trained.model.recalibration is None
    assert trained.recalibration_choice["reason"] == (
        "The job asks for no recalibration."
    )
    # It is fitted after the figures, and widens a few of the rows.
    monkeypatch.setattr(trained.model, "extrapolation", None)
    held_out = table.take(trained.held_out_rows)
    targets = trained.schema.targets(held_out)
    prediction = trained.model.predictive(trained.schema.inputs(held_out))
    coverage = {}
    for level in (0.5, 0.9, 0.95):
        lower, upper = prediction.interval(level)
        coverage[level] = np.mean((lower < targets) & (targets < upper))
    errors = prediction.mean - targets
    log_likelihood = np.mean(prediction.log_prob(targets))
    assert trained.metrics == pytest.approx(
        {
            "rmse": np.sqrt(np.mean(errors**2)),
            "mean_absolute_error": np.mean(np.abs(errors)),
            "coverage_50": coverage[0.5],
            "coverage_90": coverage[0.9],
            "coverage_95": coverage[0.95],
            "calibration_error": calibration_error(prediction, targets),
            "log_likelihood": log_likelihood,
            "nll": -log_likelihood,
        }
    )


def test_arrays_and_names_of_targets_are_refused(table):
    with pytest.raises(TableError, match="Received: ndarray"):
        train_table(np.ones((20, 3)), spec())
    with pytest.raises(TypeError, match=r"`spec` must be .*Received: spec='y'"):
        train_table(table, "y")


def test_classes_are_told_apart_and_held_out_in_proportion(kinds, of_classes):
    trained, labels = of_classes, np.array(kinds["kind"].to_pylist())
    held_out = labels[trained.held_out_rows]
    assert np.sum(held_out == "above") == round(0.1 * np.sum(labels == "above"))
    assert trained.metrics["accuracy"] > 0.7
    inputs = trained.schema.inputs(kinds.take(trained.held_out_rows))
    wrong = (held_out == "above").astype(int)
    figures = prediction_figures(trained.model.predictive(inputs), wrong)
    assert figures["accuracy"] == pytest.approx(1 - trained.metrics["accuracy"])
    probabilities = trained.model.predictive(inputs).probabilities
    squares = np.square(probabilities[np.arange(len(wrong)), 1 - wrong])
    assert figures["brier_score"] == pytest.approx(np.mean(squares), rel=1e-5)


def test_a_table_that_cannot_serve_is_refused_before_training(table):
    with pytest.raises(TableError, match="no target column 'z'"):
        train_table(table, spec("z"))
    with pytest.raises(TableError, match="has 5 rows"):
        train_table(table.slice(0, 5), spec())


@pytest.mark.parametrize(
    ("likelihood", "values", "reason"),
    [
        ("gamma", {7: 0.0}, r"value 0 in row 8, but targets of Gamma must be positive"),
        ("poisson", {9: 2.5}, r"value 2.5 in row 10.*whole numbers from 0"),
        ("zero_inflated", {7: -1.0}, "must be 0 or positive numbers"),
        ("inflated_beta", {}, "must be from 0.0 to 1.0"),
        ("grades", {7: 6.0}, "must be whole numbers from 1 to 5"),
        ("normal", {7: 1e19}, r"value 1e\+19 in row 8.*use another likelihood or oth"),
    ],
    ids=str,
)  # fmt: skip
def test_targets_that_no_training_could_fit_are_refused_before_it(
    likelihood, values, reason
):
    targets = [values.get(row, row % 3 + 1.0) for row in range(20)]
    held_out = np.arange(20) < 8
    table = pa.table({"x": np.arange(20.0), "y": targets, "held out": held_out})
    asked = spec(
        model={"likelihood": likelihood}, epochs=1, validation={"column": "held out"}
    )
    with pytest.raises(TableError, match=reason):
        train_table(table, asked, report=pytest.fail)


def test_exports_are_numbered_and_describe_table_and_figures(
    trained, tmp_path, monkeypatch
):
    first = tmp_path / "line" / "1"
    first.mkdir(parents=True)
    # Another process takes version 1 after this one has seen it free.
    seen = [first]
    monkeypatch.setattr(
        "tfbbb.training.trained_table.next_version",
        lambda root: seen.pop() if seen else next_version(root),
    )
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        trained.export(tmp_path / "file")
    second = trained.export(tmp_path / "line", lineage={"code": "here"})
    assert second == tmp_path / "line" / "2"
    manifest = Manifest.read(second)
    assert [feature.name for feature in manifest.features] == ["x", "word"]
    assert (manifest.target, manifest.num_rows) == ("y", 320)
    assert manifest.metrics == trained.metrics
    assert manifest.lineage == {
        "code": "here",
        "recipe": trained.recipe,
        "judgement": trained.judgement,
    }
    assert f"assets.extra/{REPORT_FILE}" in manifest.files
    manifest.verify(second)
    written = json.loads((second / "assets.extra/training.json").read_text())
    assert JobSpec.model_validate(written["spec"]) == trained.spec
    assert trained.spec.model.hidden_units == (64, 64)
    reference = DriftReference.read(second)
    assert reference.scores.shape == (80, 2)
    # The metrics are means of the same scores.
    assert reference.scores[:, 0].mean() == pytest.approx(trained.metrics["nll"])
    assert np.all((reference.scores[:, 1] >= 0) & (reference.scores[:, 1] <= 1))


def test_a_file_is_trained_on_as_the_table_in_it(table, tmp_path):
    write_table(table, tmp_path / "line.csv")
    scan = TableScan(tmp_path / "line.csv")
    scratch = tmp_path / "scratch"
    of_table = prepare(table, BRIEF)
    of_file = prepare(scan, BRIEF, directory=scratch)
    assert of_file.schema == of_table.schema
    np.testing.assert_array_equal(of_file.rows.targets(), of_table.rows.targets())
    np.testing.assert_array_equal(of_file.held_out[1], of_table.held_out[1])


def test_sheets_stored_in_one_directory_are_trained_on_by_their_own_rows(tmp_path):
    path, scratch = tmp_path / "book.xlsx", tmp_path / "scratch"
    x = np.random.default_rng(0).normal(size=40).round(3)
    targets = {"first": np.arange(40.0), "second": 1000.0 + np.arange(40.0)}
    sheets = {
        name: [["x", "y"], *np.stack([x, y], axis=1).tolist()]
        for name, y in targets.items()
    }
    write_xlsx(path, sheets)
    for name, y in targets.items():
        rows = prepare(TableScan(path, sheet=name), BRIEF, directory=scratch).rows
        assert set(rows.targets()[:, 0]) <= set(y)
