"""Parameters that the training targets bound, so that no draw owns a mean."""

import math

import numpy as np
import pytest
import tensorflow as tf

import tfbbb
from tfbbb.bayes.likelihoods.regression import soft_clip, soft_limit

GENERATOR = np.random.default_rng(0)
POSITIVE = np.exp(GENERATOR.normal(2.0, 1.5, size=(200, 1)))
TARGETS = {
    "log_normal": POSITIVE,
    "gamma": POSITIVE,
    "poisson": np.floor(POSITIVE),
    "negative_binomial": np.floor(POSITIVE),
    "beta": 1.0 / (1.0 + POSITIVE),
    "student_t": POSITIVE - 9.0,
}
EVERY = pytest.mark.parametrize("name", TARGETS)


def built(name, **options):
    if name != "poisson":
        options = {"heteroscedastic": True, **options}
    likelihood = type(tfbbb.likelihoods.get(name))(**options)
    likelihood.build((None, likelihood.num_outputs(1)))
    return likelihood


def adapted(name, **options):
    likelihood = built(name, **options)
    likelihood.adapt(TARGETS[name])
    return likelihood


def far_outputs(likelihood):
    """Every combination of outputs up to 10^4 in size."""
    ends = np.array([-1e4, -30.0, 0.0, 30.0, 1e4], np.float32)
    axes = [ends] * likelihood.num_outputs(1)
    return np.stack([x.ravel() for x in np.meshgrid(*axes)], axis=1)


@pytest.mark.parametrize("bounded", [soft_clip, soft_limit])
def test_slope_of_bounds_is_continuous_and_never_zero(bounded):
    arguments = (-2.0, 3.0, 0.5) if bounded is soft_clip else (6.0,)
    values = tf.constant([3.0 - 1e-9, 3.0 + 1e-9, 1e3], tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(values)
        found = bounded(values, *arguments)
    slopes = tape.gradient(found, values).numpy()
    np.testing.assert_allclose(slopes[:2], 1.0, atol=1e-7)
    assert slopes[2] > 1e-7


@EVERY
def test_moments_of_any_outputs_stay_near_the_targets(name):
    likelihood = adapted(name)
    outputs = far_outputs(likelihood)
    mean, stddev = likelihood.mean(outputs), np.sqrt(likelihood.variance(outputs))
    greatest = TARGETS[name].max()
    if name == "student_t":
        # The location is linear in the output.
        assert stddev.max() <= np.ptp(TARGETS[name])
        return
    assert mean.numpy().max() < (1.0 if name == "beta" else 4.0 * greatest)
    # sqrt(m * tail + m) of a tail of 4 and a mean of e^(1/2) times the greatest target.
    assert stddev.max() < (0.5 if name == "beta" else 4.0 * greatest)
    assert np.isfinite(likelihood.log_prob(TARGETS[name][:1], outputs)).all()


@EVERY
def test_parameters_of_usual_outputs_are_those_without_bounds(name):
    bounded, free = adapted(name), adapted(name)
    low, high = free._widest_range
    free.target_low.assign([low])
    free.target_high.assign([high])
    outputs = GENERATOR.uniform(-0.6, -0.2, size=(50, bounded.num_outputs(1)))
    expected = free.parameters(outputs)
    for parameter, values in bounded.parameters(outputs).items():
        np.testing.assert_allclose(values, expected[parameter], rtol=1e-6)


@EVERY
def test_far_outputs_still_have_gradients(name):
    likelihood = adapted(name)
    outputs = tf.constant(far_outputs(likelihood) / 100.0)
    with tf.GradientTape() as tape:
        tape.watch(outputs)
        loss = -likelihood.log_prob(TARGETS[name][:1], outputs)
    slopes = tape.gradient(loss, outputs).numpy()
    assert np.isfinite(slopes).all()
    assert np.all(slopes[:, 0][np.abs(outputs[:, 0]) > 1.0] != 0.0)


def test_given_noise_is_not_bounded():
    likelihood = adapted("log_normal", heteroscedastic=False, scale=9.0)
    assert likelihood.parameters([[0.0]])["scale"].numpy() == 9.0


@EVERY
def test_later_targets_widen_the_range(name):
    likelihood = adapted(name)
    low, high = likelihood.target_low.numpy(), likelihood.target_high.numpy()
    likelihood.adapt(TARGETS[name][:5])
    np.testing.assert_array_equal(likelihood.target_low, low)
    np.testing.assert_array_equal(likelihood.target_high, high)
    share = 0.5 if name == "beta" else 100.0
    likelihood.adapt(share * TARGETS[name] + (0.49 if name == "beta" else 0.0))
    assert likelihood.target_high.numpy() > high


def test_counts_without_events_have_the_rate_of_one_event():
    likelihood = built("poisson")
    likelihood.adapt([0.0] * 990 + [3.0] * 10)
    assert likelihood.target_low.numpy() == pytest.approx(math.log(1e-4))
