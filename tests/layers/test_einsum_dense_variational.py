import keras
import numpy as np
import pytest

from tests.keras_twins import design_matrix, flat_posterior, set_known_posterior
from tests.layers.test_linear_layers import EQUATIONS
from tfbbb.bayes.estimators.local import pre_activation_moments, weight_moments
from tfbbb.layers import EinsumDenseVariational


@pytest.mark.parametrize(
    ("equation", "output_shape", "bias_axes", "shape", "once"), EQUATIONS
)
def test_local_is_exact_for_independent_outputs_of_a_row(
    equation, output_shape, bias_axes, shape, once
):
    x = np.random.default_rng(0).normal(size=shape).astype("float32")
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
    assert layer.is_local_exact(len(shape), calls=1) == once == (independent and right)
    assert not layer.is_local_exact(len(shape), calls=2)


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
