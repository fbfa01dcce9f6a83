import math

import keras
import numpy as np
import pytest
import tensorflow as tf
from scipy import special, stats

import tfbbb
from tfbbb.bayes.likelihoods import Laplace, Normal

GENERATOR = np.random.default_rng(0)
# Two targets of unequal size, far from zero.
TARGETS = np.array([2000.0, -3.0]) + np.array([50.0, 0.01]) * GENERATOR.normal(
    size=(40, 2)
)


def built(num_targets=1, targets=None, **kwargs):
    likelihood = Normal(**kwargs)
    likelihood.build((None, likelihood.num_outputs(num_targets)))
    if targets is not None:
        likelihood.adapt(targets)
    return likelihood


KINDS = {
    "learned": {},
    "given": {"scale": 0.7},
    "heteroscedastic": {"heteroscedastic": True},
}


@pytest.mark.parametrize("kind", KINDS)
def test_noise_is_a_softplus_in_standard_units_or_as_given(kind):
    likelihood = built(2, TARGETS, **KINDS[kind])
    outputs = GENERATOR.normal(size=(5, likelihood.num_outputs(2)))
    raw = outputs[:, 2:]
    if likelihood.learns:
        likelihood.raw_noise.assign([-2.0, 1.0])
        raw = [-2.0, 1.0]
    found = likelihood.parameters(outputs)
    scale = TARGETS.std(axis=0)
    noise = 0.7 if kind == "given" else scale * (np.logaddexp(0.0, raw) + 1e-4)
    # Shift and scale are kept in single precision.
    location = TARGETS.mean(axis=0) + scale * outputs[:, :2]
    np.testing.assert_allclose(found["loc"], location, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(found["scale"], np.broadcast_to(noise, (5, 2)), 1e-6)


def test_known_noise_is_that_of_the_row_in_units_of_the_targets():
    likelihood = built(2, TARGETS, known_scale=True)
    assert likelihood.num_outputs(2) == 4
    assert not likelihood.learns
    standard = GENERATOR.normal(size=(5, 2))
    scale = np.array([60.0, 0.02]) * GENERATOR.uniform(0.5, 2.0, size=(5, 2))
    outputs = np.concatenate([standard, scale], axis=1)
    expected = stats.norm(TARGETS.mean(axis=0) + TARGETS.std(axis=0) * standard, scale)
    np.testing.assert_allclose(
        likelihood.log_prob(TARGETS[:5], outputs),
        expected.logpdf(TARGETS[:5]).sum(axis=1),
        rtol=1e-5,
    )
    np.testing.assert_allclose(likelihood.variance(outputs), scale**2)
    copy = Normal.from_config(likelihood.get_config())
    assert copy.known_scale
    with pytest.raises(ValueError, match=r"ask for one of them.*scale=2\.0"):
        Normal(scale=2.0, known_scale=True)


def test_a_model_reads_the_known_noise_from_an_input():
    rows = keras.Input((4,))
    mean = tfbbb.layers.DenseVariational(1)(rows[:, :3])
    outputs = keras.layers.Concatenate(dtype="float32")([mean, rows[:, 3:]])
    model = tfbbb.BayesianModel(rows, outputs, likelihood=Normal(known_scale=True))
    model.compile("adam")
    values = GENERATOR.uniform(5.0, 50.0, size=(40, 4))
    model.fit(values, TARGETS[:, :1], epochs=1, verbose=0)
    aleatoric = model.predictive(values).aleatoric
    np.testing.assert_allclose(aleatoric, values[:, 3:] ** 2, rtol=1e-5)
    values[7, 3] = -1.0
    with pytest.raises(ValueError, match="finite"):
        model.predictive(values)


def test_lower_tail_of_the_distribution_function_keeps_its_digits():
    values = tf.constant([[-12.0], [-8.0], [-2.0]])
    # Eight digits of `erfc` in single precision.
    np.testing.assert_allclose(
        built(scale=1.0).cdf(values, tf.zeros((3, 1))), special.ndtr(values), rtol=1e-5
    )


def test_a_large_offset_keeps_single_precision_digits():
    y = 1e5 + GENERATOR.normal(size=(100, 1))
    likelihood = built(1, y)
    standard = (y - y.mean()) / y.std()
    outputs = np.zeros((100, 1), dtype=np.float32)
    # Shift and targets are off by half a unit in the last place, 2^-8, at the most.
    error = 2.0 * 2.0**-8 / y.std()
    tolerance = error * (np.abs(standard[:, 0]) + error) + 2e-3
    expected = stats.norm.logpdf(standard[:, 0]) - math.log(y.std())
    assert np.all(np.abs(likelihood.log_prob(y, outputs) - expected) < tolerance)


@pytest.mark.parametrize(
    ("y", "number"),
    [
        (np.full(5, 0.1), 0.1),
        (1e9 + np.arange(5.0), 1e9),
        (1e-30 * np.arange(5.0), 0.0),
    ],
)
def test_target_that_is_constant_in_single_precision_is_refused(y, number):
    likelihood = built(2)
    with pytest.raises(ValueError, match=rf"Target 1 is constant.*Received: {number}"):
        likelihood.adapt(np.stack([np.arange(5.0), y], axis=1))
    assert not likelihood.adapted


@pytest.mark.parametrize("outputs", [3, None])
def test_heteroscedastic_net_needs_an_even_number_of_outputs(outputs):
    with pytest.raises(ValueError, match="2 outputs per target"):
        Normal(heteroscedastic=True).build((None, outputs))


@pytest.mark.parametrize(
    ("kind", "members", "standardize"),
    [("learned", 3, True), ("given", 1, True), ("heteroscedastic", 1, False)],
)
def test_variance_of_the_location_adds_to_that_of_the_noise(kind, members, standardize):
    likelihood = Normal(**KINDS[kind], standardize=standardize, members=members)
    likelihood.build((None, likelihood.num_outputs(2)))
    likelihood.adapt(TARGETS)
    network = GENERATOR.normal(size=(3, 5, likelihood.num_outputs(2)))
    member = np.arange(3)[:, np.newaxis] % members
    plain = likelihood.of_members(network, member)
    added = GENERATOR.uniform(0.1, 2.0, size=(3, 5, 2))
    outputs = likelihood.with_location_variance(plain, added)
    raw = added
    if standardize:
        raw = added * likelihood.target_scale.numpy().astype(np.float64) ** 2
    for method in ("mean", "variance"):
        np.testing.assert_array_equal(
            getattr(likelihood, method)(outputs), getattr(likelihood, method)(plain)
        )
    np.testing.assert_allclose(likelihood.location_variance(outputs), raw)
    np.testing.assert_array_equal(likelihood.location_variance(plain), 0.0 * raw)
    deviation = np.sqrt(raw + likelihood.variance(plain))
    expected = stats.norm(likelihood.mean(plain), deviation)
    levels = GENERATOR.uniform(size=(3, 5, 2))
    values = expected.ppf(levels)
    close = {"rtol": 1e-9, "atol": 1e-12}
    np.testing.assert_allclose(
        likelihood.log_prob(values, outputs), expected.logpdf(values).sum(-1), **close
    )
    np.testing.assert_allclose(likelihood.cdf(values, outputs), levels, **close)
    np.testing.assert_allclose(
        likelihood.prob(values, outputs), expected.pdf(values), **close
    )
    np.testing.assert_allclose(likelihood.quantile(levels, outputs), values, **close)
    noise = GENERATOR.normal(size=(3, 5, 2))
    np.testing.assert_allclose(
        likelihood.sample(outputs, noise), expected.mean() + deviation * noise, **close
    )


def test_likelihood_that_integrates_no_location_says_so():
    likelihood = Laplace()
    likelihood.build((None, 1))
    assert not likelihood.integrates_location
    with pytest.raises(NotImplementedError, match="Laplace integrates no location"):
        likelihood.with_location_variance(np.zeros((2, 1)), np.ones((2, 1)))
    np.testing.assert_array_equal(likelihood.location_variance(np.ones((2, 1))), 0.0)
