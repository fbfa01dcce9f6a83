"""Models of the layers survive `save` and `load_model`."""

import functools
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

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


@keras.saving.register_keras_serializable(package="tests.compat")
class Kernel(keras.layers.Layer):
    kernel = tfp.math.psd_kernels.ExponentiatedQuadratic(1.5, 0.7)


STANDARD_NORMAL = tfd.Independent(tfd.Normal(tf.zeros(2), 1.0), 1)


def initialized_by(**options):
    posterior_fn = tfpl.default_mean_field_normal_fn(**options)
    return tfpl.DenseReparameterization(3, kernel_posterior_fn=posterior_fn)


def regularized_by(*arguments, **options):
    regularizer = tfpl.KLDivergenceRegularizer(*arguments, **options)
    return tfpl.IndependentNormal(2, activity_regularizer=regularizer)


def then_added(*arguments, **options):
    added = tfpl.KLDivergenceAddLoss(*arguments, **options)
    return keras.Sequential([tfpl.IndependentNormal(2), added])


def trained_normal():
    return keras.Sequential(
        [
            keras.Input((1,), name="unused"),
            tfpl.VariableLayer(4),
            tfpl.IndependentNormal(2),
        ]
    )


SAFE = {
    "activation_of_tensorflow": lambda: tfpl.DenseFlipout(
        3, activation=tf.nn.leaky_relu
    ),
    "regularizer": lambda: regularized_by(STANDARD_NORMAL),
    "regularizer_with_options": lambda: regularized_by(
        tfd.MultivariateNormalTriL(tf.ones(2), 2 * tf.eye(2)),
        use_exact_kl=False,
        test_points_reduce_axis=np.array([0]),
        weight=tf.constant(0.5),
    ),
    "regularizer_of_a_trained_prior": lambda: regularized_by(trained_normal()),
    "added_divergence_of_a_trained_prior": lambda: then_added(trained_normal()),
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
    "bernoulli": lambda: tfpl.IndependentBernoulli((2, 2), sample_dtype=tf.int32),
    "normal": lambda: tfpl.IndependentNormal(2, convert_to_tensor_fn="mode"),
    "mixture": lambda: tfpl.MixtureSameFamily(
        1, tfpl.IndependentNormal((), convert_to_tensor_fn="mean")
    ),
    "gaussian_process": lambda: tfpl.VariationalGaussianProcess(
        3, Kernel(), inducing_index_points_initializer="random_normal", jitter=1e-4
    ),
}
SIZES = {"mixture": 3}


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


def plain(config):
    """Of nested layers, leaves out what Keras notes of their calls and identity."""
    if isinstance(config, list | tuple):
        return [plain(v) for v in config]
    if not isinstance(config, dict):
        return config
    notes = {"build_config", "shared_object_id"}
    return {k: plain(v) for k, v in config.items() if k not in notes}


@pytest.mark.few(6)
@pytest.mark.parametrize("name", SAFE)
def test_layers_of_registered_functions_load_in_safe_mode(name, tmp_path):
    size = SIZES.get(name, 4)
    model = keras.Sequential([keras.Input((size,)), SAFE[name]()])
    loaded = saved_and_loaded(model, tmp_path)
    assert type(loaded.layers[-1]) is type(model.layers[-1])
    x = tf.random.normal([5, size], seed=1)
    assert_same(model, loaded, x)
    config, loaded_config = (plain(m.layers[-1].get_config()) for m in (model, loaded))
    assert config == loaded_config


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


def mean_of_loaded(path):
    model = keras.saving.load_model(path, safe_mode=False)
    return model(tf.ones([2, 4])).mean().numpy()


@pytest.mark.slow
def test_python_functions_load_in_another_process(tmp_path):
    scale = tf.constant(0.5)
    singular = tfpl.default_mean_field_normal_fn(is_singular=True)
    dense = tfpl.DenseReparameterization(
        2, lambda x: x * scale, kernel_posterior_fn=singular, kernel_prior_fn=None
    )
    normal = tfpl.DistributionLambda(lambda t: tfd.Normal(t, scale))
    model = keras.Sequential([keras.Input((4,)), dense, normal])
    model.save(tmp_path / "model.keras")
    # A new process knows only the file.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor:
        mean = executor.submit(mean_of_loaded, tmp_path / "model.keras").result()
    np.testing.assert_allclose(mean, model(tf.ones([2, 4])).mean(), rtol=1e-6)


class Doubled:
    def __call__(self, shape, dtype=None):
        return tf.fill(shape, tf.cast(2, dtype))


UNSAFE = {
    "activation": lambda: tfpl.DenseFlipout(3, activation=lambda x: x + 1),
    "activity_regularizer": lambda: tfpl.DenseFlipout(
        3, activity_regularizer=lambda y: tf.reduce_sum(y**2)
    ),
    "initializer": lambda: initialized_by(loc_initializer=Doubled()),
    "initializers_of_tensorflow": lambda: initialized_by(
        loc_initializer=tf.random_normal_initializer(stddev=0.1),
        untransformed_scale_initializer=tf.constant_initializer(
            np.full((4, 3), -3.0, "float32")
        ),
    ),
    "initializer_of_a_variable": lambda: tfpl.VariableLayer(3, initializer=Doubled()),
    "regularizer_and_constraint": lambda: initialized_by(
        loc_regularizer=lambda w: tf.reduce_sum(w**4), loc_constraint=lambda w: w
    ),
    "partial_function": lambda: tfpl.DistributionLambda(
        functools.partial(tfd.Normal, scale=2.0)
    ),
    "divergence": lambda: tfpl.DenseFlipout(
        3, kernel_divergence_fn=functools.partial(lambda n, q, p, _: n, 7.0)
    ),
    "gaussian_process": lambda: tfpl.VariationalGaussianProcess(
        3,
        Kernel(),
        inducing_index_points_initializer=lambda shape, dtype: tf.reshape(
            tf.range(12, dtype=dtype), shape
        ),
        mean_fn=lambda x: tf.reduce_sum(x, -1),
    ),
    "prior_of_variables": lambda: regularized_by(
        tfd.Independent(
            tfd.Normal(
                tf.Variable([1.0, 2.0]),
                tfp.util.TransformedVariable([3.0, 4.0], tfp.bijectors.Exp()),
            ),
            1,
        )
    ),
    "points": lambda: regularized_by(
        STANDARD_NORMAL, test_points_fn=lambda d: d.mean() + 1
    ),
}


@pytest.mark.few(5)
@pytest.mark.parametrize("name", UNSAFE)
def test_layers_of_python_functions_load_outside_safe_mode(name, tmp_path):
    model = keras.Sequential([keras.Input((4,)), UNSAFE[name]()])
    for number, weight in enumerate(model.weights):
        weight.assign(weight + 0.01 * number)
    loaded = saved_and_loaded(model, tmp_path, safe_mode=False)
    x = tf.random.normal([5, 4], seed=1)
    assert_same(model, loaded, x)
    clone = keras.models.clone_model(model)
    clone.set_weights(model.get_weights())
    assert_same(model, clone, x)


def test_arguments_of_a_distribution_are_saved(tmp_path):
    layer = tfpl.DistributionLambda(normal_of, arguments={"scale": np.float32([2, 3])})
    model = keras.Sequential([keras.Input((2,)), layer])
    for other in saved_and_loaded(model, tmp_path), keras.models.clone_model(model):
        np.testing.assert_array_equal(other(tf.ones([1, 2])).stddev(), [[2, 3]])


@keras.saving.register_keras_serializable(package="tests.compat")
def normal_of(t, scale):
    return tfd.Normal(t, scale)


def test_a_checkpoint_holds_the_divergence(tmp_path):
    model = keras.Sequential([keras.Input((4,)), regularized_by(STANDARD_NORMAL, True)])
    model.compile("sgd", lambda y, d: -d.log_prob(y))
    x = np.ones((8, 4), "float32")
    checkpoint = keras.callbacks.ModelCheckpoint(tmp_path / "model.keras")
    model.fit(x, x[:, :2], verbose=0, callbacks=[checkpoint])
    loaded = keras.saving.load_model(tmp_path / "model.keras", compile=False)
    assert_same(model, loaded, x)


def test_a_variable_that_layers_share_is_loaded_once(tmp_path):
    scale = tfp.util.TransformedVariable(2.0, tfp.bijectors.Softplus())
    model = keras.Sequential(
        [
            keras.Input((3,)),
            tfpl.DistributionLambda(lambda t: tfd.Normal(t, scale), "mean"),
            tfpl.DistributionLambda(lambda t: tfd.Normal(2 * t, scale), "stddev"),
        ]
    )
    first = saved_and_loaded(model, tmp_path, safe_mode=False)
    second = saved_and_loaded(model, tmp_path, safe_mode=False)
    assert [len(m.weights) for m in (model, first, second)] == [1, 1, 1]
    first.weights[0].assign(7.0)
    np.testing.assert_allclose(first(tf.ones([1, 3])), np.full((1, 3), 7.0), rtol=1e-3)
    np.testing.assert_allclose(second(tf.ones([1, 3])), np.full((1, 3), 2.0), rtol=1e-6)
