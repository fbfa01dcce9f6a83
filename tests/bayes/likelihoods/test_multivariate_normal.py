import keras
import numpy as np
import pytest
from scipy import stats

import tfbbb
from tfbbb.bayes.likelihoods import MultivariateNormal

GENERATOR = np.random.default_rng(0)
TARGETS = np.array([2000.0, -3.0, 0.0]) + GENERATOR.normal(size=(60, 3)) @ np.array(
    [[50.0, 0.02, 1.0], [0.0, 0.01, -2.0], [0.0, 0.0, 0.5]]
)


def built(num_targets=3, heteroscedastic=False):
    likelihood = MultivariateNormal(heteroscedastic=heteroscedastic)
    likelihood.build((None, likelihood.num_outputs(num_targets)))
    likelihood.adapt(TARGETS[:, :num_targets])
    for variable in likelihood.trainable_variables:
        variable.assign(variable + GENERATOR.uniform(-1.0, 1.0, size=variable.shape))
    return likelihood


def outputs_for(likelihood, *rows):
    width = likelihood.num_outputs(likelihood.num_targets)
    return np.random.default_rng(1).normal(size=(*rows, width))


@pytest.mark.parametrize(
    ("heteroscedastic", "with_variance"), [(False, True), (True, False), (True, True)]
)
def test_agrees_with_the_multivariate_normal_of_scipy(heteroscedastic, with_variance):
    likelihood = built(heteroscedastic=heteroscedastic)
    outputs = outputs_for(likelihood, 5)
    covariance = likelihood.covariance(outputs).numpy()
    mean = likelihood.mean(outputs).numpy()
    variances = np.diagonal(covariance, axis1=1, axis2=2)
    np.testing.assert_allclose(likelihood.variance(outputs), variances)
    if with_variance:
        added = GENERATOR.uniform(0.1, 2.0, size=(5, 3))
        outputs = likelihood.with_location_variance(outputs, added)
        raw = added * likelihood.target_scale.numpy().astype(float) ** 2
        np.testing.assert_allclose(likelihood.location_variance(outputs), raw)
        np.testing.assert_allclose(likelihood.variance(outputs), variances)
        covariance = covariance + np.einsum("nk,kl->nkl", raw, np.eye(3))
    joint = [
        stats.multivariate_normal(m, c) for m, c in zip(mean, covariance, strict=True)
    ]
    deviations = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
    of_each = stats.norm(mean, deviations)
    y = of_each.ppf(GENERATOR.uniform(0.05, 0.95, size=(5, 3)))
    np.testing.assert_allclose(
        likelihood.log_prob(y, outputs),
        [density.logpdf(row) for density, row in zip(joint, y, strict=True)],
        rtol=1e-7,
    )
    np.testing.assert_allclose(likelihood.cdf(y, outputs), of_each.cdf(y), rtol=1e-9)
    np.testing.assert_allclose(likelihood.prob(y, outputs), of_each.pdf(y), rtol=1e-9)
    np.testing.assert_allclose(
        likelihood.quantile(of_each.cdf(y), outputs), y, rtol=1e-9
    )


@pytest.mark.parametrize("heteroscedastic", [False, True])
def test_samples_have_the_covariance(heteroscedastic):
    likelihood = built(heteroscedastic=heteroscedastic)
    outputs = outputs_for(likelihood, 1)
    noise = GENERATOR.normal(size=(20_000, 3))
    drawn = likelihood.sample(np.repeat(outputs, 20_000, axis=0), noise).numpy()
    factor = likelihood.parameters(outputs)["scale_tril"].numpy()[0]
    white = np.linalg.solve(factor, np.transpose(drawn - likelihood.mean(outputs)))
    # Entries of the covariance of 20 000 white draws are off by 1 / sqrt(20 000), the
    # diagonal by sqrt(2) of that; five standard errors.
    np.testing.assert_allclose(np.cov(white), np.eye(3), atol=5.0 * 0.01)


def test_number_of_outputs_is_that_of_means_and_a_factor():
    with pytest.raises(
        ValueError, match=r"k \+ k \(k \+ 1\) / 2 outputs for k targets"
    ):
        MultivariateNormal(heteroscedastic=True).build((None, 6))


def test_means_of_several_targets_are_integrated():
    likelihood = MultivariateNormal(heteroscedastic=True)
    inputs = keras.Input((2,))
    layer = tfbbb.layers.DenseVariational(likelihood.num_outputs(3))
    model = tfbbb.BayesianModel(inputs, layer(inputs), likelihood=likelihood)
    x = GENERATOR.normal(size=(5, 2)).astype("float32")
    kernel, bias = layer.kernel, layer.bias
    mean = (x @ kernel.mean + bias.mean)[:, :3]
    variance = (x**2 @ kernel.variance + bias.variance).numpy()[:, :3]
    found = model.predictive(x, method="local")
    np.testing.assert_allclose(found.mean, mean, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(found.epistemic, variance, rtol=1e-4)
    weight = model.predictive(x, 4000, method="weight")
    # Pairs of opposite noise have equal squares: half as many count.
    error = variance * np.sqrt(2 / 2000)
    assert (np.abs(weight.epistemic - variance) < 5 * error).all()
