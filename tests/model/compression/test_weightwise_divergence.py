import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp

from tfbbb import priors
from tfbbb.layers import DenseVariational
from tfbbb.model.layer_posterior import weightwise_divergence


def kernel(prior, log_scale, members=1):
    layer = DenseVariational(5, prior=prior, members=members)
    layer.build((None, 4))
    generator = np.random.default_rng(0)
    weight = layer.kernel
    shape = weight.variables["mean"].shape
    weight.variables["mean"].assign(generator.normal(scale=0.5, size=shape))
    weight.variables["log_scale"].assign(
        log_scale + generator.normal(scale=0.3, size=shape)
    )
    return weight


@pytest.mark.parametrize(
    ("prior", "scale", "log_scale", "members"),
    [
        ("normal", 0.5, -9.0, 1),
        ("normal", 0.5, -0.7, 3),
        (priors.Normal(3), 3.0, 0.5, 1),
    ],
)
def test_equals_the_divergence_of_two_normals_weight_by_weight(
    prior, scale, log_scale, members
):
    weight = kernel(prior, log_scale, members)
    q = tfp.distributions.Normal(weight.mean, weight.stddev)
    p = tfp.distributions.Normal(tf.zeros_like(weight.mean), scale)
    exact = tfp.distributions.kl_divergence(q, p)
    # Single precision, where divergences near 0 are differences of numbers near 1.
    np.testing.assert_allclose(
        weightwise_divergence(weight), exact, rtol=1e-5, atol=1e-6
    )


def test_is_none_without_a_closed_form():
    assert weightwise_divergence(kernel("scale_mixture_normal", -2.0)) is None
