"""Likelihoods some of whose values have a probability of their own."""

import numpy as np
import pytest
import tensorflow as tf
from scipy import integrate, special, stats

from tests.bayes.likelihoods.test_contract import built, targets_of
from tfbbb import likelihoods
from tfbbb.prediction.quantiles import quantiles
from tfbbb.prediction.recalibration.from_outputs import predictive_from_outputs
from tfbbb.prediction.target_scores import cdf_step, in_intervals

AMOUNTS = [
    ("zero_inflated", {"base": "gamma"}),
    ("zero_inflated", {"base": "log_normal", "heteroscedastic": True}),
]
WITH_MASSES = [*AMOUNTS, ("inflated_beta", {"heteroscedastic": True})]


def case(name, arguments, rows=3):
    """Returns an adapted likelihood and outputs [rows, P]."""
    likelihood = built(name, arguments)
    size = likelihood.num_outputs(1)
    return likelihood, 0.5 * np.random.default_rng(0).normal(size=(rows, size))


def integral(likelihood, output, function):
    """Integrates over the mixed measure: by SciPy's quadrature and single numbers."""
    likelihood = likelihood.frozen()
    low, high = likelihood.quantile([[1e-12], [1.0 - 1e-12]], output)[:, 0]

    def height(y):
        return function(y) * float(likelihood.prob([[y]], output)[0, 0])

    middle = likelihood.quantile(0.9, output)[0, 0]
    with np.errstate(divide="ignore"):
        inside = sum(
            integrate.quad(height, *ends, limit=200)[0]
            for ends in ((low, middle), (middle, high))
        )
        return inside + sum(map(height, likelihood.masses))


@pytest.mark.parametrize(("name", "arguments"), WITH_MASSES)
def test_moments_are_integrals_of_density_and_masses(name, arguments):
    likelihood, output = case(name, arguments, rows=1)
    assert integral(likelihood, output, lambda y: 1.0) == pytest.approx(1, rel=1e-6)
    mean = integral(likelihood, output, lambda y: y)
    variance = integral(likelihood, output, lambda y: (y - mean) ** 2)
    assert mean == pytest.approx(float(likelihood.mean(output)[0, 0]), rel=1e-5)
    assert variance == pytest.approx(float(likelihood.variance(output)[0, 0]), rel=1e-4)


@pytest.mark.parametrize(("name", "arguments"), WITH_MASSES)
def test_quantiles_invert_a_distribution_function_with_jumps(name, arguments):
    likelihood, outputs = case(name, arguments)
    levels = np.linspace(0.01, 0.99, 49)[:, np.newaxis, np.newaxis]
    values = likelihood.quantile(levels, outputs[np.newaxis]).numpy()
    up_to = likelihood.cdf(values, outputs).numpy()
    is_mass = np.isin(values, likelihood.masses)
    jump = np.where(is_mass, likelihood.prob(values, outputs), 0.0)
    for value in likelihood.masses:
        assert (values == value).any()
    spread = np.broadcast_to(levels, up_to.shape)
    np.testing.assert_allclose(up_to[~is_mass], spread[~is_mass], rtol=1e-8)
    assert np.all(up_to >= spread - 1e-12)
    assert np.all(up_to - jump <= spread + 1e-12)
    assert np.all(np.diff(values, axis=0) >= 0.0)
    below, above = (x - 1e-3 for x in (min(likelihood.masses), 1e9))
    assert not likelihood.cdf([[below]], outputs).numpy().any()
    np.testing.assert_allclose(likelihood.cdf([[above]], outputs), 1.0, rtol=1e-9)


@pytest.mark.parametrize("base", ["gamma", "log_normal", "negative_binomial"])
def test_samples_have_the_probability_of_zero_and_the_rest_of_the_base(base):
    likelihood, outputs = case("zero_inflated", {"base": base}, rows=1)
    noise = np.random.default_rng(3).normal(size=(4_000, 1))
    drawn = likelihood.sample(np.repeat(outputs, 4_000, axis=0), noise).numpy()
    probability = float(likelihood.prob([[0.0]], outputs)[0, 0])
    error = np.sqrt(probability * (1 - probability) / 4_000)
    assert np.mean(drawn == 0.0) == pytest.approx(probability, abs=4 * error)
    if base != "negative_binomial":
        size = likelihood.base.num_outputs(1)
        ranks = likelihood.base.cdf(drawn[drawn > 0.0], outputs[0, :size]).numpy()
        assert stats.kstest(ranks.ravel(), "uniform").pvalue > 1e-3


def test_amounts_are_a_hurdle():
    base = likelihoods.Gamma(concentration=2.0)
    likelihood = likelihoods.ZeroInflated(base)
    likelihood.build((None, 2))
    outputs = tf.constant([[np.log(3.0), 0.4]], tf.float64)
    p = special.expit(0.4)
    amounts = np.array([[0.5], [7.0]])
    expected = np.log(1 - p) + stats.gamma(2.0, scale=1.5).logpdf(amounts[:, 0])
    np.testing.assert_allclose(likelihood.log_prob(amounts, outputs), expected)
    np.testing.assert_allclose(likelihood.log_prob([[0.0]], outputs), np.log(p))


def test_counts_have_the_zeros_of_the_base_too():
    likelihood = likelihoods.ZeroInflated("poisson")
    likelihood.build((None, 2))
    outputs = tf.constant([[np.log(0.7), -1.2]], tf.float64)
    p, poisson = special.expit(-1.2), stats.poisson(0.7)
    counts = np.arange(6.0)[:, np.newaxis]
    expected = (1 - p) * poisson.pmf(counts) + p * (counts == 0.0)
    np.testing.assert_allclose(likelihood.prob(counts, outputs), expected)
    found = np.exp(likelihood.log_prob(counts, outputs))
    np.testing.assert_allclose(found, expected[:, 0])
    np.testing.assert_allclose(
        likelihood.cdf(counts, outputs), np.cumsum(expected)[:, np.newaxis]
    )
    assert float(likelihood.variance(outputs)[0, 0]) == pytest.approx(
        (1 - p) * 0.7 * (1 + p * 0.7)
    )
    assert likelihood.discrete
    assert likelihood.masses == ()


@pytest.mark.parametrize(("name", "arguments"), WITH_MASSES)
def test_outputs_of_zero_have_the_shares_of_the_targets(name, arguments):
    likelihood = built(name, arguments)
    targets, outputs = targets_of(likelihood), np.zeros((1, likelihood.num_outputs(1)))
    for value in likelihood.masses:
        found = float(likelihood.prob([[value]], outputs)[0, 0])
        # Half a row is added.
        assert found == pytest.approx(np.mean(targets == value), abs=2e-3)
    inside = targets[~np.isin(targets, likelihood.masses)]
    if arguments.get("base") != "log_normal":
        found = float(
            likelihood.base.mean(outputs[:, : likelihood.base.num_outputs(1)])[0, 0]
        )
        assert found == pytest.approx(inside.mean(), rel=1e-4)


@pytest.mark.parametrize(("name", "arguments"), WITH_MASSES)
def test_gradients_are_finite_at_the_ends(name, arguments):
    likelihood, outputs = case(name, arguments)
    outputs = tf.constant(outputs, tf.float32)
    for value in (*likelihood.masses, 1e-30, 1.0 - 1e-7):
        with tf.GradientTape() as tape:
            tape.watch(outputs)
            log_prob = likelihood.log_prob(np.full((3, 1), value), outputs)
        assert np.isfinite(log_prob).all()
        assert np.isfinite(tape.gradient(log_prob, outputs)).all()


@pytest.mark.parametrize(("name", "arguments"), WITH_MASSES)
def test_a_mixture_has_a_mass_where_its_draws_have_one(name, arguments):
    likelihood, outputs = case(name, arguments, rows=24)
    outputs = outputs.reshape(2, 12, -1)
    levels = np.linspace(0.02, 0.98, 25)
    with np.errstate(divide="ignore"):
        found = quantiles(likelihood.frozen(), levels, outputs)
    prediction = predictive_from_outputs(likelihood, outputs)
    for number, level in enumerate(levels):
        below, up_to = cdf_step(prediction, found[:, number])
        assert np.all(below <= level + 1e-9)
        assert np.all(up_to >= level - 1e-9)
    for value in likelihood.masses:
        assert (found == value).any()
    by_graph = quantiles(likelihood, levels, tf.constant(outputs))
    np.testing.assert_allclose(by_graph, found, rtol=1e-7, atol=1e-12)


def test_intervals_and_scores_count_the_mass_at_zero():
    likelihood, outputs = case("zero_inflated", {"base": "gamma"}, rows=1)
    outputs = np.broadcast_to(outputs[:, np.newaxis], (2_000, 4, outputs.shape[1]))
    prediction = predictive_from_outputs(likelihood, outputs)
    targets = prediction.sample(1)[0]
    probability = np.mean(targets == 0.0)
    below, up_to = cdf_step(prediction, targets)
    assert not below[targets == 0.0].any()
    jump = (up_to - below)[targets == 0.0]
    error = np.sqrt(probability * (1 - probability) / 2_000)
    np.testing.assert_allclose(jump, probability, atol=4 * error)
    # The randomised transform of what the model says itself is uniform.
    uniform = below + np.random.default_rng(0).uniform(size=below.shape) * (
        up_to - below
    )
    assert stats.kstest(uniform.ravel(), "uniform").pvalue > 1e-3
    np.testing.assert_allclose(prediction.probability(0.0), jump[0], rtol=1e-9)
    assert not prediction.probability(1.0).any()
    lower, upper = prediction.interval(0.9)
    held = np.asarray(in_intervals(prediction, targets, [0.9]))[:, 0]
    np.testing.assert_array_equal(held, (lower <= targets) & (targets <= upper))


def test_columns_of_targets_have_shares_of_their_own():
    likelihood = likelihoods.ZeroInflated("gamma")
    likelihood.build((None, likelihood.num_outputs(2)))
    amounts = np.random.default_rng(0).gamma(2.0, size=(400, 2)) * [1.0, 50.0]
    amounts[:100, 0] = amounts[:300, 1] = 0.0
    likelihood.adapt(amounts)
    outputs = np.zeros((1, likelihood.num_outputs(2)))
    np.testing.assert_allclose(
        likelihood.prob([[0.0, 0.0]], outputs), [[0.25, 0.75]], atol=5e-3
    )
    np.testing.assert_allclose(
        likelihood.mean(outputs)[0], amounts.mean(axis=0), rtol=0.05
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"base": "normal"}, "must be one of gamma, .*base='normal'"),
        ({"base": likelihoods.Normal()}, "positive numbers or of counts.*base=Normal"),
        ({"base": "poisson", "heteroscedastic": True}, "no noise besides its mean"),
        (
            {"base": likelihoods.Gamma(), "heteroscedastic": True},
            r"options of the base: pass `Gamma\(heteroscedastic=True\)`",
        ),
    ],
)
def test_a_base_that_does_not_suit_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        likelihoods.ZeroInflated(**arguments)


def test_targets_of_zeros_alone_are_named():
    likelihood = likelihoods.ZeroInflated()
    likelihood.build((None, 2))
    with pytest.raises(ValueError, match="is 0 in every row"):
        likelihood.adapt(np.zeros((5, 1)))
    with pytest.raises(ValueError, match=r"must be 0 or positive numbers.*-1\.0"):
        likelihood.adapt(np.array([[0.0], [-1.0]]))
