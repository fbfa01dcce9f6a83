import numpy as np
import tensorflow as tf

from tests.variational_weights import variational_weight
from tfbbb import priors
from tfbbb.bayes.divergences import kl_divergence


def test_scale_is_fixed_unless_it_is_to_be_trained():
    assert variational_weight(prior="normal").prior_variables == {}
    weight = variational_weight(prior=priors.Normal(0.5, trainable=True), members=2)
    np.testing.assert_allclose(
        weight.prior_variables["log_scale"].numpy(), np.log([0.5, 0.5]), rtol=1e-6
    )
    assert weight.prior_variables["log_scale"].trainable


def test_trained_scale_learns_the_root_mean_square_of_the_weights():
    weight = variational_weight(prior=priors.Normal(trainable=True), members=2)
    log_scale = weight.prior_variables["log_scale"]
    # Newton's method; the second derivative at the optimum is 2 n.
    for _ in range(30):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(kl_divergence(weight, None))
        step = tape.gradient(loss, log_scale.value) / (2.0 * weight.size)
        log_scale.assign_sub(np.clip(step, -0.5, 0.5))
    squares = np.asarray(weight.mean) ** 2 + np.asarray(weight.variance)
    optimum = 0.5 * np.log(squares.mean(axis=(1, 2)))
    np.testing.assert_allclose(log_scale.numpy(), optimum, atol=1e-5)
