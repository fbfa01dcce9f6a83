"""Layers whose weights have posteriors: their noise, gradients and errors."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp

import tfbbb.lab.compat.tfp_layers as tfpl

tfd = tfp.distributions


def test_flipout_signs_are_one_per_row_and_output():
    rows = 2000
    options = {
        "kernel_posterior_tensor_fn": lambda d: tf.ones_like(d.sample()),
        "bias_posterior_fn": None,
    }
    dense = tfpl.DenseFlipout(3, **options)
    convolution = tfpl.Convolution2DFlipout(3, 1, **options)
    image = convolution(tf.ones([rows, 2, 2, 1]))
    image -= convolution.kernel_posterior.mean()[0, 0, 0]
    np.testing.assert_array_equal(image - image[:, :1, :1], np.zeros(image.shape))
    row = dense(tf.ones([rows, 1])) - dense.kernel_posterior.mean()[0]
    for signs in (row, image[:, 0, 0]):
        np.testing.assert_allclose(np.abs(signs), 1.0, rtol=1e-5)
        # Six standard errors of a mean of independent signs.
        assert np.all(np.abs(np.mean(signs, axis=0)) < 6 / np.sqrt(rows))
        assert np.all(
            np.abs(np.mean(signs[1:] * signs[:-1], axis=0)) < 6 / np.sqrt(rows)
        )


def test_channels_may_come_first():
    first, last = (
        tfpl.Convolution2DFlipout(
            2, 3, data_format=data_format, kernel_posterior_tensor_fn=mean
        )
        for data_format in ("channels_first", "channels_last")
    )
    x = tf.random.normal([2, 5, 6, 3], seed=1)
    last(x)
    first.build((2, 3, 5, 6))
    for w, v in zip(first.weights, last.weights, strict=True):
        w.assign(v)
    y = first(tf.transpose(x, [0, 3, 1, 2]))
    assert first.compute_output_shape((2, 3, 5, 6)) == (2, 2, 3, 4)
    np.testing.assert_allclose(
        tf.transpose(y, [0, 2, 3, 1]), last(x), rtol=1e-5, atol=1e-6
    )


def mean(distribution):
    return distribution.mean()


ROW = tf.ones([1, 3])
REFUSED = [
    ("axis -1", lambda: tfpl.DenseFlipout(2).build((None, None))),
    ("axis -1", lambda: tfpl.Conv1DFlipout(2, 3).build((None, 4, None))),
    ("kernel_size", lambda: tfpl.Conv2DFlipout(2, (3, 3, 3))),
    ("must be one of", lambda: tfpl.DistributionLambda(lambda t: t, "median")),
    ("must be one of", lambda: tfpl.DistributionLambda(lambda t: t, None)),
    ("seed", lambda: tfpl.DenseReparameterization(2, seed=1)),
]
REFUSED_KINDS = [
    (
        "requires a `kernel_posterior_fn`",
        lambda: tfpl.DenseFlipout(
            2, kernel_posterior_fn=tfpl.default_mean_field_normal_fn(is_singular=True)
        )(ROW),
    ),
    (
        "converts to a draw",
        lambda: tfpl.DenseVariational(
            2,
            lambda k, b, dtype: lambda _: tfd.Normal(tf.zeros(k + b), 1.0),
            lambda k, b, dtype: lambda _: tfd.Normal(tf.zeros(k + b), 1.0),
        )(ROW),
    ),
    (
        "must return a `tfp.distributions.Distribution`",
        lambda: tfpl.DistributionLambda(lambda t: t)(ROW),
    ),
    (
        "needs a distribution",
        lambda: tfpl.KLDivergenceAddLoss(tfd.Normal(0.0, 1.0))(ROW),
    ),
]


@pytest.mark.parametrize(("message", "make"), REFUSED)
def test_bad_arguments_are_named(message, make):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(("message", "make"), REFUSED_KINDS)
def test_arguments_of_another_kind_are_named(message, make):
    with pytest.raises(TypeError, match=message):
        make()
