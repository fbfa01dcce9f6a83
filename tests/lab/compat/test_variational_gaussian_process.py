"""Gaussian processes and targets of another dtype."""

import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp

import tfbbb.lab.compat.tfp_layers as tfpl

X = np.linspace(-1, 1, 12).reshape(12, 1)


class Kernel(keras.layers.Layer):
    @property
    def kernel(self):
        one = tf.ones((), self.dtype)
        return tfp.math.psd_kernels.ExponentiatedQuadratic(one, one)


def process(dtype):
    layer = tfpl.VariationalGaussianProcess(
        3,
        Kernel(dtype=dtype),
        inducing_index_points_initializer=keras.initializers.Constant(
            [[[-1.0], [0.0], [1.0]]]
        ),
        jitter=1e-3,
    )
    return keras.Sequential([keras.Input((1,), dtype=dtype), layer])


@pytest.mark.parametrize(
    ("make", "dtype"),
    [
        (lambda y: y, "float32"),
        (tf.constant, "float32"),
        (lambda y: tf.cast(y, "float32"), "float64"),
    ],
)
def test_variational_loss_takes_targets_of_any_dtype(make, dtype):
    d = process(dtype)(X.astype(dtype))
    y = np.round(3 * X)
    expected = d.variational_loss(y.astype(dtype), kl_weight=0.5)
    for weight in (np.float64(0.5), tf.constant(0.5), tf.constant(0.5, tf.float64)):
        loss = d.variational_loss(make(y), kl_weight=weight)
        assert loss.dtype == dtype
        np.testing.assert_allclose(loss, expected, rtol=1e-5)
    integers = d.variational_loss(y.astype("int32"), kl_weight=0.5)
    np.testing.assert_allclose(integers, expected, rtol=1e-5)
