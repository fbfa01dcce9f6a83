"""Counts whose mean is proportional to an exposure."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfbbb
from tests.bayes.likelihoods.test_counts import EVERY, KINDS
from tests.bayes.likelihoods.test_densities import reference
from tfbbb.bayes.likelihoods import NegativeBinomial, Poisson

GENERATOR = np.random.default_rng(0)
EXPOSURES = GENERATOR.uniform(1.0, 400.0, size=(300, 1))
COUNTS = GENERATOR.poisson(0.05 * EXPOSURES).astype(float)


def built(kind, exposures=EXPOSURES):
    family, arguments = KINDS[kind]
    likelihood = family(exposure=True, **arguments)
    likelihood.build((None, likelihood.num_outputs(1)))
    likelihood.adapt(COUNTS, exposures=exposures)
    return likelihood


def outputs_for(likelihood, exposure, location=0.3):
    width = likelihood.num_outputs(1)
    others = [0.2] * (width - 2)
    return np.array([[location, *others, exposure]])


@EVERY
def test_twice_the_exposure_has_exactly_twice_the_mean(kind):
    likelihood = built(kind)
    once, twice = (
        likelihood.mean(outputs_for(likelihood, exposure)).numpy()
        for exposure in (37.3, 74.6)
    )
    assert twice == 2.0 * once


@EVERY
def test_an_output_of_zero_is_the_average_rate(kind):
    likelihood = built(kind)
    location = 0.0 if likelihood.standardize else np.log(COUNTS.sum() / EXPOSURES.sum())
    mean = likelihood.mean(outputs_for(likelihood, 10.0, location))
    expected = 10.0 * COUNTS.sum() / EXPOSURES.sum()
    np.testing.assert_allclose(mean, [[expected]], rtol=1e-6)


def test_poisson_rows_of_one_rate_may_be_merged():
    likelihood = built("poisson")

    def log_prob(count, exposure, location):
        outputs = outputs_for(likelihood, exposure, location)
        return likelihood.log_prob([[count]], outputs).numpy()

    # What the rows say of the rate is what their sum says.
    constants = [
        log_prob(3.0, 40.0, f) + log_prob(5.0, 90.0, f) - log_prob(8.0, 130.0, f)
        for f in (-0.4, 0.0, 0.9)
    ]
    np.testing.assert_allclose(constants, constants[:1] * 3, rtol=1e-7)


@EVERY
def test_agrees_with_the_counts_of_scipy(kind):
    likelihood = built(kind)
    outputs = outputs_for(likelihood, 123.0)
    name = "poisson" if isinstance(likelihood, Poisson) else "negative_binomial"
    expected = reference(name, likelihood, outputs)
    levels = np.array([[0.05], [0.5], [0.95]])
    counts = expected.ppf(levels)
    close = {"rtol": 1e-8, "atol": 1e-11}
    np.testing.assert_allclose(likelihood.quantile(levels, outputs), counts, **close)
    np.testing.assert_allclose(
        likelihood.cdf(counts, outputs), expected.cdf(counts), **close
    )
    np.testing.assert_allclose(
        likelihood.log_prob(counts, outputs), expected.logpmf(counts)[:, 0], **close
    )


def test_dispersion_starts_at_what_the_exposures_do_not_explain():
    # The rates are gamma distributed: variance m + m^2 / 4 at every exposure.
    rates = GENERATOR.gamma(4.0, 0.05 / 4.0, size=(20_000, 1))
    exposures = GENERATOR.uniform(100.0, 900.0, size=(20_000, 1))
    likelihood = NegativeBinomial(exposure=True)
    likelihood.build((None, 2))
    likelihood.adapt(GENERATOR.poisson(rates * exposures), exposures=exposures)
    found = likelihood.parameters([[0.0, 500.0]])["concentration"].numpy()
    # The relative error of a variance of 20 000 rows is some 2 per cent.
    assert found == pytest.approx(4.0, rel=0.1)


@pytest.mark.parametrize("exposure", [1e-6, 1e9])
def test_gradient_is_finite_at_the_ends_of_exposures(exposure):
    likelihood = built("learned")
    outputs = tf.Variable(outputs_for(likelihood, exposure))
    for count in (0.0, 2000.0):
        with tf.GradientTape() as tape:
            log_prob = likelihood.log_prob([[count]], outputs)
        assert np.isfinite(tape.gradient(log_prob, outputs)[0, 0])


@pytest.mark.parametrize("wrong", [0.0, -1.0, np.nan, np.inf])
def test_an_exposure_that_is_not_positive_is_named(wrong):
    exposures = EXPOSURES.copy()
    exposures[7] = wrong
    with pytest.raises(ValueError, match=r"positive number.*in row 7"):
        built("poisson", exposures)


def test_exposures_are_needed():
    with pytest.raises(ValueError, match="needs the exposure of each target"):
        built("poisson", None)


def network(likelihood):
    columns = {name: keras.Input((), name=name) for name in ("x", "days")}
    x = keras.ops.expand_dims(columns["x"], -1)
    width = likelihood.num_outputs(1) - 1
    rates = tfbbb.layers.DenseVariational(width)(x)
    outputs = tfbbb.layers.Exposure()([rates, columns["days"]])
    return tfbbb.BayesianModel(columns, outputs, likelihood=likelihood)


def test_a_network_must_give_the_exposure():
    x = keras.Input((3,))
    with pytest.raises(ValueError, match=r"tfbbb.layers.Exposure"):
        tfbbb.BayesianModel(
            x, keras.layers.Dense(2)(x), likelihood=Poisson(exposure=True)
        )
