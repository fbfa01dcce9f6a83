"""A new version is compared with the one that serves before it becomes `latest`."""

import shutil
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from tests.trained import exported_table, trained_table
from tfbbb.judging.evaluation.predicted_rows import PredictedRows
from tfbbb.training import train_table
from tfbbb.training.pipeline import WAITS
from tfbbb.training.serving_version import ServingVersion
from tfbbb.training.spec import JobSpec

ROWS = 300
NAME = "version 1, which serves"


def table(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=ROWS)
    return pa.table({"x": x, "y": 2 * x + 0.3 * rng.normal(size=ROWS)})


def spec(**training):
    model = {"hidden_units": [8], "members": 4, "likelihood": "normal"}
    training = {"kl_schedule": "constant", **training}
    return {"target": "y", "model": model, "training": training}


SPEC = spec(epochs=40)


@pytest.fixture(scope="module")
def trained():
    return trained_table(table(0), SPEC)


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    path = tmp_path_factory.mktemp("model")
    exported_table(table(0), SPEC, path)
    return path


def test_a_clearly_worse_version_waits(directory, compiled_functions):
    serving = ServingVersion.under(directory)
    poor = spec(epochs=20, learning_rate=0.05)
    # Its slope is about half of the true one.
    poor["model"] |= {"hidden_units": [], "prior": {"name": "normal", "scale": 0.01}}
    trained = train_table(table(1), poor, serving=serving)
    judgement = trained.judgement
    assert judgement["comparisons"][NAME]["error"]["z"] < -2
    assert f"the error of {NAME}." in " ".join(judgement["warnings"])
    assert NAME in judgement["verdict"]
    assert judgement["figures"][NAME]["rmse"] < 0.4
    assert not judgement["becomes_latest"]
    assert WAITS in judgement["warnings"]
    trained.export(directory)
    assert ServingVersion.under(directory) == serving


def beside_serving(directory, schema, error, targets_off=0.0):
    """Whether the first version is better than one whose means are further off."""
    rng = np.random.default_rng(3)
    rows = table(2)
    x, y = (rows[name].to_numpy().astype("float32") for name in ("x", "y"))
    y = (y + targets_off * rng.normal(size=ROWS)).astype("float32")[:, np.newaxis]
    serving = ServingVersion(directory / "1")
    theirs = PredictedRows.score(serving.model.predictive({"x": x}), y)
    mean = theirs.mean + error * rng.normal(size=theirs.mean.shape)
    scale = np.hypot(np.hypot(0.3, targets_off), error)
    log_prob = (
        -0.5 * ((y - mean) / scale) ** 2 - np.log(scale) - 0.5 * np.log(2 * np.pi)
    )
    own = replace(theirs, mean=mean, log_prob=log_prob[:, 0])
    return serving.clearly_better(own, {"x": x}, y, schema) is not None


def test_only_a_clear_difference_counts(directory, trained):
    # Of an error of .15, a version that was trained on the rows may be flattered.
    errors = {0.0: False, 0.05: False, 0.15: False, 0.5: True}
    for error, better in errors.items():
        assert beside_serving(directory, trained.schema, error) is better


def test_rows_harder_than_those_before_refuse_nothing(directory, trained):
    """Its figures were better, on other rows; on these both err alike."""
    assert not beside_serving(directory, trained.schema, 0.0, targets_off=3.0)


def test_a_version_of_other_columns_is_not_compared(directory, trained):
    schema = trained.schema
    others = tuple(replace(column, name="z") for column in schema.features)
    assert beside_serving(directory, schema, 0.5)
    assert not beside_serving(directory, replace(schema, features=others), 0.5)


def test_what_cannot_be_loaded_does_not_serve(directory, trained, tmp_path):
    shutil.copytree(directory / "1", tmp_path / "1")
    (tmp_path / "2").mkdir()
    (tmp_path / "2" / "saved_model.pb").write_bytes(b"of another program")
    assert ServingVersion.under(tmp_path) == ServingVersion(tmp_path / "1")
    assert beside_serving(tmp_path, trained.schema, 0.5)
    (tmp_path / "1" / "saved_model.pb").write_bytes(b"damaged")
    damaged = ServingVersion(tmp_path / "1")
    nothing = PredictedRows(np.zeros(20), np.zeros((20, 1)))
    x, y = np.zeros(20, np.float32), np.zeros((20, 1), np.float32)
    assert damaged.clearly_better(nothing, {"x": x}, y, trained.schema) is None


def test_a_job_may_publish_always_or_never():
    for publish, published in (
        ("if_not_worse", [False, True]),
        ("always", [True, True]),
        ("never", [False, False]),
    ):
        job = JobSpec(target="y", publish=publish)
        assert [job.publishes(fit) for fit in (False, True)] == published
