import numpy as np
import pytest
from scipy import optimize

from tests.variational_weights import variational_weight
from tfbbb.bayes.divergences import kl_divergence


def divergence_from(weight, mean, variance):
    """Returns KL(q || N(mean, variance)) summed over the weights, as TFP has it."""
    import tensorflow_probability as tfp

    q = tfp.distributions.Normal(weight.mean, weight.stddev)
    p = tfp.distributions.Normal(np.float32(mean), np.float32(np.sqrt(variance)))
    return float(np.sum(tfp.distributions.kl_divergence(q, p), dtype=np.float64))


def test_divergence_is_the_minimum_over_mean_and_variance():
    weight = variational_weight(prior="empirical_normal")
    best = optimize.minimize(
        lambda p: divergence_from(weight, p[0], np.exp(p[1])),
        x0=[0.0, 0.0],
        method="Nelder-Mead",
    )
    np.testing.assert_allclose(kl_divergence(weight, None), best.fun, rtol=1e-5)
    parameters = weight.prior.parameters(weight)
    # At a minimum, errors in the arguments are the root of those in the value.
    np.testing.assert_allclose(parameters["mean"], best.x[0], atol=3e-3)
    np.testing.assert_allclose(parameters["variance"], np.exp(best.x[1]), rtol=3e-3)


def test_refuses_few_weights():
    with pytest.raises(ValueError, match="'output/bias' of 9 weights"):
        variational_weight(prior="empirical_normal", shape=(9,), path="output/bias")
    assert variational_weight(prior="empirical_normal", shape=(10,)).size == 10
