"""Poisson and NegativeBinomial as likelihoods."""

import numpy as np
import pytest
import tensorflow as tf

from tfbbb.bayes.likelihoods import NegativeBinomial, Poisson

GENERATOR = np.random.default_rng(0)
# Two targets of unequal size, the second overdispersed.
TARGETS = np.stack(
    [GENERATOR.poisson(40.0, size=60), GENERATOR.negative_binomial(0.7, 0.2, size=60)],
    axis=1,
)
KINDS = {
    "poisson": (Poisson, {}),
    "poisson, raw": (Poisson, {"standardize": False}),
    "learned": (NegativeBinomial, {}),
    "given": (NegativeBinomial, {"concentration": 1.5}),
    "heteroscedastic": (NegativeBinomial, {"heteroscedastic": True}),
}
EVERY = pytest.mark.parametrize("kind", KINDS)


def built(kind, targets=TARGETS):
    family, arguments = KINDS[kind]
    likelihood = family(**arguments)
    likelihood.build((None, likelihood.num_outputs(2)))
    if targets is not None:
        likelihood.adapt(targets)
    return likelihood


def outputs_for(likelihood, *leading):
    return 0.7 * GENERATOR.normal(size=(*leading, likelihood.num_outputs(2)))


@EVERY
def test_values_other_than_counts_have_no_mass(kind):
    likelihood = built(kind)
    outputs = np.zeros((1, likelihood.num_outputs(2)))
    for value in (-1.0, -0.5, 0.5, 7.2):
        assert not likelihood.prob(np.full((1, 2), value), outputs).numpy().any()
    below = likelihood.cdf(np.full((1, 2), -0.1), outputs)
    np.testing.assert_array_equal(below, [[0.0, 0.0]])
    above = likelihood.cdf(np.full((1, 2), 1e300), outputs)
    np.testing.assert_array_equal(above, [[1.0, 1.0]])


@pytest.mark.few(2)
@EVERY
def test_the_most_extreme_noise_still_draws_a_count(kind):
    likelihood = built(kind)
    outputs = np.zeros((2, likelihood.num_outputs(2)))
    drawn = likelihood.sample(outputs, [[-40.0, -40.0], [40.0, 40.0]])
    assert np.isfinite(drawn).all()
    np.testing.assert_array_equal(drawn[0], [0.0, 0.0])
    assert np.all(drawn[1] > 5.0)


def test_the_gradient_by_the_log_rate_is_the_residual():
    likelihood = Poisson(standardize=False)
    likelihood.build((None, 1))
    log_rate = tf.constant(np.array([[-80.0], [-3.0], [0.0], [2.0], [13.0]]))
    counts = np.array([[2.0], [0.0], [1.0], [9.0], [440_000.0]])
    with tf.GradientTape() as tape:
        tape.watch(log_rate)
        log_prob = likelihood.log_prob(counts, log_rate)
    np.testing.assert_allclose(
        tape.gradient(log_prob, log_rate), counts - np.exp(log_rate), rtol=1e-9
    )


def test_gradients_by_mean_and_concentration_are_finite_differences():
    likelihood = built("heteroscedastic")
    outputs = outputs_for(likelihood, 40)
    counts = np.repeat(TARGETS[:20], 2, axis=0)
    watched = tf.constant(outputs)
    with tf.GradientTape() as tape:
        tape.watch(watched)
        log_prob = likelihood.log_prob(counts, watched)
    gradient = tape.gradient(log_prob, watched).numpy()
    for column in range(4):
        step = 1e-5 * np.eye(4)[column]
        up, down = (
            likelihood.log_prob(counts, outputs + sign * step) for sign in (1.0, -1.0)
        )
        # Curvature of 1e-10 relative, rounding of 1e-13 / 1e-5.
        np.testing.assert_allclose(
            gradient[:, column], (up - down) / 2e-5, rtol=1e-6, atol=1e-6
        )


@pytest.mark.parametrize("kind", ["poisson", "learned", "heteroscedastic", "given"])
def test_outputs_of_zero_have_the_mean_of_targets(kind):
    for targets in (TARGETS, np.full((9, 2), 3)):
        likelihood = built(kind, targets)
        mean = likelihood.mean(np.zeros((1, likelihood.num_outputs(2))))
        np.testing.assert_allclose(mean[0], targets.mean(axis=0), rtol=1e-6)


@pytest.mark.parametrize("kind", ["learned", "heteroscedastic"])
def test_dispersion_starts_at_the_variance_or_twice_the_mean(kind):
    likelihood = built(kind)
    variance = likelihood.variance(np.zeros((1, likelihood.num_outputs(2))))[0]
    assert TARGETS[:, 0].var() < 2.0 * TARGETS[:, 0].mean()
    expected = [2.0 * TARGETS[:, 0].mean(), TARGETS[:, 1].var()]
    # The floor of the dispersion is 1e-4 of it.
    np.testing.assert_allclose(variance, expected, rtol=2e-4)


@pytest.mark.parametrize("wrong", [-1.0, 0.5, 1e13, np.nan, np.inf])
def test_target_that_is_no_count_is_named_with_its_row(wrong):
    targets = TARGETS.astype(float)
    targets[7, 1] = wrong
    with pytest.raises(ValueError, match=r"counts: whole numbers.*in row 7"):
        built("poisson").check_targets(targets)


def test_target_that_is_always_zero_is_refused():
    likelihood = built("learned", targets=None)
    with pytest.raises(ValueError, match=r"Target 1 is 0 in every row.*: 60 rows"):
        likelihood.adapt(TARGETS * [1, 0])
    assert not likelihood.adapted
