"""Grades: numbers with the probabilities of ordered classes."""

import numpy as np
import pytest
import tensorflow as tf
from scipy import special

from tests.bayes.likelihoods.test_contract import built
from tfbbb import likelihoods
from tfbbb.prediction.recalibration.from_outputs import predictive_from_outputs


def test_probabilities_are_those_of_ordered_classes():
    grades, classes = likelihoods.Grades(1, 5), likelihoods.OrderedLogistic(5)
    values = np.random.default_rng(0).choice(5, 300, p=[0.1, 0.4, 0.2, 0.05, 0.25])
    for likelihood in (grades, classes):
        likelihood.build((None, 1))
    grades.adapt(values + 1)
    classes.adapt(values)
    outputs = tf.constant(np.linspace(-2.0, 2.0, 7)[:, np.newaxis], tf.float64)
    expected = classes.probabilities(outputs).numpy()
    every = np.arange(1.0, 6.0)
    for place, grade in enumerate(every):
        found = grades.prob(np.full((7, 1), grade), outputs)
        np.testing.assert_allclose(found[:, 0], expected[:, place], rtol=1e-6)
    np.testing.assert_allclose(grades.mean(outputs)[:, 0], expected @ every, rtol=1e-6)
    square = np.square(every - (expected @ every)[:, np.newaxis])
    variance = np.sum(expected * square, axis=1)
    np.testing.assert_allclose(grades.variance(outputs)[:, 0], variance, rtol=1e-6)


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
