"""The mixture of any likelihood over draws of outputs, by brute force."""

import numpy as np
import pytest
import tensorflow as tf

from tests.bayes.likelihoods.test_contract import EVERY, made, size_of, targets_of
from tfbbb.prediction.recalibration.from_outputs import predictive_from_outputs

ROWS = 4
LEVELS = [0.05, 0.5, 0.9]
PLACES = [(), (2,)]
# By number of places: with scalar and vector targets, counts and classes.
SHORT = (
    {
        *("normal, heteroscedastic", "multivariate_normal", "negative_binomial"),
        *("categorical", "grades", "zero_inflated, log_normal"),
    },
    {"normal", "categorical"},
)
MOMENTS = ("mean", "variance")


def predicted(name, arguments, places):
    """Returns a prediction of 12 draws, and their outputs [rows, S, ..., P]."""
    likelihood = made(name, arguments)
    num_targets = 2 if likelihood.task == "regression" and not places else 1
    units = likelihood.num_outputs(size_of(likelihood, num_targets))
    likelihood.build((None, *places, units))
    targets = targets_of(likelihood, rows=400, num_targets=num_targets)
    event = targets.shape[1:]
    likelihood.adapt(targets.reshape(-1, *places, *event))
    y = targets[: ROWS * int(np.prod(places, dtype=int))].reshape(ROWS, *places, *event)
    generator = np.random.default_rng(0)
    drawn = 0.5 * generator.normal(size=(ROWS, 12, *places, units))
    outputs = np.asarray(likelihood.of_members(tf.constant(drawn, tf.float32), 0))
    prediction = predictive_from_outputs(likelihood, outputs, seed=2)
    return likelihood, prediction, outputs.astype(np.float64), y


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(
            (*kind.values, places),
            id=f"{kind.id}, {len(places)} places",
            marks=[] if kind.id in SHORT[len(places)] else [pytest.mark.slow],
        )
        for kind in EVERY
        for places in PLACES
    ],
)
def case(request):
    return predicted(*request.param)


def test_moments_are_those_of_the_mixture(case):
    likelihood, prediction, outputs, _ = case
    means, noise = (getattr(likelihood, name)(outputs).numpy() for name in MOMENTS)
    np.testing.assert_allclose(prediction.mean, means.mean(axis=1), rtol=1e-5)
    np.testing.assert_allclose(
        prediction.aleatoric, noise.mean(axis=1), rtol=1e-5, atol=1e-7
    )
    # Draws in pairs: that of the mean falls short by its squared error.
    error = means.reshape(ROWS, 6, 2, *means.shape[2:]).mean(axis=2).std(axis=1, ddof=1)
    epistemic = means.var(axis=1) + error**2 / 6
    np.testing.assert_allclose(prediction.epistemic, epistemic, rtol=1e-4, atol=1e-7)
    parts = prediction.epistemic + prediction.aleatoric
    np.testing.assert_allclose(prediction.variance, parts, rtol=1e-12)


def test_density_is_the_average_over_the_draws(case):
    likelihood, prediction, outputs, y = case
    targets = likelihood.check_targets(y)
    logs = np.stack([likelihood.log_prob(targets, outputs[:, s]) for s in range(12)], 1)
    close = {"rtol": 1e-6, "atol": 1e-9}
    average = np.log(np.exp(logs).mean(axis=1))
    np.testing.assert_allclose(prediction.log_prob(y), average, **close)
    of_draws = logs.sum(axis=tuple(range(2, logs.ndim)))
    np.testing.assert_allclose(prediction.log_prob_of_draws(y), of_draws, **close)


def test_distribution_function_is_averaged_and_its_inverse_is_the_quantile(case):
    likelihood, prediction, outputs, _ = case
    if not likelihood.ordered:
        for question in (prediction.quantile, prediction.interval, prediction.cdf):
            with pytest.raises(ValueError, match=r"no order and hence no .*Received"):
                question(0.5)
        return
    quantiles = prediction.quantile(LEVELS)
    lower, upper = prediction.interval(0.9)
    np.testing.assert_array_equal(lower, prediction.quantile(0.5 - 0.9 / 2))
    assert np.all(lower < upper) or likelihood.discrete or likelihood.masses
    for number, level in enumerate(LEVELS):
        found = quantiles[:, number]
        average = np.mean(
            [likelihood.cdf(found, outputs[:, draw]) for draw in range(12)], axis=0
        )
        np.testing.assert_allclose(prediction.cdf(found), average, rtol=1e-6)
        if likelihood.discrete:
            assert np.all(average >= level)
            assert np.all(prediction.cdf(found - 1.0) < level)
        else:
            is_mass = np.isin(found, likelihood.masses)
            np.testing.assert_allclose(average[~is_mass], level, rtol=1e-6)
            assert np.all(average[is_mass] >= level)


def test_samples_have_the_shape_and_the_mean_of_targets(case):
    likelihood, prediction, _, y = case
    drawn = prediction.sample(2000)
    assert drawn.shape == (2000, *np.reshape(y, drawn.shape[1:]).shape)
    np.testing.assert_array_equal(drawn, prediction.sample(2000))
    if likelihood.task == "classification":
        drawn = np.eye(prediction.mean.shape[-1])[drawn.astype(int)]
    error = drawn.std(axis=0) / np.sqrt(2000)
    assert np.all(np.abs(drawn.mean(axis=0) - prediction.mean) < 5.0 * error + 1e-9)


def test_summaries_are_columns_of_a_table(case):
    likelihood, prediction, _, _ = case
    table = prediction.to_pandas()
    assert len(table) == len(prediction) == ROWS
    width = int(np.prod(prediction.mean.shape[1:]))
    names = ["mean"] if width == 1 else [f"mean_{place}" for place in range(width)]
    np.testing.assert_array_equal(
        table[names].to_numpy(), prediction.mean.reshape(ROWS, -1)
    )
    what = "classes" if likelihood.task == "classification" else "targets"
    size = prediction.mean.shape[-1]
    assert repr(prediction) == f"Predictive(rows=4, {what}={size}, num_samples=12)"
    assert prediction.to_numpy().keys() >= {"mean", "variance", "epistemic"}


def test_entropy_is_the_sum_of_noise_and_weights(case):
    likelihood, prediction, outputs, _ = case
    if likelihood.task != "classification":
        with pytest.raises(AttributeError, match="defined for classes only"):
            _ = prediction.entropy
        return
    p = likelihood.probabilities(outputs).numpy()
    np.testing.assert_allclose(p.sum(axis=-1), 1.0, rtol=1e-6)
    mean = p.mean(axis=1)
    entropy = -(mean * np.log(mean)).sum(axis=-1)
    expected = -(p * np.log(p)).sum(axis=-1).mean(axis=1)
    np.testing.assert_allclose(prediction.entropy, entropy, rtol=1e-5)
    # A difference of two numbers that are alike.
    np.testing.assert_allclose(
        prediction.mutual_information, entropy - expected, rtol=1e-3, atol=1e-6
    )
    np.testing.assert_allclose(prediction.variance, mean * (1 - mean), rtol=0.05)
