import keras
import numpy as np
import pytest
import tensorflow as tf
from scipy import stats

import tfbbb
from tfbbb.bayes.likelihoods import (
    Bernoulli,
    Categorical,
    NegativeBinomial,
    OrderedLogistic,
    Poisson,
)

ROWS, STEPS = 1_000, 250
X = np.random.default_rng(0).uniform(-1.0, 1.0, size=(ROWS, 1)).astype("float32")
KINDS = {
    "bernoulli": lambda: Bernoulli(),
    "categorical": lambda: Categorical(),
    "ordered": lambda: OrderedLogistic(4),
    "ordered, heteroscedastic": lambda: OrderedLogistic(4, heteroscedastic=True),
    "poisson": lambda: Poisson(),
    "negative binomial": lambda: NegativeBinomial(),
    "negative binomial, heteroscedastic": lambda: NegativeBinomial(
        heteroscedastic=True
    ),
}


def linear_network(likelihood):
    if likelihood.task == "regression":
        units = likelihood.num_outputs(2)
    else:
        units = likelihood.num_outputs(2 if isinstance(likelihood, Bernoulli) else 4)
    inputs = keras.Input((1,))
    outputs = keras.layers.Dense(units, kernel_initializer="zeros")(inputs)
    return tfbbb.BayesianModel(inputs, outputs, likelihood=likelihood)


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", KINDS)
def test_fit_recovers_the_distribution_of_simulated_targets(kind, tmp_path):
    generator = np.random.default_rng(1)
    model = linear_network(KINDS[kind]())
    likelihood, weights = model.likelihood, model.trainable_variables
    if likelihood.task == "regression":
        likelihood.adapt(generator.negative_binomial(2.0, 0.3, size=(500, 2)))
    else:
        likelihood.adapt(generator.integers(likelihood.num_classes, size=500))
    start = [weight.numpy() for weight in weights]
    for weight, value in zip(weights, start, strict=True):
        weight.assign(value + np.resize([1.5, -0.8, 0.6], value.shape))
    noise = generator.normal(size=(ROWS, likelihood.noise_size))
    y = likelihood.sample(model(X), noise).numpy()
    of_truth = float(np.sum(likelihood.log_prob(y, model(X))))
    truth = likelihood.mean(model(X)).numpy()
    for weight, value in zip(weights, start, strict=True):
        weight.assign(value)

    rate = keras.optimizers.schedules.CosineDecay(0.1, STEPS)
    model.compile(keras.optimizers.Adam(rate), jit_compile=False)
    steps = tf.data.Dataset.from_tensors((X, y)).repeat(STEPS)
    model.fit(steps, dataset_size=ROWS, shuffle=False, verbose=0)

    # Wilks (1938): twice the log ratio of the likelihoods of maximum and truth is
    # chi-square, with one degree of freedom per identified parameter.
    number = sum(np.size(value) for value in start)
    ratio = 2.0 * (float(np.sum(likelihood.log_prob(y, model(X)))) - of_truth)
    assert 0.0 < ratio < stats.chi2.ppf(0.999, number)
    # The truth is no constant, and the fit is nearer to it than a constant is.
    error = np.square(likelihood.mean(model(X)) - truth).mean()
    assert error < 0.1 * np.square(truth - truth.mean(axis=0)).mean()

    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(
        loaded.likelihood.log_prob(y, loaded(X)),
        likelihood.log_prob(y, model(X)),
        rtol=1e-6,
    )
    assert loaded.likelihood.adapted
    assert loaded.likelihood.get_config() == likelihood.get_config()


@pytest.mark.parametrize("kind", ["bernoulli", "ordered", "poisson"])
def test_members_of_a_bayesian_model_train_and_predict(kind):
    likelihood = KINDS[kind]()
    inputs = keras.Input((1,))
    outputs = tfbbb.layers.DenseVariational(1)(inputs)
    model = tfbbb.BayesianModel(inputs, outputs, likelihood=likelihood, members=3)
    generator = np.random.default_rng(2)
    rates = np.exp(X)
    y = generator.poisson(rates) if kind == "poisson" else (X[:, 0] > 0.0).astype(int)
    model.compile(tfbbb.optimizers.Adam(0.05))
    history = model.fit(X, y, epochs=3, verbose=0).history
    assert history["nll"][-1] < history["nll"][0]
    prediction = model.predictive(X[:5], num_samples=30)
    assert np.isfinite(prediction.log_prob(y[:5])).all()
    np.testing.assert_allclose(
        prediction.variance, prediction.epistemic + prediction.aleatoric
    )
    if kind == "poisson":
        lower, upper = prediction.interval(0.8)
        assert np.all(lower <= upper)
        np.testing.assert_array_equal(lower, np.floor(lower))
