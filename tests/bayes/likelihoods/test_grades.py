"""Grades: few whole numbers, each with its probability."""

import numpy as np
import pytest
import tensorflow as tf
from scipy import special, stats

from tests.bayes.likelihoods.test_contract import built
from tfbbb import likelihoods
from tfbbb.bayes.likelihoods.grades import log_probabilities_between
from tfbbb.prediction.recalibration.from_outputs import predictive_from_outputs


@pytest.mark.parametrize("high", [2, 3, 7])
def test_grades_are_where_a_logistic_variable_falls(high):
    likelihood = likelihoods.Grades(1, high)
    likelihood.build((None, 1))
    generator = np.random.default_rng(0)
    (raw,) = likelihood.trainable_variables
    raw.assign(generator.normal(size=raw.shape))
    outputs = generator.normal(size=(6, 1))
    found = {k: x.numpy() for k, x in likelihood.parameters(outputs).items()}
    assert np.all(np.diff(found["cutpoints"]) > 0.0)
    below = stats.logistic(found["loc"][..., np.newaxis]).cdf(found["cutpoints"])
    cumulative = np.concatenate([below[:, 0], np.ones((6, 1))], axis=-1)
    expected, every = np.diff(cumulative, prepend=0.0), np.arange(1.0, high + 1.0)
    for place, grade in enumerate(every):
        values = np.full((6, 1), grade)
        np.testing.assert_allclose(
            likelihood.cdf(values + 0.5, outputs)[:, 0], cumulative[:, place]
        )
        np.testing.assert_allclose(
            likelihood.log_prob(values, outputs), np.log(expected[:, place])
        )
        for other in (grade - 0.5, -grade, grade + high):
            assert not likelihood.prob(np.full((6, 1), other), outputs).numpy().any()
    mean = expected @ every
    np.testing.assert_allclose(likelihood.mean(outputs)[:, 0], mean, rtol=1e-6)
    variance = np.sum(expected * np.square(every - mean[:, np.newaxis]), axis=1)
    np.testing.assert_allclose(likelihood.variance(outputs)[:, 0], variance, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_log_probabilities_keep_their_digits_far_from_the_cutpoints(dtype):
    location = np.array([[-90.0], [-30.0], [30.0], [90.0]])
    lower, upper = -1.0 - location, 1.0 - location
    log_expit = special.log_expit
    between = log_expit(upper) + log_expit(-lower) + np.log(-np.expm1(lower - upper))
    expected = np.concatenate([log_expit(lower), between, log_expit(-upper)], axis=-1)
    cutpoints = tf.constant([-1.0, 1.0], dtype)
    found = log_probabilities_between(tf.constant(location, dtype), cutpoints)
    # What is below 1e-38 has no place in single precision.
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-38)


def test_quantile_of_a_level_reached_exactly_is_its_grade():
    likelihood = likelihoods.Grades(1, 2)
    likelihood.build((None, 1))
    assert float(likelihood.cdf([[1.0]], [[0.0]])[0, 0]) == 0.5
    assert likelihood.quantile(0.5, [[0.0]]).numpy().tolist() == [[1.0]]


def test_a_prediction_has_the_probability_of_each_grade():
    likelihood = built("grades", {})
    outputs = np.random.default_rng(0).normal(size=(3, 4, 1))
    prediction = predictive_from_outputs(likelihood, outputs)
    found = [prediction.probability(grade) for grade in range(7)]
    np.testing.assert_allclose(np.sum(found, axis=0), 1.0)
    for grade in range(7):
        of_draws = likelihood.prob(np.full((3, 4, 1), float(grade)), outputs).numpy()
        np.testing.assert_allclose(found[grade], of_draws.mean(axis=1), atol=1e-7)
    mean = sum(grade * found[grade] for grade in range(7))
    np.testing.assert_allclose(prediction.mean, mean, rtol=1e-6)


def test_outputs_of_zero_have_the_shares_of_the_training_grades():
    likelihood = likelihoods.Grades(2, 4)
    likelihood.build((None, 1))
    likelihood.adapt(np.repeat([2.0, 3.0, 4.0], [10, 30, 60]))
    shares = likelihood.prob([[2.0], [3.0], [4.0]], np.zeros((1, 1))).numpy()[:, 0]
    # The floor of the distances between cutpoints is 1e-4 of them.
    np.testing.assert_allclose(shares, np.array([10.5, 30.5, 60.5]) / 101.5, rtol=1e-3)


def test_each_row_may_have_cutpoints_of_its_own():
    likelihood = built("grades", {"heteroscedastic": True}, num_targets=2)
    assert likelihood.num_outputs(2) == 2 + 4 * 2
    outputs = np.random.default_rng(0).normal(size=(6, 10))
    every = np.arange(1.0, 6.0)[:, np.newaxis, np.newaxis]
    found = likelihood.prob(np.broadcast_to(every, (5, 6, 2)), outputs).numpy()
    np.testing.assert_allclose(found.sum(axis=0), 1.0, rtol=1e-9)
    cumulative = likelihood.cdf(np.broadcast_to(every, (5, 6, 2)), outputs).numpy()
    np.testing.assert_allclose(np.cumsum(found, axis=0), cumulative, rtol=1e-9)
    assert not likelihood.cdf(np.full((6, 2), 0.9), outputs).numpy().any()
    # A cutpoint is where the sum is the sigmoid of its distance from the location.
    cutpoints = likelihood.parameters(outputs)["cutpoints"].numpy()
    location = likelihood.parameters(outputs)["loc"].numpy()
    for place in range(4):
        expected = special.expit(cutpoints[..., place] - location)
        np.testing.assert_allclose(cumulative[place], expected, rtol=1e-9)


@pytest.mark.parametrize("ends", [(5, 1), (-1, 3), (1, 90)])
def test_grades_are_few_whole_numbers(ends):
    with pytest.raises(ValueError, match=r"Grades are whole numbers.*Received"):
        likelihoods.Grades(*ends)


def test_a_number_that_is_no_grade_is_named():
    likelihood = likelihoods.Grades(1, 5)
    likelihood.build((None, 1))
    for wrong in (0.0, 2.5, 6.0):
        with pytest.raises(ValueError, match=r"must be whole numbers from 1 to 5;"):
            likelihood.check_targets(np.array([[1.0], [wrong]]))
