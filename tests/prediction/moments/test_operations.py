"""Means and variances behind one operation are those of draws."""

import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp
from keras import layers

from tests.uncertain_inputs import (
    assert_within_standard_errors,
    differ,
    model_of,
    monte_carlo,
    normals,
    some_normals,
    with_standard_errors,
)
from tfbbb.bayes.posteriors import FullCovarianceNormal, MeanFieldNormal
from tfbbb.layers import (
    Conv1DTransposeVariational,
    Conv1DVariational,
    Conv2DTransposeVariational,
    Conv2DVariational,
    Conv3DVariational,
    DenseVariational,
    DepthwiseConv2DVariational,
    EinsumDenseVariational,
    EmbeddingVariational,
    SeparableConv2DVariational,
)
from tfbbb.prediction.moments import operations, output_moments, prepared


def trained_normalization(layer, shape):
    """Returns a layer whose statistics and parameters are not those of the start."""
    layer.build((None, *shape))
    generator = np.random.default_rng(3)
    layer.set_weights([generator.uniform(0.5, 2, w.shape) for w in layer.get_weights()])
    return layer


AFFINE = [
    (lambda s: layers.Dense(3, bias_initializer="ones"), (6,)),
    (lambda s: layers.Dense(3), (2, 4)),
    (lambda s: layers.EinsumDense("abc,cd->abd", (None, 2), bias_axes="d"), (3, 4)),
    (lambda s: layers.Conv1D(2, 3, strides=2, bias_initializer="ones"), (7, 2)),
    (lambda s: layers.Conv1D(2, 2, padding="causal", dilation_rate=2), (5, 2)),
    (lambda s: layers.Conv2D(4, 2, padding="same", groups=2), (3, 2, 2)),
    (lambda s: layers.Conv3D(2, (1, 2, 2)), (2, 2, 2, 2)),
    (lambda s: layers.Conv1DTranspose(2, 3, strides=2), (3, 2)),
    (lambda s: layers.Conv2DTranspose(2, 2, strides=2, padding="same"), (2, 2, 2)),
    (lambda s: layers.Conv3DTranspose(1, 2), (2, 2, 2, 1)),
    (lambda s: layers.DepthwiseConv1D(2, depth_multiplier=2), (4, 2)),
    (lambda s: layers.DepthwiseConv2D(2, padding="same"), (3, 2, 2)),
    (lambda s: layers.SeparableConv1D(2, 2, depth_multiplier=2), (4, 2)),
    (lambda s: layers.SeparableConv2D(3, 2, depth_multiplier=2), (3, 2, 2)),
    (lambda s: layers.AveragePooling1D(3, 2, padding="same"), (6, 2)),
    (lambda s: layers.AveragePooling2D(2, padding="same"), (3, 3, 2)),
    (lambda s: layers.AveragePooling3D(2), (2, 2, 2, 2)),
    (lambda s: layers.GlobalAveragePooling1D(), (5, 3)),
    (lambda s: layers.GlobalAveragePooling2D(keepdims=True), (3, 3, 2)),
    (lambda s: trained_normalization(layers.BatchNormalization(), s), (3, 2)),
    (lambda s: trained_normalization(layers.BatchNormalization(axis=1), s), (3, 2)),
    (lambda s: layers.Normalization(mean=[1.0, 2.0], variance=[4.0, 9.0]), (3, 2)),
    (
        lambda s: layers.Normalization(mean=1.0, variance=4.0, invert=True, axis=None),
        (3,),
    ),
    (lambda s: layers.Rescaling([2.0, 3.0], offset=1.0), (3, 2)),
    (lambda s: layers.Flatten(), (3, 2)),
    (lambda s: layers.Permute((2, 1)), (3, 2)),
    (lambda s: layers.RepeatVector(2), (3,)),
    (lambda s: layers.ZeroPadding1D(1), (3, 2)),
    (lambda s: layers.ZeroPadding2D(1), (2, 2, 1)),
    (lambda s: layers.Cropping1D(1), (4, 2)),
    (lambda s: layers.Cropping2D(1), (3, 3, 2)),
    (lambda s: layers.UpSampling1D(2), (3, 2)),
    (lambda s: layers.UpSampling2D(2), (2, 2, 2)),
    (lambda s: layers.Dropout(0.5), (3,)),
    (lambda s: layers.GaussianNoise(0.5), (3,)),
    (lambda s: layers.Identity(), (3,)),
    (lambda s: lambda x: 2.0 * x + 1.0, (3,)),
    (lambda s: lambda x: 1.0 - x / 4.0, (3,)),
    (lambda s: lambda x: -x * np.array([1.0, 2.0, 3.0], "float32"), (3,)),
    (lambda s: lambda x: x[:, 1:, 0], (3, 2)),
    (lambda s: lambda x: x[..., :1], (3, 2)),
    (lambda s: lambda x: keras.ops.reshape(x, (-1, 2, 3)), (3, 2)),
]


def id_of(case):
    return f"{case[1]}"


@pytest.mark.few(14)
@pytest.mark.parametrize("case", AFFINE, ids=id_of)
def test_affine_operations_are_exact(case):
    make, shape = case
    keras.utils.set_random_seed(2)
    operation, (means, stddevs) = make(shape), some_normals(shape)
    model = model_of(operation, means, stddevs, shape)
    assert all(each.exact for each in operations(model)), operations(model)
    mean, variance = output_moments(model, tf.ones((1, len(means))))
    # Of y = A x + c: E[y] = A E[x] + c, Var[y] = A^2 Var[x].
    units = tf.reshape(tf.eye(len(means)), (-1, *shape))
    constant = operation(tf.zeros((1, *shape))).numpy().astype("float64")
    slopes = operation(units).numpy() - constant
    expected = constant[0] + np.tensordot(means, slopes, 1)
    np.testing.assert_allclose(mean[0, 0], expected, rtol=1e-4, atol=1e-5)
    expected = np.tensordot(stddevs.astype("float64") ** 2, slopes**2, 1)
    np.testing.assert_allclose(variance[0, 0], expected, rtol=1e-4, atol=1e-6)
    again = output_moments(model, tf.ones((1, len(means))), prepared(model))
    np.testing.assert_allclose(again[1], variance, rtol=1e-6)


@pytest.mark.parametrize(
    ("operation", "shape"),
    [
        (layers.Dense(3, "relu"), (6,)),
        (layers.MaxPooling1D(2), (6, 2)),
        (layers.MaxPooling2D((1, 2), 1, padding="same"), (2, 3, 2)),
        (layers.GlobalMaxPooling1D(), (2, 4)),
    ],
)
def test_operations_with_kinks_are_exact_for_normals(operation, shape):
    means, stddevs = some_normals(shape)
    model = model_of(operation, means, stddevs, shape)
    assert all(each.exact for each in operations(model)), operations(model)
    moments = output_moments(model, tf.ones((1, len(means))))
    sampled = monte_carlo(operation, means, stddevs, shape)
    assert_within_standard_errors([x[0, 0] for x in moments], sampled)


WIDE = {
    "posterior": MeanFieldNormal(initial_scale=1.0),
    "bias_posterior": MeanFieldNormal(initial_scale=0.5),
    "bias_initializer": "ones",
}
CERTAIN_KERNEL = {
    "posterior": "point",
    "prior": None,
    "bias_posterior": FullCovarianceNormal(initial_scale=0.5),
}
LINEAR = [
    (lambda: DenseVariational(3, **LAPLACE), (4,)),
    (lambda: DenseVariational(3, **WIDE), (4,)),
    (lambda: DenseVariational(3, **WIDE), (2, 3)),
    (lambda: DenseVariational(2, **CERTAIN_KERNEL), (3,)),
    (
        lambda: EinsumDenseVariational("abc,bcd->abd", (None, 2), None, "bd", **WIDE),
        (2, 3),
    ),
    (lambda: Conv1DVariational(2, 2, padding="causal", **WIDE), (4, 2)),
    (lambda: Conv2DVariational(2, 2, groups=2, **WIDE), (3, 3, 2)),
    (lambda: Conv3DVariational(2, (1, 2, 2), strides=2, **WIDE), (1, 3, 2, 2)),
    (lambda: Conv1DTransposeVariational(2, 3, strides=2, **WIDE), (3, 2)),
    (lambda: Conv2DTransposeVariational(1, 2, strides=2, **WIDE), (2, 2, 2)),
    (lambda: DepthwiseConv2DVariational(2, padding="same", **WIDE), (2, 2, 2)),
]


LAPLACE = {"posterior": tfp.distributions.Laplace, "bias_posterior": "point"}


def bilinear_moments(layer, means, variances, shape):
    """Mean and variance of `sum_ik T_oik x_i w_k + b`, from T and nothing else.

    Of independent x and w, by the law of total variance:
    `Var = sum_i Var[x_i] (sum_k T_oik E[w_k])^2 + sum_k Var[w_k] (sum_i T_oik E[x_i])^2
    + sum_ik T_oik^2 Var[x_i] Var[w_k]`, and the variance of the bias.
    """
    units = tf.reshape(tf.eye(len(means)), (-1, *shape))
    kernels = np.eye(layer.kernel.size, dtype="float32")
    outputs = [layer.linear(units, k.reshape(layer.kernel.shape)) for k in kernels]
    t = np.stack([x.numpy() for x in outputs], axis=-1).astype("float64")
    m, v = (np.ravel(w) for w in (layer.kernel.mean, layer.kernel.variance))
    of_mean, of_input = np.tensordot(t, m, 1), np.tensordot(means, t, 1)
    mean = np.tensordot(means, of_mean, 1)
    variance = np.tensordot(variances, of_mean**2, 1) + np.tensordot(of_input**2, v, 1)
    variance += np.tensordot(variances, np.tensordot(t**2, v, 1), 1)
    return mean + layer.bias.mean.numpy(), variance + layer.bias.variance.numpy()


@pytest.mark.few(8)
@pytest.mark.parametrize("inputs_are_random", [False, True])
@pytest.mark.parametrize("case", LINEAR, ids=id_of)
def test_layers_with_a_posterior_are_exact_for_independent_inputs(
    case, inputs_are_random
):
    make, shape = case
    keras.utils.set_random_seed(2)
    layer, (means, stddevs) = make(), some_normals(shape)
    if inputs_are_random:
        model = model_of(layer, means, stddevs, shape)
        x = np.ones((1, len(means)), "float32")
    else:
        model = keras.Sequential([keras.Input(shape), layer])
        x, stddevs = means.reshape(1, *shape), np.zeros_like(stddevs)
    assert all(each.exact for each in operations(model)), operations(model)
    mean, variance = output_moments(model, tf.constant(x), prepared(model))
    expected = bilinear_moments(layer, means, stddevs.astype("float64") ** 2, shape)
    np.testing.assert_allclose(mean[0, 0], expected[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(variance[0, 0], expected[1], rtol=1e-4)


def test_activations_of_what_is_no_normal_say_so():
    layer = DenseVariational(3, "relu", **LAPLACE)
    (operation,) = operations(keras.Sequential([keras.Input((4,)), layer]))
    assert "taken as normal" in operation.why


@pytest.mark.parametrize("depth_multiplier", [1, 2])
def test_a_separable_convolution_has_the_moments_of_draws(depth_multiplier):
    layer = SeparableConv2DVariational(2, 2, depth_multiplier=depth_multiplier)
    for part in layer.depthwise, layer.pointwise:
        part.posterior = WIDE["posterior"]
    model = keras.Sequential([keras.Input((2, 3, 2)), layer])
    assert all(each.exact for each in operations(model))
    generator = np.random.default_rng(0)
    x = generator.normal(size=(1, 2, 3, 2)).astype("float32")
    mean, variance = (m[0, 0, 0] for m in output_moments(model, tf.constant(x)))

    def draws(weight):
        shape = (10**6, *weight.shape)
        noise = generator.normal(size=shape).astype("float32")
        return weight.mean.numpy() + weight.stddev.numpy() * noise

    kernel = layer.depthwise.kernel
    units = np.eye(kernel.size, dtype="float32").reshape(-1, *kernel.shape)
    responses = np.stack([layer.depthwise.linear(x, unit)[0, 0] for unit in units])
    between = np.tensordot(draws(kernel).reshape(-1, kernel.size), responses, 1)
    outputs = between @ draws(layer.pointwise.kernel)[:, 0, 0]
    outputs += draws(layer.pointwise.bias)[:, None]
    assert_within_standard_errors((mean, variance), with_standard_errors(outputs))


def test_a_separable_convolution_of_random_inputs_says_what_it_ignores():
    def made(depth_multiplier):
        layer = SeparableConv2DVariational(2, 2, depth_multiplier=depth_multiplier)
        return operations(model_of(layer, *some_normals((2, 3, 2)), (2, 3, 2)))[-1]

    assert made(1).exact
    assert not made(2).exact


@pytest.mark.parametrize(
    "posterior", ["mean_field_normal", "low_rank_normal", "rank_1"]
)
def test_an_embedding_has_the_moments_of_the_entries_it_picks(posterior):
    layer = EmbeddingVariational(5, 3, posterior=posterior)
    model = keras.Sequential([keras.Input((4,)), layer])
    indices = np.array([[1, 4, 4, 0]])
    mean, variance = output_moments(model, tf.constant(indices, tf.float32))
    np.testing.assert_allclose(mean[0], layer.kernel.mean.numpy()[indices])
    np.testing.assert_allclose(variance[0], layer.kernel.variance.numpy()[indices])


JOINED = {
    "add": layers.Add(),
    "average": layers.Average(),
    "subtract": layers.Subtract(),
    "multiply": layers.Multiply(),
    "concatenate": layers.Concatenate(),
    "+": lambda xs: xs[0] + xs[1],
    "-": lambda xs: xs[0] - xs[1],
    "*": lambda xs: xs[0] * xs[1],
    "ops.concatenate": lambda xs: keras.ops.concatenate(xs, axis=-1),
}


@pytest.mark.few(5)
@pytest.mark.parametrize("name", JOINED)
def test_joined_tensors_of_different_weights_are_exact(name):
    operation = JOINED[name]
    (m_1, s_1), (m_2, s_2) = some_normals((3,), seed=1), some_normals((3,), seed=2)
    inputs = keras.Input((3,))
    parts = [normals(m_1, s_1)(inputs), normals(m_2, s_2)(inputs)]
    model = keras.Model(inputs, operation(parts))
    assert all(each.exact for each in operations(model))
    moments = output_moments(model, tf.ones((1, 3)))
    both = np.concatenate([m_1, m_2]), np.concatenate([s_1, s_2])
    sampled = monte_carlo(lambda x: operation([x[:, :3], x[:, 3:]]), *both, (6,))
    assert_within_standard_errors([m[0, 0] for m in moments], sampled)


@pytest.mark.parametrize("operation", [layers.Add(), layers.Multiply()])
def test_a_certain_tensor_joins_an_uncertain_one(operation):
    means, stddevs = some_normals((3,))
    inputs = keras.Input((3,))
    model = keras.Model(
        inputs, operation([normals(means, stddevs)(inputs), 2 * inputs])
    )
    mean, variance = output_moments(model, tf.ones((1, 3)))
    adds = isinstance(operation, layers.Add)
    np.testing.assert_allclose(mean[0, 0], means + 2 if adds else 2 * means, rtol=1e-5)
    spread = stddevs**2 if adds else 4 * stddevs**2
    np.testing.assert_allclose(variance[0, 0], spread, rtol=1e-5)


# What they lack, in standard deviations of the output.
APPROXIMATE = [
    (lambda s: layers.MaxPooling1D(4), (4, 3), 0.25),
    (lambda s: layers.MaxPooling2D(2), (4, 2, 2), 0.25),
    (lambda s: layers.GlobalMaxPooling2D(keepdims=True), (3, 3, 1), 0.25),
    (lambda s: trained_normalization(layers.LayerNormalization(), s), (8,), 0.2),
    (
        lambda s: trained_normalization(layers.LayerNormalization([1, 2]), s),
        (4, 3),
        0.2,
    ),
    (lambda s: trained_normalization(layers.RMSNormalization(), s), (8,), 0.2),
    (lambda s: trained_normalization(layers.GroupNormalization(2), s), (4, 4), 0.2),
]


@pytest.mark.few(3)
@pytest.mark.parametrize("case", APPROXIMATE, ids=id_of)
def test_approximate_operations_are_near_and_not_exact(case):
    make, shape, tolerance = case
    operation, (means, stddevs) = make(shape), some_normals(shape)
    model = model_of(operation, means, stddevs, shape)
    last = operations(model)[-1]
    assert not last.exact
    assert last.why
    mean, variance = (m[0, 0] for m in output_moments(model, tf.ones((1, len(means)))))
    sampled = monte_carlo(operation, means, stddevs, shape, samples=10**5)
    assert differ((mean, variance), sampled)
    expected = np.sqrt(sampled[1])
    np.testing.assert_array_less(np.abs(mean - sampled[0]), tolerance * expected)
    np.testing.assert_allclose(np.sqrt(variance), expected, rtol=tolerance)


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (lambda: layers.LayerNormalization(), (6,)),
        (lambda: layers.LayerNormalization([1, 2]), (4, 3)),
        (lambda: layers.RMSNormalization(), (6,)),
        (lambda: layers.GroupNormalization(2), (3, 4)),
        (lambda: layers.GroupNormalization(2, axis=1), (4, 3)),
    ],
)
def test_row_normalisations_are_linear_for_small_variances(make, shape):
    layer = trained_normalization(make(), shape)
    means, stddevs = some_normals(shape)
    small = 1e-3 * stddevs
    model = model_of(layer, means, small, shape)
    mean, variance = (m[0, 0] for m in output_moments(model, tf.ones((1, len(means)))))
    x = tf.constant(means.reshape(1, *shape))
    with tf.GradientTape() as tape:
        tape.watch(x)
        outputs = layer(x)
    slopes = tape.jacobian(outputs, x).numpy().reshape(len(means), len(means))
    np.testing.assert_allclose(mean, outputs[0], rtol=1e-4, atol=1e-4)
    expected = slopes**2 @ small**2
    np.testing.assert_allclose(variance, expected.reshape(shape), rtol=1e-3)
