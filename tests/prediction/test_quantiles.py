"""Densities and quantiles of mixtures against SciPy, root finding and brute force."""

import numpy as np
import pytest
from scipy import special, stats
from scipy.optimize import brentq

from tfbbb.bayes.likelihoods import LogNormal, NegativeBinomial, Normal, Poisson
from tfbbb.prediction import quantiles as module
from tfbbb.prediction.mixture import Mixture
from tfbbb.prediction.quantiles import quantiles

GENERATOR = np.random.default_rng(0)
ROWS, SAMPLES = 5, 30
LEVELS = np.array([1e-6, 0.05, 0.3, 0.5, 0.95, 0.999])


def normal(num_targets=1):
    likelihood = Normal(heteroscedastic=True)
    likelihood.build((None, 2 * num_targets))
    likelihood.adapt(1000.0 + GENERATOR.normal(size=(50, num_targets)))
    return likelihood.frozen()


def built(likelihood, *shape):
    likelihood.build((None, *shape))
    return likelihood.frozen()


def outputs(width, spread=1.0):
    return spread * GENERATOR.normal(size=(ROWS, SAMPLES, width))


def components(likelihood, values):
    """Returns the mixture's components as a frozen distribution of SciPy."""
    variance = likelihood.variance(values)
    return stats.norm(likelihood.mean(values), np.sqrt(variance))


@pytest.mark.parametrize("num_targets", [1, 2])
def test_log_prob_is_the_log_of_the_average_density(num_targets):
    likelihood, values = normal(num_targets), outputs(2 * num_targets)
    # The second row is far out, where densities underflow and their logs do not.
    targets = 1000.0 + GENERATOR.normal(size=(ROWS, num_targets))
    targets[1] += 1000.0
    densities = components(likelihood, values).logpdf(targets[:, np.newaxis]).sum(-1)
    expected = special.logsumexp(densities, axis=1) - np.log(SAMPLES)
    np.testing.assert_allclose(
        Mixture(likelihood, values).log_prob(targets), expected, rtol=1e-9
    )


@pytest.mark.parametrize("num_targets", [1, 2])
def test_quantiles_are_the_roots_of_the_distribution_function(num_targets):
    likelihood, values = normal(num_targets), outputs(2 * num_targets)
    found = quantiles(likelihood, LEVELS, values)
    assert found.shape == (ROWS, len(LEVELS), num_targets)
    location, scale = components(likelihood, values).args
    for row, index, target in np.ndindex(*found.shape):
        part = stats.norm(location[row, :, target], scale[row, :, target])
        root = brentq(
            lambda y, part=part, level=LEVELS[index]: part.cdf(y).mean() - level,
            900.0,
            1100.0,
            xtol=1e-12,
        )
        np.testing.assert_allclose(found[row, index, target], root, rtol=1e-11)


@pytest.mark.parametrize("most_components", [1, 1 << 22])
def test_every_row_and_target_may_have_levels_of_its_own(monkeypatch, most_components):
    # In one block of rows and in one for each.
    monkeypatch.setattr(module, "_MOST_COMPONENTS", most_components)
    likelihood, values = normal(2), outputs(4)
    levels = GENERATOR.uniform(0.01, 0.99, size=(ROWS, 3, 2))
    found = quantiles(likelihood, levels, values)
    assert found.shape == levels.shape
    for row, index, target in np.ndindex(*levels.shape):
        level = levels[row, index, [target]]
        alone = quantiles(likelihood, level, values[[row]])[0, 0, target]
        np.testing.assert_allclose(found[row, index, target], alone, rtol=1e-11)


def test_quantiles_of_components_of_unequal_widths_are_found():
    # Newton's method alone circles on some of these: widths from 1e-4 to 6, at
    # distances from 1e-3 to 1e3.
    likelihood = built(Normal(heteroscedastic=True), 2)
    distances = 10.0 ** GENERATOR.uniform(-3, 3, size=(500, 1))
    locations = distances * GENERATOR.normal(size=(500, 13))
    raw = GENERATOR.uniform(-12, 6, size=(500, 13))
    values = np.stack([locations, raw], axis=-1)
    with np.errstate(over="ignore"):
        found = quantiles(likelihood, LEVELS, values)
    below = components(likelihood, values[:, np.newaxis]).cdf(found[:, :, np.newaxis])
    # A bracket of some 1e4 is cut to a part in 10^12; densities reach 4e3 / 13.
    np.testing.assert_allclose(
        below.mean(axis=2)[..., 0], np.tile(LEVELS, (500, 1)), atol=1e-5
    )


@pytest.mark.parametrize("spread", [1.0, 30.0])
def test_quantiles_of_components_of_unequal_orders_of_magnitude_are_found(spread):
    # Up to 10^54: in double precision their sum would be that of the largest alone.
    likelihood = built(LogNormal(heteroscedastic=True), 2)
    locations = spread * GENERATOR.normal(size=(50, SAMPLES))
    raw = GENERATOR.uniform(-8.0, 2.0, size=(50, SAMPLES))
    values = np.stack([locations, raw], axis=-1)
    found = quantiles(likelihood, LEVELS, values)
    for index, level in enumerate(LEVELS):
        below = Mixture(likelihood, values).cdf(found[:, index])
        # A quantile is found to 10^-12 of itself; noise is 1e-4 of it at the least.
        np.testing.assert_allclose(below, np.full((50, 1), level), atol=1e-8)


def counts(likelihood, average):
    likelihood.build((None, likelihood.num_outputs(2)))
    likelihood.adapt(average + np.array([[-1.0, 2.0], [1.0, -2.0]]))
    return likelihood.frozen()


def scipy_counts(likelihood, values):
    parameters = likelihood.parameters(values)
    if isinstance(likelihood, Poisson):
        return stats.poisson(parameters["rate"])
    mean, concentration = parameters["mean"], parameters["concentration"]
    return stats.nbinom(concentration, concentration / (concentration + mean))


@pytest.mark.parametrize("likelihood", [Poisson(), NegativeBinomial()])
def test_quantile_of_counts_is_the_first_that_reaches_the_level(likelihood):
    likelihood = counts(likelihood, 6.0)
    values = outputs(likelihood.num_outputs(2), spread=0.7)
    found = quantiles(likelihood, LEVELS, values)
    assert found.shape == (ROWS, len(LEVELS), 2)
    every = np.arange(20_000.0).reshape(-1, 1, 1, 1)
    below = scipy_counts(likelihood, values).cdf(every).mean(axis=2)
    for index, level in enumerate(LEVELS):
        expected = np.argmax(below >= level, axis=0)
        np.testing.assert_array_equal(found[:, index], expected)


@pytest.mark.parametrize("rate", [1e5, 1e11])
def test_quantile_of_huge_counts_is_exact(rate):
    likelihood = counts(Poisson(), rate)
    # Between the components lie many of their standard deviations.
    values = outputs(2, spread=1e-3)
    found = quantiles(likelihood, LEVELS, values)
    np.testing.assert_array_equal(found, np.floor(found))
    wanted = LEVELS[:, np.newaxis]
    before, reached = (
        np.stack([Mixture(likelihood, values).cdf(x) for x in ends.swapaxes(0, 1)], 1)
        for ends in (found - 1.0, found)
    )
    assert np.all(before < wanted)
    assert np.all(reached >= wanted)
