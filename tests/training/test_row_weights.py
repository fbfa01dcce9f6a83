"""A row of weight 2 counts as two rows."""

from dataclasses import replace

import keras
import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf

import tfbbb
from tfbbb.model.training_rows import TrainingRows
from tfbbb.training import train_table
from tfbbb.training.cross_fitting import MemberRows
from tfbbb.training.recalibration import prediction_figures

ROWS, MEMBERS = 24, 6


@pytest.fixture(scope="module")
def data():
    generator = np.random.default_rng(0)
    x = generator.normal(size=(ROWS, 2)).astype(np.float32)
    y = x @ [[1.0], [-0.5]] + 0.5 * generator.normal(size=(ROWS, 1))
    return x, y.astype(np.float32), generator.integers(1, 6, ROWS)


def linear_model(members=MEMBERS):
    """A linear ensemble without noise to speak of, so that losses are functions."""
    inputs = keras.Input((2,))
    layer = tfbbb.layers.DenseVariational(1, seed=3)
    likelihood = tfbbb.likelihoods.Normal(scale=0.5, standardize=False)
    model = tfbbb.BayesianModel(
        inputs, layer(inputs), likelihood=likelihood, members=members
    )
    model.compile("adam")
    for weight in layer.variational_weights:
        variable = weight.variables["log_scale"]
        variable.assign(np.full(variable.shape, np.log(1e-5)))
    mean = layer.kernel.variables["mean"]
    mean.assign(np.random.default_rng(1).normal(size=mean.shape))
    return model


def draw(weights=None, repeats=2):
    return MemberRows.draw(ROWS, (1.0,), MEMBERS, repeats, row_weights=weights)


def training_rows(y, members):
    return TrainingRows(
        y,
        members.total_weight(len(y)),
        member_sizes=members.sizes,
        mean_weights=members.mean_weights,
    )


def gradient(model, rows, x, y, weights):
    (layer,) = model.variational_layers
    variable = layer.kernel.variables["mean"].value
    with model.training_on(rows), tf.GradientTape() as tape:
        loss = model.compute_loss(x, y, model(x, training=True), weights)
    return float(loss), np.asarray(tape.gradient(loss, variable))


@pytest.mark.parametrize("repeats", [0, 2])
def test_loss_and_gradient_are_those_of_repeated_rows(data, repeats):
    x, y, weights = data
    members = draw(weights, repeats)
    again = np.repeat(np.arange(ROWS), weights)
    folds = None if members.folds is None else members.folds[:, again]
    repeated = replace(members, folds=folds, row_weights=None)
    assert members.total_weight(ROWS) == repeated.total_weight(len(again))
    model = linear_model()
    loss, found = gradient(model, training_rows(y, members), x, y, members.weights)
    expected_loss, expected = gradient(
        model, training_rows(y[again], repeated), x[again], y[again], repeated.weights
    )
    # In single precision, with standard deviations of weights of 1e-5.
    np.testing.assert_allclose(loss, expected_loss, rtol=1e-4)
    np.testing.assert_allclose(found, expected, rtol=2e-3, atol=1e-3)


def test_mean_gradient_of_batches_is_that_of_all_rows(data):
    """Even for one heavy row, which a mean over its own batch would count less."""
    x, y, weights = data
    weights = np.where(np.arange(ROWS) == 5, 40, weights)
    members = draw(weights)
    model, rows = linear_model(), training_rows(y, members)
    _, whole = gradient(model, rows, x, y, members.weights)
    parts = [
        gradient(model, rows, x[at], y[at], members.weights[at])[1]
        for at in np.split(np.arange(ROWS), 4)
    ]
    np.testing.assert_allclose(np.mean(parts, axis=0), whole, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_figures_are_those_of_repeated_rows(data, task):
    x, y, weights = data
    again = np.repeat(np.arange(ROWS), weights)
    model = linear_model(1)
    if task == "classification":
        inputs = keras.Input((2,))
        outputs = tfbbb.layers.DenseVariational(3, seed=1)(inputs)
        model = tfbbb.BayesianModel(inputs, outputs, likelihood="categorical")
        y = np.random.default_rng(2).integers(0, 3, ROWS)
    found = prediction_figures(model.predictive(x, method="local"), y, weights)
    repeated = model.predictive(x[again], method="local")
    expected = prediction_figures(repeated, y[again])
    assert found == pytest.approx(expected, rel=1e-4, abs=1e-6)
    assert found != pytest.approx(
        prediction_figures(model.predictive(x, method="local"), y), rel=1e-3
    )


def table(rows=60):
    x = np.random.default_rng(0).normal(size=rows)
    return pa.table({"x": x, "y": 2.0 * x + 1.0})


SPEC = {
    "target": "y",
    "model": {"members": 1, "hidden_units": [], "likelihood": "normal"},
    "training": {
        "steps": 150,
        "learning_rate": 0.1,
        "kl_schedule": {"name": "tempered", "temperature": 0.5},
        "validation": {"fraction": 0.1},
    },
    "recalibration": "none",
}


def test_a_heavy_line_is_learned_instead_of_a_light_one():
    """Half of the rows say y = x, the other half y = -x."""
    x = np.random.default_rng(0).normal(size=200)
    sign = np.where(np.arange(200) % 2, 1.0, -1.0)
    rows = pa.table({"x": x, "y": sign * x})
    weights = np.where(sign > 0, 50.0, 1.0)
    trained = train_table(rows, SPEC, row_weights=weights)
    low, high = trained.model.predictive([[-1.0], [1.0]]).mean[:, 0]
    # The weighted least squares line has the slope (50 - 1) / 51.
    assert 0.8 < 0.5 * (high - low) < 1.1
    used = np.setdiff1d(np.arange(200), trained.held_out_rows)
    assert trained.num_training_rows == 180
    np.testing.assert_allclose(trained.model.num_rows, weights[used].sum(), rtol=1e-6)
    held_out = rows.take(trained.held_out_rows)
    mean = trained.model.predictive(trained.schema.inputs(held_out)).mean
    errors = mean - trained.schema.targets(held_out)
    mean = np.average(errors[:, 0] ** 2, weights=weights[trained.held_out_rows])
    assert trained.metrics["rmse"] == pytest.approx(np.sqrt(mean), rel=1e-5)


@pytest.mark.parametrize(
    ("weights", "received"),
    [
        (np.ones(59), "59 weights for 60 rows"),
        (np.r_[np.ones(59), 0.0], "0.0 in row 60"),
        (np.r_[np.nan, np.ones(59)], "nan in row 1"),
        (np.ones((60, 1)), "an array of shape \\(60, 1\\)"),
    ],
)
def test_wrong_weights_are_refused(weights, received):
    weights = np.asarray(weights) * 2.0
    with pytest.raises(ValueError, match=f"Received: {received}"):
        train_table(table(), SPEC, row_weights=weights)
