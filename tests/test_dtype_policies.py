"""Models under each policy of dtypes of Keras, beside their twin in float32."""

import contextlib

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfbbb
from tfbbb.bayes.estimators import Flipout, Local, ScoreFunction, Weight
from tfbbb.layers import DenseVariational

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(60, 3))
Y = 500.0 + 30.0 * X[:, :1] + 5.0 * GENERATOR.normal(size=(60, 1))
POLICIES = {
    "float64": "float64",
    "mixed_float16": "float16",
    "mixed_bfloat16": "bfloat16",
    "float16": "float16",
    "bfloat16": "bfloat16",
}
# Relative precision of the dtype of the outputs.
EPSILONS = {"float64": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}


@contextlib.contextmanager
def policy(name, floatx="float32"):
    keras.config.set_floatx(floatx)
    keras.config.set_dtype_policy(name)
    try:
        yield
    finally:
        keras.config.set_floatx("float32")
        keras.config.set_dtype_policy("float32")


def network(likelihood="normal", dtype=None, **options):
    """A model with a deterministic layer, an activity penalty and metrics."""
    keras.utils.set_random_seed(1)
    inputs = keras.Input((3,), dtype=dtype and keras.DTypePolicy(dtype).compute_dtype)
    hidden = DenseVariational(4, "tanh", dtype=dtype, **options)(inputs)
    hidden = keras.layers.Dense(
        4, "relu", activity_regularizer=keras.regularizers.L2(1e-3), dtype=dtype
    )(hidden)
    outputs = DenseVariational(1, dtype=dtype, **options)(hidden)
    model = tfbbb.BayesianModel(inputs, outputs, likelihood=likelihood)
    model.compile("adam", metrics=["mae"], run_eagerly=True)
    return model


def certain(**options):
    return network(posterior="point", bias_posterior="point", **options)


def figures(model):
    model.likelihood.adapt(Y)
    for layer in model.variational_layers:
        layer.kl_weight.assign(1 / 60)
    return model.evaluate(X, Y, verbose=0, return_dict=True)


@pytest.mark.few(3)
@pytest.mark.parametrize("name", POLICIES)
def test_losses_agree_with_those_of_float32(name):
    twin = certain()
    with policy(name):
        model = certain()
        model.set_weights(twin.get_weights())
        found, expected = figures(model), figures(twin)
        loss = model.compute_loss(X, Y, model(X))
        history = model.fit(X, Y, verbose=0).history
    assert loss.dtype == ("float64" if name == "float64" else "float32")
    # Outputs of order 1 are rounded in each of some ten operations.
    tolerance = 10 * EPSILONS[POLICIES[name]]
    for key in ("loss", "nll", "kl", "mae"):
        np.testing.assert_allclose(found[key], expected[key], rtol=tolerance)
    assert all(np.isfinite(values).all() for values in history.values())


def test_copies_keep_the_policy_and_the_scale_of_the_loss(tmp_path):
    with policy("mixed_float16"):
        model = network()
        model.fit(X, Y, verbose=0)
        model.save(tmp_path / "model.keras")
    assert model.optimizer.dynamic_scale > 1.0
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    for new in (loaded, keras.models.clone_model(model)):
        assert new.dtype_policy.name == "mixed_float16"
        assert isinstance(new.optimizer, keras.optimizers.LossScaleOptimizer)
    pairs = zip(loaded.optimizer.variables, model.optimizer.variables, strict=True)
    for one, other in pairs:
        np.testing.assert_array_equal(one, other)


def test_exported_models_answer_alike(tmp_path):
    with policy("float64"):
        model = network()
        model.likelihood.adapt(Y)
        model.export_predictive(tmp_path / "exported")
    served = tf.saved_model.load(str(tmp_path / "exported")).signatures
    mean = served["serving_default"](inputs=tf.constant(X, tf.float32))["mean"]
    np.testing.assert_allclose(mean, model.predictive(X).mean, rtol=1e-5)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "estimator", [Local(), Flipout(), Weight(2), ScoreFunction(2)], ids=repr
)
def test_every_estimator_trains_in_double_precision(estimator):
    with policy("float64", floatx="float64"):
        model = network("student_t", estimator=estimator)
        history = model.fit(X, Y, verbose=0).history
    assert np.isfinite([history["loss"], history["nll"], history["kl"]]).all()


def test_sums_over_rows_are_not_in_half_precision():
    with policy("float16", floatx="float16"):
        model = network(tfbbb.likelihoods.Normal(scale=1.0, standardize=False))
        found = figures(model)
    # 0.5 * 500^2 for each row, beyond the largest number of half precision.
    for key in ("loss", "nll"):
        np.testing.assert_allclose(found[key], 0.5 * np.mean(Y**2), rtol=0.01)
