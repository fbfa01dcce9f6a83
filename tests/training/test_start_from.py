import json
import shutil
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from tests.repeated_calls import running_functions
from tests.trained import exported_table
from tfbbb.export.manifest import MANIFEST_PATH, Manifest, file_digests
from tfbbb.prediction.recalibration import ConformalIntervals, VarianceScaling
from tfbbb.tables import Schema, TableError, TableScan
from tfbbb.tables.writing import write_table
from tfbbb.training import JobSpec, SpecError, train_table
from tfbbb.training.network import make_network
from tfbbb.training.parent_version import ParentVersion, learned_variables
from tfbbb.training.preparation import prepare
from tfbbb.training.record import RECORD_FILE, TrainingRecord

NOISE = 0.5
ROWS = 120
MODEL = {
    "hidden_units": [],
    "members": 1,
    "numeric_encoding": "standardized",
    "likelihood": {"name": "normal", "scale": NOISE, "standardize": False},
}
# All rows in every step, so that the noise of the posterior's draws is the only one.
STEPS = {
    "epochs": 400,
    "batch_size": ROWS,
    "learning_rate": 0.03,
    "kl_schedule": "constant",
    "validation": {"column": "held out"},
}


def spec(model=None, training=None, **fields):
    return JobSpec.model_validate(
        {
            "target": "y",
            "model": {} if model is None else model,
            "training": {**STEPS, **(training or {})},
            **fields,
        }
    )


def batch(seed, intercept):
    """Rows of a line with known noise; the last ten are held out."""
    generator = np.random.default_rng(seed)
    x = generator.uniform(-3, 3, ROWS)
    y = 0.7 * x + intercept + NOISE * generator.normal(size=ROWS)
    return pa.table({"x": x, "y": y, "held out": np.arange(ROWS) >= ROWS - 10})


@pytest.fixture(scope="module")
def monday():
    return batch(0, intercept=0.0)


@pytest.fixture(scope="module")
def tuesday():
    return batch(1, intercept=1.0)


@pytest.fixture(scope="module")
def monday_export(monday, tmp_path_factory):
    root = tmp_path_factory.mktemp("saved_models") / "line"
    return exported_table(monday, spec(MODEL), root)


@pytest.fixture(scope="module")
def version(monday_export):
    return monday_export[0]


@pytest.fixture(scope="module")
def after_monday(monday_export):
    return monday_export[1]


@pytest.fixture(scope="module")
def after_tuesday(tuesday, version):
    with running_functions(eagerly=False):
        return train_table(tuesday, spec(), start_from=version)


def posterior_of_all(tables, schema):
    """Mean and standard deviation of slope and intercept in closed form."""
    together = pa.concat_tables([table.slice(0, ROWS - 10) for table in tables])
    column = schema.features[0]
    z = (together["x"].to_numpy() - column.mean) / column.scale
    design = np.stack([z, np.ones(len(z))], axis=-1)
    precision = np.eye(2) + design.T @ design / NOISE**2
    mean = np.linalg.solve(precision, design.T @ together["y"].to_numpy() / NOISE**2)
    return mean, np.sqrt(np.diag(np.linalg.inv(precision)))


def learned(trained):
    (layer,) = trained.model.variational_layers
    weights = layer.kernel, layer.bias
    mean = [np.ravel(weight.mean)[0] for weight in weights]
    return np.array(mean), np.sqrt([np.ravel(w.variance)[0] for w in weights])


def test_two_successive_batches_give_the_posterior_of_all_rows(
    monday, tuesday, after_monday, after_tuesday
):
    # For the noise of the last steps, a fifth of a posterior's own width.
    for trained, tables in (
        (after_monday, [monday]),
        (after_tuesday, [monday, tuesday]),
    ):
        mean, stddev = posterior_of_all(tables, after_monday.schema)
        found, width = learned(trained)
        np.testing.assert_allclose(found, mean, atol=0.2 * stddev.max())
        np.testing.assert_allclose(width, stddev, rtol=0.1)


@pytest.mark.slow
def test_a_tempered_parent_counts_its_rows_once(monday, tuesday, tmp_path):
    tempered = {
        "kl_schedule": {"name": "tempered", "temperature": 0.2},
        # It takes longer to become as narrow.
        "epochs": 1500,
    }
    parent = train_table(monday, spec(MODEL, tempered))
    version = parent.export(tmp_path / "line")
    trained = train_table(tuesday, spec(training={"epochs": 800}), start_from=version)
    mean, stddev = posterior_of_all([monday, tuesday], parent.schema)
    found, width = learned(trained)
    # The noise of two trainings, one of them of a narrow posterior.
    np.testing.assert_allclose(found, mean, atol=0.4 * stddev.max())
    np.testing.assert_allclose(width, stddev, rtol=0.1)


def test_scaling_is_that_of_the_version(after_monday, after_tuesday):
    assert after_tuesday.schema == after_monday.schema
    assert after_tuesday.spec.model == after_monday.spec.model
    assert after_tuesday.model.num_rows == ROWS - 10


def test_a_version_is_judged_beside_the_one_it_started_from(
    tuesday, after_monday, after_tuesday
):
    rows = tuesday.slice(ROWS - 10)
    prediction = after_monday.model.predictive(after_monday.schema.inputs(rows))
    targets = after_monday.schema.targets(rows)
    judged = after_tuesday.judgement
    found = judged["figures"]["parent version"]
    rmse = np.sqrt(np.mean(np.square(prediction.mean - targets)))
    assert found["rmse"] == pytest.approx(rmse, rel=1e-5)
    mean = prediction.log_prob(targets).mean()
    assert found["log_likelihood"] == pytest.approx(mean, rel=1e-5)
    (sentence,) = [text for text in judged["sentences"] if "started from" in text]
    assert sentence.startswith("The model has ")
    assert sentence.endswith(
        " less error than the version it started from on 10 new rows."
    )


@pytest.mark.parametrize(
    "given",
    [
        None,
        VarianceScaling([2.0]),
        ConformalIntervals([[0.0, 0.5, 1.5]], density=VarianceScaling([2.0])),
    ],
)
def test_a_parent_version_answers_as_it_was_recalibrated(after_monday, given):
    parent = replace(
        ParentVersion.from_model(
            after_monday.model, after_monday.schema, after_monday.spec
        ),
        recalibration=given,
    )
    x = np.ones((3, 1), np.float32)
    plain, answered = (
        after_monday.model.predictive(x),
        parent.model(seed=0).predictive(x),
    )
    factor = 1.0 if given is None else 2.0
    np.testing.assert_allclose(answered.mean, plain.mean, rtol=1e-6)
    np.testing.assert_allclose(answered.stddev, factor * plain.stddev, rtol=1e-6)


def test_text_column_is_read_as_text_from_numbers_alone(tmp_path):
    codes = pa.table({"code": ["007", "a8"] * 10, "y": np.arange(20.0)})
    schema = Schema.infer(codes, "y")
    write_table(codes.take(list(range(0, 20, 2))), tmp_path / "codes.csv")
    scan = TableScan(tmp_path / "codes.csv")
    (held_out, _) = prepare(scan, JobSpec(target="y"), schema).held_out
    assert held_out["code"].tolist() == ["007"]


def copy_with(files, version, directory):
    """Copies a version with other files of its training."""
    copy = shutil.copytree(version, directory / "1")
    manifest = Manifest.read(copy)
    (copy / MANIFEST_PATH).unlink()
    for name, content in files.items():
        (copy / "assets.extra" / name).write_bytes(content)
    files = file_digests(copy)
    (copy / MANIFEST_PATH).write_text(replace(manifest, files=files).to_json())
    return copy


def test_a_version_that_went_on_can_be_gone_on_from(
    tuesday, version, after_tuesday, tmp_path
):
    found = after_tuesday
    files = ParentVersion.from_model(found.model, found.schema, found.spec).files()
    version = copy_with(files, version, tmp_path)
    once = {"epochs": 1, "learning_rate": 1e-6}
    again = train_table(tuesday, spec(training=once), start_from=version)
    np.testing.assert_allclose(learned(again), learned(after_tuesday), rtol=1e-3)


@pytest.mark.parametrize(
    "model",
    [
        {"hidden_units": [4], "members": 2},
        {"posterior": "low_rank_normal", "likelihood": "student_t"},
        {"posterior": "full_covariance_normal", "likelihood": "normal_mixture"},
    ],
)
def test_prior_and_start_are_all_that_was_learned(after_monday, model):
    given = spec(model)
    first = make_network(after_monday.schema, given.model, seed=0)
    first.likelihood.adapt(np.arange(9.0))
    learned = {name: variable.numpy() for name, variable in learned_variables(first)}
    second = ParentVersion(TrainingRecord(given, after_monday.schema), learned).network(
        seed=1
    )
    x = np.ones((3, 1), np.float32)
    before, after = (network.predictive(x) for network in (first, second))
    np.testing.assert_allclose(after.mean, before.mean, rtol=1e-5)
    np.testing.assert_allclose(after.variance, before.variance, rtol=1e-5)
    for layer in second.variational_layers:
        for weight in layer.variational_weights:
            draw = weight.draw(np.array([0, 1], np.int32))
            np.testing.assert_allclose(
                weight.prior_log_prob(draw), weight.log_prob(draw), rtol=1e-4
            )


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"target": "x"}, "version, 'y'. Received: target='x'"),
        ({"task": "classification"}, "version, 'regression'"),
        ({"model": {"hidden_units": [3]}}, "leave `model` out. Received: {'hidden_un"),
        ({"training": {"kl_schedule": {"name": "tempered", "temperature": 0.3}}},
         "must count its rows once, at temperature 1"),
        ({"features": ["held out"], "training": {"validation": {}}},
         "lacks the features 'held out'"),
    ],
)  # fmt: skip
def test_what_does_not_go_on_from_a_version_is_refused(
    tuesday, version, changes, reason
):
    with pytest.raises(SpecError, match=reason):
        train_table(tuesday, spec(**changes), start_from=version)


def test_a_table_of_other_columns_is_refused(tuesday, version):
    more = tuesday.append_column("z", pa.array(np.zeros(ROWS)))
    with pytest.raises(SpecError, match="lacks the features 'z'"):
        train_table(more, spec(), start_from=version)
    with pytest.raises(TableError, match="no feature column 'x'"):
        train_table(tuesday.drop_columns("x"), spec(features=["x"]), start_from=version)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (
            spec(
                {"posterior": "low_rank_normal"},
                {"kl_schedule": {"name": "tempered", "temperature": 0.3}},
            ),
            "The parent version counts its rows more than once.* low_rank_normal",
        ),
        (spec({"posterior": "point"}), "'point' of the parent version has no density"),
    ],
    ids=["tempered", "point"],
)
def test_version_whose_posterior_cannot_be_a_prior_is_refused(
    tuesday, version, tmp_path, given, reason
):
    record = TrainingRecord(given, TrainingRecord.read(version).schema)
    version = copy_with({RECORD_FILE: record.to_json()}, version, tmp_path)
    with pytest.raises(SpecError, match=reason):
        train_table(tuesday, spec(), start_from=version)


def test_a_version_without_its_training_is_refused(tuesday, version, tmp_path):
    bare = shutil.copytree(version, tmp_path / "bare")
    (bare / "assets.extra" / RECORD_FILE).unlink()
    with pytest.raises(SpecError, match=r"it has no file training\.json"):
        train_table(tuesday, spec(), start_from=bare)
    damaged = shutil.copytree(version, tmp_path / "damaged")
    with (damaged / "assets.extra/posterior.npz").open("ab") as file:
        file.write(b"more")
    with pytest.raises(SpecError, match="is not the file that was exported"):
        train_table(tuesday, spec(), start_from=damaged)


@pytest.mark.parametrize("layers", [None, [{"type": "dropout", "rate": 0.1}]])
def test_the_record_of_an_earlier_release_is_read_unless_it_names_layers(
    version, tmp_path, layers
):
    old = shutil.copytree(version, tmp_path / "old")
    file = old / "assets.extra" / RECORD_FILE
    written = json.loads(file.read_bytes())
    written["spec"]["model"] |= {"layers": layers, "estimator": {"name": "auto"}}
    rate = written["spec"]["training"]["learning_rate"]
    written["spec"]["training"]["learning_rate"] = {"initial": rate, "decay": "cosine"}
    file.write_text(json.dumps(written))
    if layers:
        with pytest.raises(SpecError, match="its job names layers"):
            TrainingRecord.read(old)
    else:
        assert TrainingRecord.read(old) == TrainingRecord.read(version)
