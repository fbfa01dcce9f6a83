import numpy as np
import pytest
import tensorflow as tf

from tests.variational_weights import variational_weight
from tfbbb import posteriors, priors


@pytest.mark.parametrize(("members", "samples"), [(1, 2), (3, 1)])
def test_draws_of_a_point_are_its_mean(members, samples):
    weight = variational_weight("point", members=members)
    draws = weight.draw(tf.constant([0, 1]), samples)
    expected = np.reshape(weight.mean, (members, 4, 3)).repeat(samples, axis=0)
    np.testing.assert_array_equal(np.reshape(draws, expected.shape), expected)
    np.testing.assert_array_equal(weight.variance, np.zeros_like(weight.mean))


def test_only_a_point_goes_without_a_prior():
    posteriors.get("point").check_prior(None)
    for name in ("mean_field_normal", "low_rank_normal"):
        with pytest.raises(ValueError, match="'point'"):
            posteriors.get(name).check_prior(None)


def test_refuses_priors_of_unbounded_density_and_names_others():
    for prior in (priors.Horseshoe(), priors.EmpiricalNormal()):
        with pytest.raises(ValueError, match=r"no optimum. Use e.g. 'normal'.*prior="):
            posteriors.get("point").check_prior(prior)
    posteriors.get("point").check_prior(priors.Laplace())


def test_refuses_to_tell_a_density():
    weight = variational_weight("point")
    with pytest.raises(ValueError, match="'point' has no density"):
        weight.log_prob(weight.mean)
