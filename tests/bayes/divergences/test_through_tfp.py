import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp

from tests.variational_weights import variational_weight
from tfbbb import priors
from tfbbb.bayes.divergences import closed_form_of, is_log_ratio, kl_divergence

tfd = tfp.distributions
KNOWN = [
    ("mean_field_normal", tfd.Normal(0.2, 0.5)),
    ("mean_field_normal", tfd.Normal([0.2, 0.3, 0.4], 0.5)),
    (tfd.Laplace, tfd.Laplace(0.0, 0.5)),
    (tfd.Normal, tfd.Normal(0.0, 0.5)),
]
UNKNOWN = [
    ("mean_field_normal", tfd.Laplace(0.0, 0.5)),
    ("low_rank_normal", tfd.Normal(0.2, 0.5)),
    (tfd.Laplace, priors.Normal(0.5)),
    (tfd.Laplace, priors.ScaleMixtureNormal()),
]


def log_ratios(weight):
    draws = tf.function(weight.draw)(tf.constant([0, 1]), 4000)
    return np.asarray(weight.log_prob(draws) - weight.prior_log_prob(draws))


@pytest.mark.parametrize(("posterior", "prior"), KNOWN, ids=str)
def test_the_closed_form_is_the_mean_log_ratio(posterior, prior):
    weight = variational_weight(posterior, prior)
    assert closed_form_of(weight) is not None
    ratios = log_ratios(weight)
    error = ratios.std() / np.sqrt(len(ratios))
    assert abs(kl_divergence(weight, None) - ratios.mean()) < 4.5 * error


@pytest.mark.parametrize(("posterior", "prior"), UNKNOWN, ids=str)
def test_an_unregistered_divergence_is_the_log_ratio(posterior, prior):
    weight = variational_weight(posterior, prior)
    assert is_log_ratio(weight)
    draw = weight.draw(tf.constant([0, 2]))
    expected = weight.log_prob(draw) - weight.prior_log_prob(draw)
    np.testing.assert_allclose(kl_divergence(weight, lambda: draw), expected)
