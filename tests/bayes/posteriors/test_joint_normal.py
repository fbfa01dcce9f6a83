"""The normal over all weights of a model: shared noise, entropy, training."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from scipy import stats

import tfbbb
from tests.repeated_calls import repeated
from tests.variational_weights import variational_weight
from tfbbb.bayes.posteriors import JointNormal

X = np.random.default_rng(0).normal(size=(16, 2)).astype("float32")
DRAWS = 2000


@pytest.fixture(scope="module")
def model():
    """Returns a network of nine weights with one correlated posterior."""
    keras.utils.set_random_seed(0)
    family = JointNormal(size=9)
    options = {
        "posterior": family,
        "bias_posterior": family,
        "prior": "normal",
        "bias_prior": "normal",
    }
    inputs = keras.Input((2,))
    hidden = tfbbb.layers.DenseVariational(2, **options)(inputs)
    outputs = tfbbb.layers.DenseVariational(1, **options)(hidden)
    model = tfbbb.BayesianModel(inputs, outputs, likelihood="normal")
    rows = np.tril(np.random.default_rng(1).normal(size=(9, 9))).astype("float32") / 3
    first = 0
    for weight in weights_of(model):
        weight.variables["factor"].assign(rows[first : first + weight.size])
        weight.variables["first"].assign(first)
        first += weight.size
    model.factor = rows
    return model


def weights_of(model):
    return [
        weight
        for layer in model.variational_layers
        for weight in layer.variational_weights
    ]


def outputs_of(model, factor, noise):
    """Returns the outputs [S, rows, 1] of draws with noise [S, 9]."""
    vectors = np.concatenate([np.ravel(w.mean) for w in weights_of(model)])
    first, bias, second, last = np.split(vectors + noise @ factor.T, [4, 6, 8], axis=1)
    hidden = X @ first.reshape(-1, 2, 2) + bias[:, np.newaxis]
    return hidden @ second.reshape(-1, 2, 1) + last[:, np.newaxis]


def test_variance_is_that_of_the_rows_of_the_factor(model):
    found = np.concatenate([np.ravel(w.variance) for w in weights_of(model)])
    np.testing.assert_allclose(found, (model.factor**2).sum(axis=1), rtol=1e-5)


def test_entropies_of_the_tensors_add_up_to_that_of_q(model):
    found = sum(
        float(w.posterior.entropy(w.parameters, w.shape)) for w in weights_of(model)
    )
    covariance = model.factor.astype(float) @ model.factor.T
    exact = stats.multivariate_normal(np.zeros(9), covariance).entropy()
    assert found == pytest.approx(exact, rel=1e-5)


def test_predictions_and_ordinary_calls_have_the_correlations_of_q(model):
    noise = np.random.default_rng(2).normal(size=(20 * DRAWS, 9))
    exact = outputs_of(model, model.factor, noise)[..., 0]
    ordinary = np.asarray(repeated(lambda: model(X), DRAWS))[..., 0]
    # Pairs of opposite noise have nearly equal squares: four times the draws.
    predicted = model.predictive(X, num_samples=4 * DRAWS, seed=3)
    means = {"ordinary": ordinary.mean(axis=0), "predicted": predicted.mean[:, 0]}
    variances = {
        "ordinary": ordinary.var(axis=0),
        "predicted": predicted.epistemic[:, 0],
    }
    spread = exact.std(axis=0) / np.sqrt(DRAWS)
    fourth = ((exact - exact.mean(axis=0)) ** 4).mean(axis=0)
    error = np.sqrt((fourth - exact.var(axis=0) ** 2) / DRAWS)
    for name in means:
        assert (np.abs(means[name] - exact.mean(axis=0)) < 5 * spread).all(), name
        assert (np.abs(variances[name] - exact.var(axis=0)) < 5 * error).all(), name


def test_refuses_tensors_larger_than_the_posterior():
    with pytest.raises(ValueError, match=r"size=3, shape=\(4, 3\)"):
        variational_weight(JointNormal(3))


def test_a_tensor_has_no_density_of_its_own():
    weight = variational_weight(JointNormal(12))
    with pytest.raises(ValueError, match="no density of one tensor"):
        weight.log_prob(tf.zeros((4, 3)))
