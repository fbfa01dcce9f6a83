import numpy as np
import pytest
from scipy import stats

from tfbbb.bayes.likelihoods import NormalMixture

GENERATOR = np.random.default_rng(0)
TARGETS = np.array([2000.0, -3.0]) + np.array([50.0, 0.01]) * GENERATOR.normal(
    size=(40, 2)
)


def built(components, num_targets=2):
    likelihood = NormalMixture(components)
    likelihood.build((None, likelihood.num_outputs(num_targets)))
    likelihood.adapt(TARGETS[:, :num_targets])
    return likelihood


def reference(likelihood, outputs):
    """Returns weights and normals of SciPy, [..., k, components]."""
    parameters = {k: x.numpy() for k, x in likelihood.parameters(outputs).items()}
    normals = stats.norm(parameters["loc"], parameters["scale"])
    return parameters["probs"], normals


def test_is_the_weighted_sum_of_normals():
    likelihood = built(3)
    outputs = GENERATOR.normal(size=(7, likelihood.num_outputs(2)))
    weights, normals = reference(likelihood, outputs)
    assert weights.shape == (7, 2, 3)
    np.testing.assert_allclose(weights.sum(axis=-1), 1.0)
    values = TARGETS[:7]
    density = (weights * normals.pdf(values[..., np.newaxis])).sum(axis=-1)
    below = (weights * normals.cdf(values[..., np.newaxis])).sum(axis=-1)
    mean = (weights * normals.mean()).sum(axis=-1)
    squares = (weights * (normals.var() + normals.mean() ** 2)).sum(axis=-1)
    close = {"rtol": 1e-9}
    np.testing.assert_allclose(likelihood.prob(values, outputs), density, **close)
    np.testing.assert_allclose(likelihood.cdf(values, outputs), below, **close)
    np.testing.assert_allclose(likelihood.mean(outputs), mean, **close)
    # A difference of squares, 1e5 times as large.
    variance = squares - mean**2
    np.testing.assert_allclose(likelihood.variance(outputs), variance, rtol=1e-6)
    np.testing.assert_allclose(
        likelihood.log_prob(values, outputs), np.log(density).sum(axis=-1), **close
    )


def test_outputs_are_logits_then_locations_then_noise_each_by_component():
    likelihood = NormalMixture(2)
    likelihood.build((None, 12))
    outputs = np.zeros((1, 12))
    outputs[0, [0, 5, 11]] = np.log(3.0), 7.0, 50.0
    parameters = likelihood.parameters(outputs)
    # The first component of the first target, of the second target's locations the
    # first, and the second component of the second target.
    np.testing.assert_allclose(parameters["probs"][0, 0], [0.75, 0.25])
    np.testing.assert_allclose(parameters["probs"][0, 1], [0.5, 0.5])
    start = NormalMixture(2)
    start.build((None, 12))
    moved = parameters["loc"] - start.parameters(np.zeros((1, 12)))["loc"]
    np.testing.assert_allclose(moved[0], [[0.0, 0.0], [7.0, 0.0]], atol=1e-12)
    widened = parameters["scale"] / start.parameters(np.zeros((1, 12)))["scale"]
    np.testing.assert_allclose(widened[0, :, 0], 1.0)
    assert widened[0, 1, 1] > 10.0


@pytest.mark.parametrize("components", [1, 2, 10])
def test_components_start_apart_with_mean_and_variance_of_the_targets(components):
    likelihood = built(components)
    outputs = np.zeros((1, likelihood.num_outputs(2)))
    np.testing.assert_allclose(likelihood.mean(outputs)[0], TARGETS.mean(axis=0))
    np.testing.assert_allclose(
        likelihood.variance(outputs)[0], TARGETS.var(axis=0), rtol=1e-3
    )
    locations = likelihood.parameters(outputs)["loc"].numpy()[0, 0]
    assert len(set(locations)) == components


# Far apart, of very unequal width, and one within the other.
@pytest.mark.parametrize("raw", [[0, 0, -9, 9, 0, 0], [1, 0, 0, 0, -6, 4]])
def test_quantiles_are_right_for_any_components(raw):
    likelihood = NormalMixture(2)
    likelihood.build((None, 6))
    outputs = np.array([raw], dtype=np.float64)
    levels = np.array([1e-6, 0.1, 0.5, 0.5000001, 0.73, 0.99])[:, np.newaxis]
    repeated = np.repeat(outputs, len(levels), axis=0)
    values = likelihood.quantile(levels, repeated)
    np.testing.assert_allclose(likelihood.cdf(values, repeated), levels, rtol=1e-9)


def test_network_needs_three_outputs_per_component_and_target():
    with pytest.raises(ValueError, match=r"6 outputs per target \(logits, then loc"):
        NormalMixture(2).build((None, 7))
