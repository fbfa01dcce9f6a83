"""Each density against SciPy, and what is its own."""

import math

import numpy as np
import pytest
from scipy import special, stats

from tfbbb import likelihoods
from tfbbb.bayes.likelihoods import (
    Beta,
    Gamma,
    Laplace,
    LogNormal,
    Normal,
    NormalMixture,
    StudentT,
)

GENERATOR = np.random.default_rng(0)
# Two targets of unequal size between 0 and 1.
SHARES = np.stack(
    [GENERATOR.beta(2.0, 5.0, size=60), 0.01 * GENERATOR.beta(5.0, 2.0, size=60)],
    axis=1,
)
REFERENCES = {
    "beta": lambda p: stats.beta(p["concentration1"], p["concentration0"]),
    "gamma": lambda p: stats.gamma(p["concentration"], scale=1.0 / p["rate"]),
    "laplace": lambda p: stats.laplace(p["loc"], p["scale"]),
    "log_normal": lambda p: stats.lognorm(p["scale"], scale=np.exp(p["loc"])),
    "normal": lambda p: stats.norm(p["loc"], p["scale"]),
    "negative_binomial": lambda p: stats.nbinom(
        p["concentration"], p["concentration"] / (p["concentration"] + p["mean"])
    ),
    "poisson": lambda p: stats.poisson(p["rate"]),
    "student_t": lambda p: stats.t(p["df"], p["loc"], p["scale"]),
    # `loc` is the mean of the logarithm.
    "weibull": lambda p: stats.weibull_min(
        1.0 / p["scale"], scale=np.exp(p["loc"] + np.euler_gamma * p["scale"])
    ),
}


def built(likelihood, targets=SHARES):
    likelihood.build((None, likelihood.num_outputs(targets.shape[1])))
    likelihood.adapt(targets)
    return likelihood


def outputs_for(likelihood, *rows, seed=1):
    width = likelihood.num_outputs(likelihood.num_targets)
    return 0.7 * np.random.default_rng(seed).normal(size=(*rows, width))


def reference(name, likelihood, outputs):
    """Returns the same distribution as a frozen one of SciPy."""
    parameters = likelihood.parameters(outputs).items()
    return REFERENCES[name]({key: value.numpy() for key, value in parameters})


@pytest.mark.parametrize(
    ("name", "options"),
    [
        *((name, {}) for name in REFERENCES),
        *(
            (name, {"heteroscedastic": True})
            for name in sorted(REFERENCES.keys() - {"poisson"})
        ),
    ],
)
def test_agrees_with_the_density_of_scipy_with_its_parameters(name, options):
    likelihood = type(likelihoods.get(name))(**options)
    built(likelihood, np.floor(1000.0 * SHARES) if likelihood.discrete else SHARES)
    for variable in likelihood.trainable_variables:
        variable.assign(variable + np.array([-1.0, 0.5]))
    outputs = outputs_for(likelihood, 5, 4)
    expected = reference(name, likelihood, outputs)
    levels = np.random.default_rng(2).uniform(size=(5, 4, 2))
    values = expected.ppf(levels)
    log_density = getattr(expected, "logpmf" if likelihood.discrete else "logpdf")
    # In float64: the special functions of TensorFlow are good to 1e-9 and better.
    close = {"rtol": 1e-8, "atol": 1e-11}
    np.testing.assert_allclose(likelihood.mean(outputs), expected.mean(), **close)
    np.testing.assert_allclose(likelihood.variance(outputs), expected.var(), **close)
    np.testing.assert_allclose(
        likelihood.log_prob(values, outputs), log_density(values).sum(-1), **close
    )
    for shift in (0.0, 0.7, -0.3, -1.0) if likelihood.discrete else (0.0,):
        np.testing.assert_allclose(
            likelihood.cdf(values + shift, outputs),
            expected.cdf(values + shift),
            **close,
        )
    np.testing.assert_allclose(
        likelihood.prob(values, outputs), np.exp(log_density(values)), **close
    )
    np.testing.assert_allclose(likelihood.quantile(levels, outputs), values, **close)


@pytest.mark.parametrize(
    ("kind", "unit"),
    [(Normal, 1e-9), (LogNormal, 1e9), (NormalMixture, 1e9), (Gamma, 1e-9)],
)
def test_density_does_not_depend_on_the_unit_of_the_targets(kind, unit):
    in_shares, in_units = built(kind()), built(kind(), unit * SHARES)
    outputs = outputs_for(in_shares, 60)
    np.testing.assert_allclose(
        in_units.log_prob(unit * SHARES, outputs) + 2.0 * math.log(unit),
        in_shares.log_prob(SHARES, outputs),
        # Shift and scale are kept in single precision.
        rtol=1e-4,
        atol=1e-4,
    )
    np.testing.assert_allclose(
        in_units.mean(outputs) / unit, in_shares.mean(outputs), rtol=1e-4, atol=1e-7
    )


@pytest.mark.parametrize(
    ("kind", "linked"),
    [
        (Laplace, lambda mean: mean),
        (StudentT, lambda mean: mean),
        (LogNormal, None),
        (Gamma, np.log),
        (Beta, special.logit),
    ],
)
def test_network_may_work_in_the_units_of_what_is_linked(kind, linked):
    likelihood = built(kind(standardize=False))
    outputs = outputs_for(likelihood, 6)
    if hasattr(likelihood, "target_low"):
        # Locations outside the range of the training targets are bounded.
        low, high = likelihood.target_low.numpy(), likelihood.target_high.numpy()
        outputs = np.clip(outputs, low, high)
    found = likelihood.mean(outputs) if linked else likelihood.quantile(0.5, outputs)
    np.testing.assert_allclose((linked or np.log)(found), outputs, rtol=1e-9)


@pytest.mark.parametrize(
    ("kind", "wrong"), [(Gamma, 0.0), (Gamma, 1e19), (LogNormal, 1e-19)]
)
def test_target_that_is_not_positive_is_named_with_its_row(kind, wrong):
    targets = SHARES.copy()
    targets[3, 0] = wrong
    with pytest.raises(ValueError, match=rf"{kind.__name__} must be positive.* row 3"):
        built(kind()).check_targets(targets)


@pytest.mark.parametrize("wrong", [-1.0, 1e99, np.float64(3.0) - 1e-12])
def test_a_target_beyond_the_bounds_is_named(wrong):
    likelihood = Beta(low=-1.0, high=3.0)
    likelihood.build((None, 1))
    with pytest.raises(ValueError, match=r"strictly between -1.0 and 3.0.* in row 1"):
        likelihood.check_targets([0.0, wrong])


@pytest.mark.parametrize(
    ("levels", "concentration"),
    [([0.5], 0.1), ([0.5 - 1e-9], 1e4), ([0.5 + 1e-12], 5.0)],
)
def test_the_median_of_a_beta_inverts_one_half(levels, concentration):
    likelihood = built(Beta(concentration=concentration), SHARES[:, :1])
    outputs = np.linspace(-1.0, 3.0, 9)[:, np.newaxis]
    medians = likelihood.quantile(levels, outputs)
    np.testing.assert_allclose(likelihood.cdf(medians, outputs), 0.5, rtol=1e-8)


@pytest.mark.parametrize("kind", [Beta, Gamma])
def test_targets_closer_than_a_concentration_can_be_are_refused(kind):
    targets = 0.5 + 1e-5 * GENERATOR.normal(size=(50, 1))
    with pytest.raises(ValueError, match=r"Target 0 varies too little for.*mean of"):
        built(kind(), targets)
    with pytest.raises(ValueError, match=r"`concentration` must be 1e\+05 at most"):
        kind(concentration=1e6)


@pytest.mark.parametrize("concentration", [1e-3, 0.5, 7.9, 8.1, 1e3, 1e5])
def test_density_of_a_gamma_keeps_its_digits_in_single_precision(concentration):
    likelihood = built(Gamma(concentration=concentration), SHARES[:, :1])
    outputs = np.zeros((5, 1), np.float32)
    mean = float(likelihood.mean(outputs)[0, 0])
    spread = min(0.4, 1.0 / math.sqrt(concentration))
    y = np.float32(mean * (1.0 + spread * np.linspace(-2.0, 2.0, 5)))[:, np.newaxis]
    expected = stats.gamma.logpdf(
        y.astype(float), concentration, 0.0, mean / concentration
    )
    # The mean is off by half a unit in the last place: sqrt(a) of that in z.
    tolerance = 1e-5 + 4.0 * math.sqrt(concentration) * 2.0**-23
    np.testing.assert_allclose(
        likelihood.log_prob(y, outputs), expected[:, 0], rtol=1e-5, atol=tolerance
    )


@pytest.mark.parametrize("df", [2.0, np.inf, np.nan, "5", True])
def test_degrees_of_freedom_are_finite_and_more_than_two(df):
    with pytest.raises(
        ValueError, match=r"`df` must be .*greater than 2.*Received: df"
    ):
        StudentT(df=df)


@pytest.mark.parametrize(
    ("arguments", "num_outputs", "learned"),
    [
        ({}, 1, ["raw_noise", "raw_df"]),
        ({"df": 5.0}, 1, ["raw_noise"]),
        ({"scale": 1.0}, 1, ["raw_df"]),
        ({"df": 5.0, "scale": 1.0}, 1, []),
        ({"heteroscedastic": True}, 3, []),
        ({"heteroscedastic": True, "df": 5.0}, 2, []),
    ],
)
def test_student_t_learns_what_is_neither_given_nor_an_output(
    arguments, num_outputs, learned
):
    likelihood = StudentT(**arguments)
    assert likelihood.num_outputs(1) == num_outputs
    likelihood.build((None, num_outputs))
    assert [v.name for v in likelihood.trainable_variables] == learned
    assert likelihood.learns == bool(learned)


@pytest.mark.parametrize("df", [2.001, 3.0, 19.9, 20.1, 1e3, 9e4, 2e5])
def test_student_t_agrees_with_scipy_in_centre_and_tails(df):
    z = np.concatenate([-np.logspace(2, -6, 40), np.logspace(-6, 2, 40)])
    student = built(StudentT(df=df, scale=1.0, standardize=False), z[:, np.newaxis])
    outputs = np.zeros((80, 1))
    log_prob = np.ravel(student.log_prob(z[:, np.newaxis], outputs))
    np.testing.assert_allclose(log_prob, stats.t.logpdf(z, df), rtol=1e-9)
    cdf, expected = np.ravel(student.cdf(z[:, np.newaxis], outputs)), stats.t.cdf(z, df)
    seen = expected > 1e-30
    np.testing.assert_allclose(cdf[seen], expected[seen], rtol=1e-5)
