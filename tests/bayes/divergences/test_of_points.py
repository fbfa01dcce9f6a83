import numpy as np
import pytest
import tensorflow_probability as tfp

from tests.variational_weights import variational_weight
from tfbbb import priors
from tfbbb.bayes.divergences import kl_divergence

PRIORS = [
    priors.Normal(0.3),
    priors.Laplace(),
    priors.StudentT(),
    priors.ScaleMixtureNormal(),
    priors.GammaNormal(),
    priors.TFPDistribution(tfp.distributions.Cauchy(0.0, 1.0)),
]
each_prior = pytest.mark.parametrize("prior", PRIORS, ids=repr)


@pytest.mark.parametrize("members", [1, 3])
def test_a_point_without_a_prior_has_no_divergence(members):
    weight = variational_weight("point", None, members=members)
    divergence = kl_divergence(weight, None)
    expected = np.zeros((members,) if members > 1 else ())
    np.testing.assert_array_equal(divergence, expected)


@each_prior
def test_the_term_of_a_point_is_its_negative_log_prior(prior):
    weight = variational_weight("point", prior)
    expected = -prior.log_prob({}, weight.mean, weight.shape, weight.fan_in)
    np.testing.assert_allclose(kl_divergence(weight, None), expected)
