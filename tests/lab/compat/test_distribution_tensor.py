"""What a distribution-valued layer returns, seen from Keras and from the user."""

import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp

import tfbbb.lab.compat.tfp_layers as tfpl

tfd = tfp.distributions


def negloglik(y, d):
    return -d.log_prob(y)


@pytest.fixture
def output():
    params = tf.constant([[0.0, 0.5], [1.0, -0.5]])
    layer = tfpl.DistributionLambda(
        lambda t: tfd.Normal(t[..., 0], tf.exp(t[..., 1])), tfd.Distribution.mean
    )
    return layer(params)


def test_it_is_a_distribution_with_everything_of_its_kind(output):
    assert isinstance(output, tfd.Distribution)
    np.testing.assert_array_equal(output.mode(), [0.0, 1.0])
    np.testing.assert_array_equal(output.loc, [0.0, 1.0])
    np.testing.assert_allclose(output.variance(), np.exp([1.0, -1.0]), rtol=1e-6)
    np.testing.assert_allclose(output.cdf(output.quantile(0.3)), 0.3, rtol=1e-5)
    assert output.sample([3, 4]).shape == (3, 4, 2)
    assert output.batch_shape == (2,)
    assert "Normal" in repr(output)


def test_it_is_its_tensor_wherever_a_tensor_is_wanted(output):
    np.testing.assert_array_equal(output + 1.0, [1.0, 2.0])
    np.testing.assert_array_equal(2.0 * output, [0.0, 2.0])
    np.testing.assert_array_equal(output[1:], [1.0])
    np.testing.assert_array_equal(np.asarray(output), [0.0, 1.0])
    np.testing.assert_array_equal(keras.ops.convert_to_numpy(output), [0.0, 1.0])
    np.testing.assert_array_equal(tf.reduce_sum(output), 1.0)
    np.testing.assert_array_equal(keras.ops.stack([output, output])[0], [0.0, 1.0])
    assert output.shape == output.get_shape() == (2,)
    assert output.ndim == 1
    assert output.dtype == tf.float32


def test_divergences_see_the_distribution(output):
    prior = tfd.Normal(0.0, 1.0)
    normal = output.tensor_distribution
    expected = tfd.kl_divergence(normal, prior)
    np.testing.assert_array_equal(tfd.kl_divergence(output, prior), expected)
    np.testing.assert_array_equal(output.kl_divergence(prior), expected)
    np.testing.assert_array_equal(
        tfd.kl_divergence(prior, output), tfd.kl_divergence(prior, normal)
    )
    np.testing.assert_array_equal(tfd.kl_divergence(output, output), [0.0, 0.0])
    independent = tfd.Independent(output, 1)
    np.testing.assert_array_equal(
        independent.log_prob([0.1, 0.2]),
        tfd.Independent(normal, 1).log_prob([0.1, 0.2]),
    )


def model_of(fn, conversion=tfd.Distribution.sample, **options):
    return keras.Sequential(
        [keras.layers.Dense(2), tfpl.DistributionLambda(fn, conversion, **options)]
    )


X = np.linspace(-1, 1, 24, dtype="float32").reshape(12, 2)

CASES = {
    # Keras casts integers to float32 before the loss.
    "integers": (
        lambda: model_of(lambda t: tfd.Categorical(logits=t)),
        np.arange(12) % 2,
    ),
    "one_target_for_an_axis_of_one": (
        lambda: model_of(lambda t: tfd.Normal(t[..., :1], 1.0)),
        X[:, 0],
    ),
    "nested": (
        lambda: keras.Sequential(
            [
                keras.layers.Dense(2),
                keras.Sequential([model_of(lambda t: tfd.Normal(t, 1.0))]),
            ]
        ),
        X,
    ),
}


@pytest.mark.filterwarnings("ignore:Model doesn't support `jit_compile=True`")
@pytest.mark.parametrize(
    ("case", "jit_compile"), [*((case, "auto") for case in CASES), ("integers", True)]
)
def test_losses_of_keras_see_the_distribution(case, jit_compile):
    make, y = CASES[case]
    model = make()
    model.compile("sgd", loss=negloglik, jit_compile=jit_compile)
    # At a learning rate of zero every way to the loss gives the same number.
    model.optimizer.learning_rate = 0.0
    loss = model.fit(X, y, verbose=0, batch_size=12).history["loss"][0]
    rows = y.reshape(12, -1)
    d = model(X)
    targets = rows if d.tensor_distribution.batch_shape.rank == 2 else rows[:, 0]
    if len(d.event_shape) or y.ndim == 2:
        targets = y
    expected = -np.mean(d.log_prob(targets))
    assert loss == pytest.approx(expected, rel=1e-3)
    assert model.evaluate(X, y, verbose=0) == pytest.approx(loss, rel=1e-3)
    assert model.train_on_batch(X, y) == pytest.approx(loss, rel=1e-3)
    assert model.test_on_batch(X, y) == pytest.approx(loss, rel=1e-3)
    assert model.predict(X, verbose=0).shape[-1:] == d.shape[-1:]


def test_distributions_stay_in_full_precision():
    keras.config.set_dtype_policy("mixed_float16")
    model = keras.Sequential(
        [
            tfpl.DenseFlipout(8, activation="relu"),
            tfpl.DenseLocalReparameterization(8, activation="relu"),
            tfpl.DenseReparameterization(tfpl.MixtureNormal.params_size(2, 1)),
            tfpl.MixtureNormal(2, 1),
            tfpl.KLDivergenceAddLoss(tfd.Independent(tfd.Normal(tf.zeros(1), 1.0), 1)),
        ]
    )
    d = model(X)
    assert d.dtype == d.mean().dtype == d.log_prob(X[:, :1]).dtype == tf.float32
    assert [loss.dtype for loss in model.losses] == [tf.float32] * 4
    assert model.layers[0](X).dtype == tf.float16
    assert {w.dtype for w in model.weights} == {"float32"}
    assert all(np.all(np.isfinite(w)) for w in model.losses)
