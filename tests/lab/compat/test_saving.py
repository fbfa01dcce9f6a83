"""Models of the layers survive `save` and `load_model`."""

import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp

import tfbbb.lab.compat.tfp_layers as tfpl

tfd = tfp.distributions


def posterior(kernel_size, bias_size=0, dtype=None):
    n = kernel_size + bias_size
    return keras.Sequential(
        [
            tfpl.VariableLayer(tfpl.MultivariateNormalTriL.params_size(n), dtype=dtype),
            tfpl.MultivariateNormalTriL(n),
        ]
    )


@keras.saving.register_keras_serializable(package="tests.compat")
def registered_posterior(kernel_size, bias_size=0, dtype=None):
    return posterior(kernel_size, bias_size, dtype)


@keras.saving.register_keras_serializable(package="tests.compat")
def normal(t):
    return tfd.Normal(t[..., :1], tf.nn.softplus(t[..., 1:2]))


STANDARD_NORMAL = tfd.Independent(tfd.Normal(tf.zeros(2), 1.0), 1)


def regularized_by(*arguments, **options):
    regularizer = tfpl.KLDivergenceRegularizer(*arguments, **options)
    return tfpl.IndependentNormal(2, activity_regularizer=regularizer)


SAFE = {
    "regularizer": lambda: regularized_by(STANDARD_NORMAL),
    "added_divergence": lambda: keras.Sequential(
        [tfpl.IndependentNormal(2), tfpl.KLDivergenceAddLoss(STANDARD_NORMAL)]
    ),
    "flipout": lambda: tfpl.DenseFlipout(3, activation="relu", seed=3),
    "reparameterization": lambda: tfpl.DenseReparameterization(
        3,
        bias_prior_fn=tfpl.default_multivariate_normal_fn,
        kernel_posterior_fn=tfpl.default_mean_field_normal_fn(
            loc_initializer=keras.initializers.HeNormal(), loc_regularizer="l2"
        ),
    ),
    "dense_variational": lambda: tfpl.DenseVariational(
        3, registered_posterior, registered_posterior, 1 / 7, kl_use_exact=True
    ),
    "distribution_lambda": lambda: tfpl.DistributionLambda(normal, "mean"),
    "mixture": lambda: tfpl.MixtureSameFamily(2, tfpl.IndependentPoisson([])),
}


def saved_and_loaded(model, path, **options):
    model.save(path / "model.keras")
    return keras.saving.load_model(path / "model.keras", **options)


def assert_same(model, loaded, x):
    assert len(model.weights) == len(loaded.weights)
    for w, v in zip(model.weights, loaded.weights, strict=True):
        np.testing.assert_array_equal(w, v)
    outputs = []
    for m in (model, loaded):
        tf.random.set_seed(3)
        outputs.append((tf.convert_to_tensor(m(x)), m.losses))
    # Compiled or not, the sums are the same to rounding.
    np.testing.assert_allclose(outputs[0][0], outputs[1][0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(outputs[0][1], outputs[1][1], rtol=1e-5)


@pytest.mark.parametrize("name", SAFE)
def test_layers_of_registered_functions_load_in_safe_mode(name, tmp_path):
    model = keras.Sequential([keras.Input((4,)), SAFE[name]()])
    loaded = saved_and_loaded(model, tmp_path)
    assert type(loaded.layers[-1]) is type(model.layers[-1])
    x = tf.random.normal([5, 4], seed=1)
    assert_same(model, loaded, x)


def test_a_convolution_loads(tmp_path):
    layer = tfpl.Convolution1DFlipout(2, 3, 2, "SAME", activation=tf.nn.relu)
    model = keras.Sequential([keras.Input((6, 4)), layer])
    x = tf.random.normal([5, 6, 4], seed=1)
    assert_same(model, saved_and_loaded(model, tmp_path), x)


def test_python_functions_load_outside_safe_mode_only(tmp_path):
    scale = 0.5
    layer = tfpl.DistributionLambda(lambda t: tfd.Normal(t, scale))
    flipout = tfpl.DenseFlipout(
        2, kernel_divergence_fn=lambda q, p, _: tfd.kl_divergence(q, p) / 10
    )
    model = keras.Sequential([keras.Input((3,)), flipout, layer])
    model.save(tmp_path / "model.keras")
    with pytest.raises(ValueError, match="safe_mode=False"):
        keras.saving.load_model(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras", safe_mode=False)
    x = tf.random.normal([5, 3], seed=1)
    assert_same(model, loaded, x)
    np.testing.assert_array_equal(loaded(x).stddev(), np.full((5, 2), 0.5))


def test_a_prior_of_variables_is_no_part_of_a_configuration():
    prior = tfd.Independent(tfd.Normal(tf.Variable([1.0, 2.0]), 1.0), 1)
    with pytest.raises(ValueError, match=r"distribution of variables.*Received"):
        regularized_by(prior).get_config()
