import numpy as np
import pytest
import tensorflow as tf
from scipy import special

from tfbbb.bayes.likelihoods.stirling_correction import stirling_correction


@pytest.mark.parametrize("x", [1e-8, 0.3, 2.0, 7.999, 8.0, 100.0, 1e9])
def test_the_stirling_correction_completes_the_formula(x):
    found = stirling_correction(tf.constant(x, tf.float64))
    if x > 1e3:
        # 1 / (12 x) - 1 / (360 x^3) + ...
        np.testing.assert_allclose(found, 1.0 / (12.0 * x), rtol=1e-10)
        return
    stirling = 0.5 * np.log(2.0 * np.pi * x) + special.xlogy(x, x) - x
    np.testing.assert_allclose(found, special.gammaln(x + 1.0) - stirling, atol=1e-12)
