import numpy as np
import tensorflow as tf

from tfbbb.bayes.estimators.score_function import score_function_term


def test_control_variate_is_the_mean_loss_of_the_other_draws():
    # Two members of three draws each.
    losses = np.array([1.0, 4.0, 2.0, -3.0, 0.5, 7.0])
    log_prob = tf.Variable(tf.zeros(6, tf.float64))
    with tf.GradientTape() as tape:
        term = score_function_term(tf.constant(losses), log_prob + 0.0, num_samples=3)
    assert float(term) == 0.0
    by_member = losses.reshape(2, 3)
    others = (by_member.sum(axis=1, keepdims=True) - by_member) / 2
    expected = (by_member - others).ravel() / 6
    np.testing.assert_allclose(tape.gradient(term, log_prob), expected, rtol=1e-12)
