import numpy as np
import pytest

from tfbbb.lab.inference.natural_normal import NaturalNormal

COVARIANCE = np.array([[2.0, 0.6], [0.6, 1.0]])
MEAN = np.array([1.0, -2.0])


@pytest.mark.parametrize("covariance", [COVARIANCE, np.diag(COVARIANCE)])
def test_moments_come_back(covariance):
    mean, found = NaturalNormal.from_moments(MEAN, covariance).moments()
    np.testing.assert_allclose(mean, MEAN)
    np.testing.assert_allclose(found, covariance)


def test_a_product_has_the_density_of_both_factors():
    first = NaturalNormal.from_moments(MEAN, COVARIANCE)
    second = NaturalNormal.from_moments(np.zeros(2), np.eye(2))
    mean, covariance = (first + second).moments()
    # The posterior of a normal prior and one observation 0 with covariance 1.
    gain = COVARIANCE @ np.linalg.inv(COVARIANCE + np.eye(2))
    np.testing.assert_allclose(mean, MEAN - gain @ MEAN)
    np.testing.assert_allclose(covariance, COVARIANCE - gain @ COVARIANCE)


def test_a_negative_precision_is_improper():
    assert NaturalNormal.from_moments(MEAN, COVARIANCE).proper
    assert not NaturalNormal(MEAN, np.array([1.0, -0.1])).proper
    assert not NaturalNormal(MEAN, np.array([[1.0, 2.0], [2.0, 1.0]])).proper
