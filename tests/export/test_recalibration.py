"""What was recalibrated answers so from a file, in every signature."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfbbb
from tfbbb.bayes.posteriors import MeanFieldNormal
from tfbbb.layers import DenseVariational
from tfbbb.prediction.recalibration import (
    ConformalIntervals,
    ConformalSets,
    IsotonicPIT,
    Recalibration,
    Temperature,
    VarianceScaling,
    VectorScaling,
)

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(8, 3)).astype("float32")
NUMBERS = 50.0 + 10.0 * GENERATOR.normal(size=(8, 1))
LABELS = np.arange(8) % 3
CLOSE = {"rtol": 1e-5, "atol": 1e-6}

# Recalibration, likelihood, number of outputs, targets, and the method that draws the
# outputs, which a recalibration does not see.
CASES = {
    "temperature": (Temperature(2.5), "categorical", 3, LABELS, "local"),
    "vector scaling": (
        VectorScaling([0.5, 1.0, 2.0], [0.1, 0.0, -0.3]),
        "categorical",
        3,
        LABELS,
        "local",
    ),
    "isotonic PIT": (
        IsotonicPIT([0.1, 0.5, 0.8], [0.2, 0.55, 0.9]),
        "normal",
        1,
        NUMBERS,
        "weight",
    ),
    "temperature and conformal sets": (
        ConformalSets(
            [GENERATOR.uniform(size=30).tolist()],
            Temperature(2.5),
            0,
            [float(X[0, 0])],
            [[[0.0] * 30]],
        ),
        "categorical",
        3,
        LABELS,
        "local",
    ),
    "variance scaling and conformal intervals": (
        ConformalIntervals(
            [GENERATOR.exponential(size=30).tolist()],
            VarianceScaling([1.7]),
            0,
            [float(X[0, 0])],
            [[[0.1] * 30]],
        ),
        "normal",
        1,
        NUMBERS,
        "weight",
    ),
}


@pytest.mark.few(2)
@pytest.mark.parametrize("name", CASES)
def test_recalibrated_answers_are_those_of_the_live_model(name, tmp_path):
    recalibration, likelihood, units, y, drawn = CASES[name]
    keras.utils.set_random_seed(0)
    inputs = keras.Input((3,))
    wide = MeanFieldNormal(initial_scale=1.0)
    outputs = DenseVariational(units, posterior=wide)(inputs)
    live = tfbbb.BayesianModel(inputs, outputs, likelihood=likelihood)
    if likelihood == "normal":
        live.likelihood.adapt(NUMBERS)
    plain = live.predictive(X, 20, "local")
    live.recalibration = recalibration
    live.export_predictive(tmp_path / "1", num_samples=20)
    loaded = tfbbb.load(tmp_path / "1")
    given = loaded.manifest.recalibration
    assert given is not None
    assert given["class_name"] == type(recalibration).__name__
    found = loaded.predictive(X, method=drawn)
    expected = live.predictive(X, 20, drawn)
    for key, values in expected.to_numpy().items():
        np.testing.assert_allclose(found.to_numpy()[key], values, err_msg=key, **CLOSE)
    assert_same_answers(found, expected, y)
    assert_same_signatures(tmp_path / "1", live, plain)


def assert_same_answers(found, expected, y):
    for name in ("log_prob", "log_prob_of_draws"):
        np.testing.assert_allclose(
            getattr(found, name)(y), getattr(expected, name)(y), **CLOSE
        )
    np.testing.assert_allclose(found.sample(5), expected.sample(5), **CLOSE)
    np.testing.assert_allclose(found.joint_sample(5), expected.joint_sample(5), **CLOSE)
    if y is NUMBERS:
        np.testing.assert_allclose(found.cdf(y), expected.cdf(y), **CLOSE)
        np.testing.assert_allclose(found.quantile(0.3), expected.quantile(0.3), **CLOSE)
        np.testing.assert_allclose(found.interval(0.8), expected.interval(0.8), **CLOSE)
        assert found.central_intervals == expected.central_intervals


def assert_same_signatures(path, live, plain):
    signatures = tf.saved_model.load(str(path)).signatures
    expected = live.predictive(X, 20, "local")
    x = tf.constant(X)
    found = signatures["serving_default"](inputs=x)
    for name, values in found.items():
        np.testing.assert_allclose(values, getattr(expected, name), **CLOSE)
    names = {"probabilities", "variance"} & set(found)
    changes = live.recalibration.density != Recalibration()
    for name in names:
        same = np.allclose(found[name], getattr(plain, name), rtol=1e-3)
        assert same != changes
