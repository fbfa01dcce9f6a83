"""The Laplace approximation against closed forms and quadrature."""

import keras
import numpy as np
import pytest
from scipy import special, stats

import tfbbb
from tfbbb import layers, likelihoods, posteriors, priors
from tfbbb.inference import Laplace

N = 60
GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(N, 3)).astype("float32")
PHI = np.hstack([X, np.ones((N, 1))]).astype(float)
Y = (PHI @ [1.0, -2.0, 0.5, 0.7] + 0.3 * GENERATOR.normal(size=N)).astype("float32")
CLASSES = (PHI @ [1.0, -2.0, 0.5, 0.2] + GENERATOR.logistic(size=N) > 0).astype(int)
NOISE, SCALES = 0.5, np.array([0.8, 0.8, 0.8, 1.5])


def linear(weights, likelihood, use_bias=True):
    """Returns a linear model with these weights, and the priors of `SCALES`."""
    inputs = keras.Input((3,))
    layer = layers.DenseVariational(
        1,
        use_bias=use_bias,
        posterior="point",
        bias_posterior="point",
        prior=priors.Normal(scale=0.8),
        bias_prior=priors.Normal(scale=1.5),
        name="output",
    )
    model = tfbbb.BayesianModel(inputs, layer(inputs), likelihood=likelihood)
    layer.kernel.variables["mean"].assign(weights[:3, np.newaxis])
    if use_bias:
        layer.bias.variables["mean"].assign(weights[3:])
    return model


def regression(features=PHI, scales=SCALES, noise=NOISE):
    """Returns mean and covariance of the conjugate posterior and the log evidence."""
    precision = features.T @ features / noise**2 + np.diag(scales**-2.0)
    covariance = np.linalg.inv(precision)
    mean = covariance @ features.T @ Y.astype(float) / noise**2
    of_targets = (features * scales**2) @ features.T + noise**2 * np.eye(N)
    evidence = stats.multivariate_normal(np.zeros(N), of_targets).logpdf(
        Y.astype(float)
    )
    return mean, covariance, evidence


def covariance_of(model):
    """Returns the covariance of all weights of a model with a `JointNormal`."""
    rows = [
        weight.posterior.factor(weight.parameters).numpy().astype(float)
        for weight in model.variational_weights
    ]
    factor = np.concatenate(rows)
    return factor @ factor.T


def variances_of(model):
    return np.concatenate([np.ravel(w.variance) for w in model.variational_weights])


@pytest.fixture(scope="module")
def network():
    """Returns a network of two layers with some weights."""
    inputs = keras.Input((3,))
    hidden = layers.DenseVariational(4, "tanh", posterior="point", name="hidden")(
        inputs
    )
    outputs = layers.DenseVariational(2, posterior="point", name="last")(hidden)
    model = tfbbb.BayesianModel(inputs, outputs, likelihood="categorical")
    for weight in model.variational_weights:
        mean = weight.variables["mean"]
        mean.assign(0.7 * GENERATOR.normal(size=mean.shape))
    return model


def test_full_is_the_conjugate_posterior_and_evidence():
    mean, covariance, evidence = regression()
    model = linear(mean, likelihoods.Normal(scale=NOISE, standardize=False))
    new = Laplace("full", prior_precision=None).fit(model, X, Y, verbose=0)
    # Variables are in single precision.
    np.testing.assert_allclose(covariance_of(new), covariance, rtol=1e-6, atol=1e-9)
    assert new.log_evidence == pytest.approx(evidence, rel=1e-6)


def test_kronecker_factors_are_exact_for_a_kernel_of_one_unit():
    features, scales = PHI[:, :3], SCALES[:3]
    mean, covariance, evidence = regression(features, scales)
    likelihood = likelihoods.Normal(scale=NOISE, standardize=False)
    model = linear(mean, likelihood, use_bias=False)
    new = Laplace("kron", prior_precision=None).fit(model, X, Y, verbose=0)
    draws = np.asarray(new.layers[-1].kernel.draw(np.array([0, 1]), 40_000))[..., 0]
    error = np.sqrt(
        (np.outer(np.diag(covariance), np.diag(covariance)) + covariance**2) / 40_000
    )
    assert (np.abs(np.cov(draws.T) - covariance) < 5 * error).all()
    np.testing.assert_allclose(variances_of(new), np.diag(covariance), rtol=1e-6)
    assert new.log_evidence == pytest.approx(evidence, rel=1e-6)


def test_diagonal_is_exact_for_orthogonal_inputs():
    signs = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]] * 15, "float32")
    features = np.hstack([signs, np.ones((N, 1))]).astype(float)
    mean, covariance, evidence = regression(features)
    model = linear(mean, likelihoods.Normal(scale=NOISE, standardize=False))
    new = Laplace("diagonal", prior_precision=None).fit(model, signs, Y, verbose=0)
    np.testing.assert_allclose(variances_of(new), np.diag(covariance), rtol=1e-6)
    assert new.log_evidence == pytest.approx(evidence, rel=1e-6)


def test_evidence_chooses_precision_and_noise_of_a_linear_model():
    mean, _, _ = regression()
    model = linear(mean, likelihoods.Normal(standardize=False))
    method = Laplace("full")
    # The mode depends on precision and noise: iterate as MacKay (1992) does.
    for _ in range(8):
        new = method.fit(model, X, Y, verbose=0)
        (noise,) = new.diagnostics["noise"]
        precision = new.diagnostics["prior_precision"]["output/kernel"]
        scales = np.full(4, precision**-0.5)
        mean, _, _ = regression(PHI, scales, noise)
        model.layers[-1].kernel.variables["mean"].assign(mean[:3, np.newaxis])
        model.layers[-1].bias.variables["mean"].assign(mean[3:])
    evidence = regression(PHI, scales, noise)[2]
    for scale_factor, noise_factor in ((1.1, 1), (0.9, 1), (1, 1.1), (1, 0.9)):
        other = regression(PHI, scales * scale_factor, noise * noise_factor)[2]
        assert other < evidence
    assert new.log_evidence == pytest.approx(evidence, rel=1e-5)


def test_precision_of_the_evidence_solves_the_fixed_point(network):
    new = Laplace("full").fit(network, X, CLASSES, verbose=0)
    precisions = new.diagnostics["prior_precision"]
    for layer in new.variational_layers:
        precision = precisions[f"{layer.name}/kernel"]
        weights = layer.variational_weights
        squares = sum(float(np.sum(np.square(w.mean))) for w in weights)
        traces = sum(float(np.sum(w.variance)) for w in weights)
        size = sum(w.size for w in weights)
        assert precision * squares == pytest.approx(size - precision * traces, rel=1e-3)


def test_logistic_regression_is_that_of_numpy():
    weights = np.array([0.9, -1.8, 0.4, 0.1])
    model = linear(weights, "bernoulli")
    probabilities = special.expit(PHI @ weights)
    spread = probabilities * (1 - probabilities)
    gradients = PHI * (CLASSES - probabilities)[:, np.newaxis]
    prior = np.diag(SCALES**-2.0)
    exact = {
        "ggn": PHI.T @ (PHI * spread[:, np.newaxis]) + prior,
        "empirical_fisher": gradients.T @ gradients + prior,
    }
    signs = 2 * CLASSES - 1
    log_joint = special.log_expit(signs * (PHI @ weights)).sum()
    log_joint += stats.norm(0, SCALES).logpdf(weights).sum()
    for curvature, precision in exact.items():
        method = Laplace("full", curvature=curvature, prior_precision=None)
        new = method.fit(model, X, CLASSES, verbose=0)
        covariance = np.linalg.inv(precision)
        np.testing.assert_allclose(covariance_of(new), covariance, rtol=2e-5, atol=1e-7)
        evidence = log_joint + 0.5 * np.linalg.slogdet(2 * np.pi * covariance)[1]
        assert new.log_evidence == pytest.approx(evidence, rel=1e-5)


def test_last_layer_leaves_the_others_points(network):
    method = Laplace("full", "last_layer", prior_precision=2.0)
    new = method.fit(network, X, CLASSES, verbose=0)
    hidden, last = new.variational_layers
    assert hidden.posterior == posteriors.Point()
    assert last.posterior == posteriors.JointNormal(size=10)
    full = Laplace("full", prior_precision=2.0).fit(network, X, CLASSES, verbose=0)
    precision = np.linalg.inv(covariance_of(full))[16:, 16:]
    found = np.concatenate([np.ravel(w.variance) for w in last.variational_weights])
    np.testing.assert_allclose(found, np.diag(np.linalg.inv(precision)), rtol=1e-4)


def test_sample_weights_count_rows(network):
    weights = GENERATOR.integers(0, 3, size=N)
    method = Laplace("kron", prior_precision=1.0)
    weighted = method.fit(network, X, CLASSES, sample_weight=weights, verbose=0)
    repeated = method.fit(
        network, np.repeat(X, weights, 0), np.repeat(CLASSES, weights), verbose=0
    )
    assert weighted.log_evidence == pytest.approx(repeated.log_evidence, rel=1e-6)
    np.testing.assert_allclose(
        variances_of(weighted), variances_of(repeated), rtol=1e-5
    )


def test_the_given_model_stays_as_it_is(network):
    before = [variable.numpy() for variable in network.variables]
    Laplace("diagonal").fit(network, X, CLASSES, verbose=0)
    for variable, value in zip(network.variables, before, strict=True):
        np.testing.assert_array_equal(variable, value)
    assert network.log_evidence is None


def test_a_keras_model_becomes_bayesian():
    network = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    weights = np.linalg.lstsq(PHI, Y, rcond=None)[0]
    network.set_weights([weights[:3, np.newaxis], weights[3:]])
    new = Laplace("kron").fit(network, X, Y, likelihood="normal", verbose=0)
    found = new.predictive(X).mean[:, 0]
    np.testing.assert_allclose(found, PHI @ weights, rtol=1e-4, atol=1e-4)
    # Rows were drawn with a noise of 0.3.
    assert 0.2 < new.diagnostics["noise"][0] < 0.4


def model_of(*operations, likelihood="normal"):
    tensor = inputs = keras.Input((3,))
    for operation in operations:
        tensor = operation(tensor)
    return tfbbb.BayesianModel(inputs, tensor, likelihood=likelihood)


def test_refuses_batch_normalization_except_before_the_last_layer():
    model = model_of(
        layers.DenseVariational(4),
        keras.layers.BatchNormalization(name="norm"),
        layers.DenseVariational(1),
    )
    with pytest.raises(ValueError, match=r"\"last_layer\".*Received:.*'norm'"):
        Laplace("full").fit(model, X, Y, verbose=0)
    method = Laplace("full", "last_layer")
    assert np.isfinite(method.fit(model, X, Y, verbose=0).log_evidence)


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        (
            lambda: model_of(layers.DenseVariational(1, prior="horseshoe")),
            {"prior_precision": None},
            "marginal_likelihood",
        ),
        (
            lambda: model_of(layers.DenseVariational(2000), layers.DenseVariational(1)),
            {"structure": "full"},
            "at most 4096",
        ),
        (
            lambda: model_of(
                layers.DenseVariational(1, name="one"), keras.layers.Softmax()
            ),
            {"subset": "last_layer"},
            r"subset='last_layer', layers \['one'\]",
        ),
    ],
)
def test_refuses_what_has_no_approximation(model, options, message):
    model = model()
    size = model.output_shape[-1]
    targets = np.abs(np.round(X[:, :size]))
    with pytest.raises(ValueError, match=message):
        Laplace(**options).fit(model, X, targets, verbose=0)
