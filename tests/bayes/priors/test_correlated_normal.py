"""The correlated normal prior against SciPy and TensorFlow Probability."""

import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp
from scipy import stats

import tfbbb
from tests.variational_weights import member_of, variational_weight
from tfbbb import posteriors, priors
from tfbbb.bayes.divergences import closed_form_of, kl_divergence

GENERATOR = np.random.default_rng(0)
ROOT = np.tril(GENERATOR.normal(size=(4, 4))) + 2.0 * np.eye(4)
OF_UNITS = ROOT @ ROOT.T
ROOT = 0.3 * np.tril(GENERATOR.normal(size=(12, 12))) + np.eye(12)
OF_ALL = ROOT @ ROOT.T
EQUAL = np.full((4, 4), 0.3) + 0.7 * np.eye(4)
# Each prior of a weight [4, 3] with fan-in 4, and its covariance over all 12 weights.
CASES = {
    "number": (priors.CorrelatedNormal(0.3), 0.25 * np.kron(EQUAL, np.eye(3))),
    "units": (priors.CorrelatedNormal(OF_UNITS, 1.0), np.kron(OF_UNITS, np.eye(3))),
    "all": (priors.CorrelatedNormal(OF_ALL, 0.5), 0.25 * OF_ALL),
}
FAMILIES = [
    posteriors.MeanFieldNormal(),
    posteriors.FullCovarianceNormal(),
    posteriors.LowRankNormal(rank=2),
    posteriors.MatrixNormal("diagonal"),
    posteriors.MatrixNormal("full"),
]
each_case = pytest.mark.parametrize("case", CASES)


def covariance_of(weight):
    """The covariance of q, from the draws of unit noise."""
    shape = weight.posterior.noise_shape(weight.shape)
    unit = np.eye(int(np.prod(shape)), dtype="float32").reshape(-1, *shape)
    root = np.asarray(weight.perturb(tf.constant(unit)), np.float64).reshape(-1, 12)
    return root.T @ root


@each_case
def test_log_prob_is_that_of_scipy(case):
    prior, covariance = CASES[case]
    weights = GENERATOR.normal(size=(5, 4, 3)).astype("float32")
    exact = stats.multivariate_normal(np.zeros(12), covariance)
    found = prior.log_prob({}, weights, (4, 3), 4)
    np.testing.assert_allclose(
        found, exact.logpdf(weights.reshape(5, 12)), rtol=1e-5, atol=1e-4
    )


@each_case
@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_divergence_is_that_of_tfp(case, family):
    prior, covariance = CASES[case]
    weight = variational_weight(family, prior, fan_in=4, spread=0.3)
    if closed_form_of(weight) is None:
        assert case == "all"
        assert family == posteriors.MatrixNormal("full")
        return
    normal = tfp.distributions.MultivariateNormalTriL
    q = normal(
        np.ravel(weight.mean).astype("float64"),
        np.linalg.cholesky(covariance_of(weight)),
    )
    p = normal(np.zeros(12), np.linalg.cholesky(covariance))
    exact = tfp.distributions.kl_divergence(q, p)
    np.testing.assert_allclose(kl_divergence(weight, None), exact, rtol=2e-5)


@pytest.mark.parametrize("family", FAMILIES[:3], ids=repr)
def test_members_are_a_loop_over_single_weights(family):
    weight = variational_weight(family, CASES["units"][0], members=3)
    divergences = kl_divergence(weight, None)
    for k, divergence in enumerate(divergences):
        alone = kl_divergence(member_of(weight, k), None)
        np.testing.assert_allclose(divergence, alone, rtol=1e-5)


def test_draws_estimate_the_divergence_without_a_closed_form():
    prior, covariance = CASES["all"]
    weight = variational_weight(posteriors.MatrixNormal("full"), prior, spread=0.3)
    found = np.asarray(
        kl_divergence(weight, lambda: weight.draw(tf.constant([0, 1]), 20_000))
    )
    mean = np.ravel(weight.mean)
    q, precision = covariance_of(weight), np.linalg.inv(covariance)
    exact = 0.5 * (np.trace(precision @ q) + mean @ precision @ mean - 12)
    exact += 0.5 * (np.linalg.slogdet(covariance)[1] - np.linalg.slogdet(q)[1])
    assert abs(found.mean() - exact) < 4.5 * found.std() / np.sqrt(len(found))


def test_layer_trains_with_it_and_is_saved(tmp_path):
    inputs = keras.Input((4,))
    layer = tfbbb.layers.DenseVariational(
        3, prior=priors.CorrelatedNormal(OF_UNITS), bias_prior="correlated_normal"
    )
    model = tfbbb.BayesianModel(inputs, layer(inputs))
    model.compile(run_eagerly=True)
    model.fit(np.ones((8, 4)), np.eye(8, 3), verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.layers[-1].prior == layer.prior


@pytest.mark.parametrize(
    ("correlation", "message"),
    [
        (1.0, "number between -1 and 1"),
        ("strong", "number between -1 and 1"),
        ([[1.0, 2.0], [2.0, 1.0]], "least eigenvalue is -1"),
        ([[1.0, 0.5], [0.4, 1.0]], "not symmetric"),
        (np.ones((2, 3)), "positive definite"),
    ],
)
def test_no_covariance_is_refused(correlation, message):
    with pytest.raises(ValueError, match=message):
        priors.CorrelatedNormal(correlation)


def test_a_matrix_that_does_not_fit_the_weight_is_refused():
    with pytest.raises(ValueError, match="a matrix of 4 rows for 'dense/kernel'"):
        variational_weight(prior=CASES["units"][0], shape=(5, 3), path="dense/kernel")
    with pytest.raises(ValueError, match="less than -1 / 3"):
        variational_weight(prior=priors.CorrelatedNormal(-0.5))
