"""The loss of rows by the members that leave them out."""

import keras
import numpy as np
import scipy.stats
import tensorflow as tf

import tfbbb
from tfbbb.training.cross_fitting import MemberRows


def test_weights_of_rows_weigh_their_left_out_members():
    weights = np.array([1.0, 2.0, 3.0, 4.0])
    members = MemberRows.draw(4, (1.0,), 4, repeats=2, row_weights=weights)
    total = members.weights + members.left_out_weights
    np.testing.assert_allclose(total, np.tile(weights[:, None], (1, 4)))
    # Two of the four members leave a row out.
    left_out = (members.left_out_weights > 0).sum(axis=1)
    np.testing.assert_array_equal(left_out, 2)


def test_loss_of_left_out_rows_is_that_of_their_members():
    """Each member is a constant without noise, so the loss has a closed form."""
    rows, scale = 30, 0.5
    members = MemberRows.draw(rows, (1.0, 0.1), 6, repeats=2)
    inputs = keras.Input((2,))
    layer = tfbbb.layers.DenseVariational(1, kernel_initializer="zeros", kl_weight=1.0)
    likelihood = tfbbb.likelihoods.Normal(scale=scale, standardize=False)
    model = tfbbb.BayesianModel(
        inputs, layer(inputs), likelihood=likelihood, members=members.num_members
    )
    model.compile("adam")
    for weight in layer.variational_weights:
        log_scale = weight.variables["log_scale"]
        log_scale.assign(np.full(log_scale.shape, -30.0))
    layer.kernel.variables["mean"].assign(np.zeros((12, 2, 1)))
    constants = np.linspace(-1.0, 1.0, 12)
    layer.bias.variables["mean"].assign(constants[:, np.newaxis])
    targets = np.random.default_rng(0).normal(size=(rows, 1)).astype(np.float32)

    weights = members.left_out_weights
    inputs = np.zeros((rows, 2), np.float32)
    data = tf.data.Dataset.from_tensor_slices((inputs, targets, weights)).batch(rows)
    figures = model.evaluate(data, return_dict=True, verbose=0)
    losses = -scipy.stats.norm.logpdf(targets, constants, scale)
    expected = (weights * losses).sum() / weights.sum()
    np.testing.assert_allclose(figures["nll"], expected, rtol=1e-5)
