"""Layers whose weights have posteriors: their noise, gradients and errors."""

import keras
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


def test_large_inputs_do_not_overflow_in_float16():
    layer = tfpl.DenseLocalReparameterization(2, dtype="mixed_float16")
    y = layer(tf.constant([[3000.0, -200.0]]))
    assert y.dtype == tf.float16
    assert np.all(np.isfinite(y))


@pytest.mark.parametrize("estimator", ["Flipout", "Reparameterization"])
def test_channels_may_come_first(estimator):
    first, last = (
        getattr(tfpl, f"Convolution2D{estimator}")(
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


def test_regularizers_and_constraints_of_the_posterior_apply():
    layer = tfpl.DenseReparameterization(
        2,
        kernel_posterior_fn=tfpl.default_mean_field_normal_fn(
            loc_initializer="ones", loc_regularizer=keras.regularizers.L2(0.5)
        ),
        kernel_prior_fn=None,
    )
    layer(tf.ones([1, 3]))
    (loss,) = layer.losses
    assert float(loss) == pytest.approx(0.5 * 6)


def test_a_posterior_of_ones_own_refers_to_variables():
    def posterior_fn(dtype, shape, name, trainable, add_variable_fn):
        loc = add_variable_fn(
            name=name + "_loc",
            shape=shape,
            dtype=dtype,
            initializer=tf.random_normal_initializer(stddev=0.1),
            trainable=trainable,
        )
        scale = tfp.util.DeferredTensor(
            add_variable_fn(
                name=name + "_rho",
                shape=shape,
                dtype=dtype,
                initializer=tf.constant_initializer(-1.0),
                trainable=trainable,
            ),
            tf.math.exp,
        )
        return tfd.Independent(tfd.Normal(loc, scale), len(shape))

    layer = tfpl.DenseFlipout(2, kernel_posterior_fn=posterior_fn)
    model = keras.Sequential([layer])
    model.compile(keras.optimizers.SGD(0.1), loss="mse")
    x = np.ones((8, 3), "float32")
    model.fit(x, np.ones((8, 2), "float32"), verbose=0)
    loc, rho = layer.weights[:2]
    assert [w.name for w in layer.weights[:2]] == [
        "kernel_posterior_loc",
        "kernel_posterior_rho",
    ]
    np.testing.assert_array_equal(layer.kernel_posterior.mean(), loc)
    np.testing.assert_allclose(layer.kernel_posterior.stddev(), tf.exp(rho))
    assert not np.all(np.equal(rho, -1.0))


def test_dense_variational_without_bias_over_several_axes():
    def prior(kernel_size, bias_size=0, dtype=None):
        assert bias_size == 0
        return lambda _: tfd.MultivariateNormalDiag(tf.zeros(kernel_size, dtype))

    def posterior(kernel_size, bias_size=0, dtype=None):
        return keras.Sequential(
            [
                tfpl.VariableLayer(2 * kernel_size, dtype=dtype),
                tfpl.IndependentNormal(kernel_size, "mean"),
            ]
        )

    layer = tfpl.DenseVariational(2, posterior, prior, use_bias=False)
    x = tf.random.normal([4, 5, 3], seed=1)
    kernel = np.arange(6.0)
    layer.build(x.shape)
    layer.weights[0].assign([*kernel, *np.zeros(6)])
    np.testing.assert_allclose(layer(x), x @ kernel.reshape(3, 2), rtol=1e-5)
    assert layer.compute_output_shape((4, 5, 3)) == (4, 5, 2)


ROW = tf.ones([1, 3])
REFUSED = [
    ("last dimension", lambda: tfpl.DenseFlipout(2).build((None, None))),
    ("number of channels", lambda: tfpl.Conv1DFlipout(2, 3).build((None, 4, None))),
    (
        "last dimension",
        lambda: tfpl.DenseVariational(2, None, None).build((None, None)),
    ),
    ("`kernel_size` must be", lambda: tfpl.Conv2DFlipout(2, (3, 3, 3))),
    ("`strides` must be", lambda: tfpl.Conv2DFlipout(2, 3, 0)),
    ("`dilation_rate` must be", lambda: tfpl.Conv2DFlipout(2, 3, dilation_rate="a")),
    ("`padding` must be", lambda: tfpl.Conv2DFlipout(2, 3, padding="causal")),
    ("`data_format` must be", lambda: tfpl.Conv2DFlipout(2, 3, data_format="NHWC")),
    ("must be one of", lambda: tfpl.DistributionLambda(lambda t: t, "median")),
    ("a name or a function", lambda: tfpl.DistributionLambda(lambda t: t, 3)),
    ("`shape` must be", lambda: tfpl.VariableLayer([[2, 3]])),
]
REFUSED_KINDS = [
    (
        "requires a `kernel_posterior_fn`",
        lambda: tfpl.DenseFlipout(
            2, kernel_posterior_fn=tfpl.default_mean_field_normal_fn(is_singular=True)
        )(ROW),
    ),
    ("floating-point", lambda: tfpl.DenseFlipout(2, dtype="int32").build((None, 3))),
    (
        "floating-point",
        lambda: tfpl.DenseVariational(2, None, None, dtype="int32").build((None, 3)),
    ),
    ("no argument `seed`", lambda: tfpl.DenseReparameterization(2, seed=1)),
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
        "joint one of several",
        lambda: tfpl.DistributionLambda(
            lambda t: tfd.JointDistributionSequential(
                [tfd.Normal(t, 1.0), tfd.Normal(t, 1.0)]
            )
        )(ROW),
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


def test_a_distribution_without_a_conversion_is_no_tensor():
    layer = tfpl.DistributionLambda(lambda t: tfd.Normal(t, 1.0), None)
    with pytest.raises(NotImplementedError, match="convert_to_tensor_fn=None"):
        layer(tf.ones([1, 3]))
