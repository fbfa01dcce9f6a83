"""The mean targets of texts that are too many to list."""

import json

import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf

import tfbbb
from tfbbb.tables import Schema
from tfbbb.tables.text_features import HashedText
from tfbbb.training import JobSpec
from tfbbb.training.network import make_network
from tfbbb.training.preparation import prepare
from tfbbb.training.target_means import with_target_means

ROWS, TEXTS = 6000, 1500
GENERATOR = np.random.default_rng(0)
CODES = GENERATOR.integers(0, TEXTS, ROWS)
EFFECTS = GENERATOR.normal(size=TEXTS)
NOISE = GENERATOR.normal(size=ROWS)
X = GENERATOR.normal(size=ROWS)


def table(y):
    return pa.table({"x": X, "code": [f"c{code}" for code in CODES], "y": y})


def trained_inputs(prepared):
    """Returns the features of the texts of training rows: buckets, then the mean."""
    inputs, _ = prepared.rows.at(np.arange(prepared.rows.num_rows))
    layer = HashedText.from_config(hashed_layer(prepared.schema).get_config())
    return layer([inputs["code"]])


def hashed_layer(schema):
    column = schema.features[1]
    return HashedText([column.buckets], [column.codes], [column.means])


@pytest.fixture(scope="module", params=["number", "class"])
def prepared(request):
    y = EFFECTS[CODES] + NOISE
    if request.param == "class":
        y = np.where(y > 0, "yes", "no")
    return prepare(table(y), JobSpec(target="y"))


def test_training_rows_do_not_see_their_own_target(prepared):
    rows = prepared.training_rows
    mean = np.asarray(trained_inputs(prepared))[:, -1]
    error = 1 / np.sqrt(len(rows))
    assert np.corrcoef(mean, EFFECTS[CODES[rows]])[0, 1] > 0.6
    assert abs(np.corrcoef(mean, NOISE[rows])[0, 1]) < 4 * error
    # A mean over all rows sees it.
    texts = prepared.schema.inputs(table(NOISE).drop(["y"]))["code"][rows]
    of_all = np.asarray(hashed_layer(prepared.schema)([tf.constant(texts)]))[:, -1]
    assert np.corrcoef(of_all, NOISE[rows])[0, 1] > 10 * error


def test_training_rows_keep_their_buckets(prepared):
    texts = [f"c{code}" for code in CODES[prepared.training_rows]]
    given = hashed_layer(prepared.schema)([tf.constant(texts)])
    trained = trained_inputs(prepared)
    np.testing.assert_array_equal(given[:, :-1], trained[:, :-1])


def test_rows_after_a_parent_version_have_its_means(prepared):
    y = np.where(X > 0, "yes", "no") if prepared.schema.classes else X
    later = prepare(table(y), JobSpec(target="y"), prepared.schema)
    assert later.schema == prepared.schema
    texts = [f"c{code}" for code in CODES[later.training_rows]]
    given = hashed_layer(later.schema)([tf.constant(texts)])
    # Half a level of 65.
    step = np.abs(later.schema.features[1].means).max() / 32
    np.testing.assert_allclose(trained_inputs(later), given, atol=0.51 * step)


def test_means_are_smoothed_by_the_ratio_of_variances():
    whole = table(EFFECTS[CODES] + NOISE)
    schema, _ = with_target_means(Schema.infer(whole, "y"), whole)
    layer = hashed_layer(schema)
    texts = tf.constant([f"c{code}" for code in range(TEXTS)])
    found = np.asarray(layer([texts]))[:, -1]
    counts = np.bincount(CODES, minlength=TEXTS)
    sums = np.bincount(CODES, EFFECTS[CODES] + NOISE, minlength=TEXTS)
    # Both variances are 1; normal scores keep the order and a linear relation.
    assert np.corrcoef(found, sums / (counts + 1))[0, 1] > 0.995
    unseen = np.asarray(layer([tf.constant(["else", "C1", ""])]))[:, -1]
    np.testing.assert_array_equal(unseen, 0.0)


def test_texts_without_relation_to_the_target_have_no_means():
    prepared = prepare(table(NOISE), JobSpec(target="y"))
    assert prepared.schema.features[1].means == ()


def test_texts_that_groups_leave_out_whole_have_no_means():
    whole = table(EFFECTS[CODES] + NOISE)
    schema, means = with_target_means(Schema.infer(whole, "y"), whole, groups=CODES)
    assert (schema.features[1].means, means) == ((), {})


def test_the_last_rows_have_the_means_of_earlier_ones():
    last = np.arange(ROWS) >= 4000
    whole = table(np.where(last, -1.0, 1.0) * EFFECTS[CODES])
    _, means = with_target_means(Schema.infer(whole, "y"), whole, last=last)
    assert np.corrcoef(means["code"][last], EFFECTS[CODES[last]])[0, 1] > 0.5


@pytest.mark.parametrize("prepared", ["number"], indirect=True)
def test_exported_answers_are_those_of_the_live_model(prepared, tmp_path):
    model = make_network(prepared.schema, JobSpec(target="y").model, seed=0)
    cells = {
        "x": X[:50].astype(np.float32),
        "code": [*(f"c{code}" for code in CODES[:48]), "else", ""],
    }
    schema = Schema.from_dict(json.loads(json.dumps(prepared.schema.to_dict())))
    model.export_predictive(tmp_path / "1", schema=schema, num_samples=20, seed=1)
    inputs = prepared.schema.inputs(pa.table(cells))
    live = model.predictive(inputs, num_samples=20, seed=1)
    for engine in ("tensorflow", "numpy"):
        loaded = tfbbb.load(tmp_path / "1", engine=engine)
        assert loaded.manifest.features[1].kind == "categorical"
        found = dict(loaded.predict(cells))
        np.testing.assert_allclose(found["mean"], live.mean, atol=1e-5)
