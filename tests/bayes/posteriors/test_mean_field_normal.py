import numpy as np
import pytest
from scipy import stats

from tfbbb.layers import DenseVariational


@pytest.fixture
def kernel():
    layer = DenseVariational(3, kl_weight=1.0)
    layer.build((None, 4))
    generator = np.random.default_rng(0)
    layer.kernel.variables["mean"].assign(generator.normal(size=(4, 3)))
    layer.kernel.variables["log_scale"].assign(generator.normal(size=(4, 3)) - 1.0)
    return layer.kernel


def test_log_prob_sums_the_normal_log_densities(kernel):
    weights = np.random.default_rng(1).normal(size=(4, 3)).astype("float32")
    scale = np.exp(kernel.variables["log_scale"].numpy())
    exact = stats.norm.logpdf(weights, kernel.variables["mean"].numpy(), scale).sum()
    np.testing.assert_allclose(kernel.log_prob(weights), exact, rtol=1e-5)
