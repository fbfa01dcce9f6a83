"""A fit recovers the distribution of targets that are simulated from it."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from scipy import stats

import tfbbb
from tests.bayes.likelihoods.test_contract import EVERY, made, size_of, targets_of
from tfbbb import likelihoods

ROWS, STEPS = 1_000, 250
X = np.random.default_rng(0).uniform(-1.0, 1.0, size=(ROWS, 1)).astype("float32")


def linear_network(likelihood):
    units = likelihood.num_outputs(size_of(likelihood, num_targets=2))
    inputs = keras.Input((1,))
    outputs = keras.layers.Dense(units, kernel_initializer="zeros")(inputs)
    return tfbbb.BayesianModel(inputs, outputs, likelihood=likelihood)


@pytest.mark.usefixtures("compiled_functions")
@pytest.mark.few(2)
@pytest.mark.parametrize(("name", "arguments"), EVERY)
def test_fit_recovers_the_distribution_of_simulated_targets(name, arguments, tmp_path):
    generator = np.random.default_rng(1)
    model = linear_network(made(name, arguments))
    likelihood, weights = model.likelihood, model.trainable_variables
    likelihood.adapt(targets_of(likelihood, rows=500, num_targets=2))
    start = [weight.numpy() for weight in weights]
    for weight, value in zip(weights, start, strict=True):
        weight.assign(value + generator.uniform(-0.7, 0.7, size=value.shape))
    noise = generator.normal(size=(ROWS, likelihood.noise_size))
    y = likelihood.sample(model(X), noise).numpy()
    of_truth = float(np.sum(likelihood.log_prob(y, model(X))))
    if isinstance(likelihood, likelihoods.NormalMixture):
        # Its likelihood has several maxima: start beside the one that is sought.
        start = [w + generator.normal(scale=0.3, size=w.shape) for w in weights]
    for weight, value in zip(weights, start, strict=True):
        weight.assign(value)

    rate = keras.optimizers.schedules.CosineDecay(0.1, STEPS)
    model.compile(keras.optimizers.Adam(rate), jit_compile=False)
    steps = tf.data.Dataset.from_tensors((X, y)).repeat(STEPS)
    model.fit(steps, dataset_size=ROWS, shuffle=False, verbose=0)

    # Wilks (1938): for parameters in the interior, twice the log ratio of the
    # likelihoods of maximum and truth is chi-square.
    number = sum(np.size(value) for value in start)
    ratio = 2.0 * (float(np.sum(likelihood.log_prob(y, model(X)))) - of_truth)
    assert 0.0 < ratio < stats.chi2.ppf(0.999, number)

    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(
        loaded.likelihood.log_prob(y, loaded(X)),
        likelihood.log_prob(y, model(X)),
        rtol=1e-6,
    )
    assert loaded.likelihood.adapted
    assert loaded.likelihood.get_config() == likelihood.get_config()
