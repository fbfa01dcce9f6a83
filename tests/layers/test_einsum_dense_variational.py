import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.keras_twins import (
    design_matrix,
    flat_posterior,
    keras_twin,
    set_known_posterior,
    with_weights,
)
from tfbbb import posteriors
from tfbbb.bayes.estimators.local import pre_activation_moments, weight_moments
from tfbbb.layers import EinsumDenseVariational

# equation, output_shape, bias_axes, rank of the input, whether each weight is used once
CASES = [
    ("ab,bc->ac", 5, "c", 2, True),
    ("abc,cd->abd", (3, 5), "d", 3, False),
    ("abc,bcd->abd", (3, 5), "bd", 3, True),
    ("abc,bcd->abd", (3, 5), "d", 3, False),
    ("abc,bcd->ad", 5, None, 3, True),
    ("abc,cd->ad", 5, "d", 3, False),
    ("abc,bd->acd", (4, 5), None, 3, False),
    ("...x,xyz->...yz", (5, 2), "z", 2, False),
    ("...x,xyz->...yz", (5, 2), "yz", 2, True),
    ("...x,xy->...y", 5, "y", 4, False),
    ("ab...,bc->ac...", 5, "c", 3, False),
    ("abc,b->abc", (3, 4), None, 3, False),
    ("abc,bc->abc", (3, 4), "bc", 3, True),
]
SIZES = {2: (2, 4), 3: (2, 3, 4), 4: (2, 3, 2, 4)}
parametrized = pytest.mark.parametrize(
    ("equation", "output_shape", "bias_axes", "rank", "once"), CASES
)


def rows(rank):
    return np.random.default_rng(0).normal(size=SIZES[rank]).astype("float32")


@pytest.mark.parametrize(
    ("equation", "output_shape", "bias_axes", "rank", "estimator"),
    [
        (*case[:4], ("weight", "flipout", "local")[index % 3])
        for index, case in enumerate(CASES)
    ],
)
def test_a_narrow_posterior_computes_what_keras_computes(
    equation, output_shape, bias_axes, rank, estimator
):
    x = rows(rank)
    narrow = posteriors.MeanFieldNormal(initial_scale=1e-8)
    layer = EinsumDenseVariational(
        equation,
        output_shape,
        bias_axes=bias_axes,
        bias_initializer="random_normal",
        posterior=narrow,
        bias_posterior=narrow,
        estimator=estimator,
        kl_weight=0.1,
    )
    assert layer.compute_output_shape(x.shape) == layer(x).shape
    expected = with_weights(keras_twin(layer, x), x, flat_posterior(layer)[0])
    np.testing.assert_allclose(layer(x), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("equation", "output_shape", "bias_axes", "rank", "shared"),
    [(*case[:4], index % 2 == 0) for index, case in enumerate(CASES)],
)
@pytest.mark.usefixtures("compiled_functions")
def test_kernels_of_groups_act_each_on_its_own_rows(
    equation, output_shape, bias_axes, rank, shared
):
    x = rows(rank)
    inputs = np.stack([x] if shared else [x, 2 * x, x - 1])
    layer = EinsumDenseVariational(
        equation, output_shape, bias_axes=bias_axes, kl_weight=0.1
    )
    layer.build(x.shape)
    generator = np.random.default_rng(1)
    kernels = generator.normal(size=(3, *layer.kernel.shape)).astype("float32")
    signature = [
        tf.TensorSpec([1 if shared else None, None, *x.shape[1:]]),
        tf.TensorSpec([None, *layer.kernel.shape]),
    ]
    found = tf.function(layer.linear, input_signature=signature)(inputs, kernels)
    expected = [
        np.asarray(layer.linear(inputs[0 if shared else i], kernel))
        for i, kernel in enumerate(kernels)
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    if layer.bias is not None:
        biases = generator.normal(size=(3, *layer.bias.shape)).astype("float32")
        biased = found + layer.broadcast_bias(biases, len(found.shape))
        for i, bias in enumerate(biases):
            np.testing.assert_allclose(
                biased[i], expected[i] + bias, rtol=1e-4, atol=1e-5
            )


@parametrized
def test_local_is_exact_for_independent_outputs_of_a_row(
    equation, output_shape, bias_axes, rank, once
):
    x = rows(rank)
    layer = EinsumDenseVariational(
        equation, output_shape, bias_axes=bias_axes, kl_weight=0.1
    )
    layer(x)
    set_known_posterior(layer)
    scaled = design_matrix(layer, x) * flat_posterior(layer)[1]
    covariance = scaled @ np.swapaxes(scaled, 1, 2)
    variance = np.einsum("nii->ni", covariance)
    independent = np.allclose(covariance, variance[:, None] * np.eye(len(variance[0])))
    # Where a weight serves several inputs of one output, the variance itself is wrong.
    _, drawn = pre_activation_moments(layer, x, weight_moments(layer))
    right = np.allclose(np.reshape(drawn, variance.shape), variance, rtol=1e-4)
    assert layer.is_local_exact(rank, calls=1) == once == (independent and right)
    assert not layer.is_local_exact(rank, calls=2)


def test_fan_in_counts_the_axes_that_are_summed_over():
    layer = EinsumDenseVariational("abc,bcd->abd", (3, 5))
    layer.build((None, 3, 4))
    assert layer.kernel.fan_in == 4
    layer = EinsumDenseVariational("abc,bcd->ad", 5)
    layer.build((None, 3, 4))
    assert layer.kernel.fan_in == 12


def test_the_initial_mean_is_scaled_as_in_keras():
    arguments = ("ab,bcd->acd", (30, 20))
    initializer = keras.initializers.HeUniform(seed=3)
    layer = EinsumDenseVariational(*arguments, kernel_initializer=initializer)
    layer.build((None, 10))
    twin = keras.layers.EinsumDense(*arguments, kernel_initializer=initializer)
    twin.build((None, 10))
    np.testing.assert_array_equal(layer.kernel.mean, twin.kernel)
    assert layer.kernel_initializer is initializer


@pytest.mark.parametrize(
    ("equation", "shape", "message"),
    [
        ("ab,bc", (None, 4), "Invalid einsum equation"),
        ("ab,abc->ac", (None, 4), "must be the rows"),
        ("ab,bc->ac", (None, None), "must have a known and positive size"),
        ("abc,bc->ab", (None, 3, 4), "do not match at shared dimension 'b'"),
    ],
)
def test_refuses_an_equation_that_does_not_fit(equation, shape, message):
    with pytest.raises(ValueError, match=message):
        EinsumDenseVariational(equation, 5).build(shape)
