import keras
import numpy as np
import pytest

import tfbbb
from tfbbb.bayes.likelihoods import Normal
from tfbbb.layers import Conv1DVariational, DenseVariational
from tfbbb.prediction.blocks import MAX_FLOATS
from tfbbb.prediction.plan import plan_for
from tfbbb.prediction.structure import Structure


def network(*units):
    layers = [DenseVariational(width, kl_weight=0.1) for width in units]
    return keras.Sequential([keras.Input((10,)), *layers])


def local_layers(model, method, num_rows, max_floats=MAX_FLOATS, likelihoods=()):
    structure = Structure.of(model)
    plan = plan_for(structure, method, num_rows, 100, max_floats, likelihoods)
    return [plan.is_local(info) for info in structure.layer_infos]


@pytest.fixture(scope="module")
def deep():
    return network(50, 50, 1)


def test_auto_draws_weights_of_later_layers_where_rows_are_many(deep):
    plans = [local_layers(deep, "auto", 2**power) for power in range(16)]
    few = plans.count([True] * 3)
    # The first layer's mean and variance are computed once for all samples.
    assert plans == [[True] * 3] * few + [[True, False, False]] * (len(plans) - few)
    # A second product per row costs what reading a weight costs at some ten rows.
    assert 2**3 < 2**few < 2**6


def test_layers_whose_weights_serve_several_positions_draw_weights():
    layers = [Conv1DVariational(2, 3), keras.layers.Flatten(), DenseVariational(1)]
    model = keras.Sequential([keras.Input((8, 2)), *layers])
    assert local_layers(model, "local", 1) == [False, True]


def test_linear_model_is_integrated_exactly():
    model = network(2)
    x = np.random.default_rng(0).normal(size=(5, 10)).astype("float32")
    found = tfbbb.predictive(model, x, likelihood=Normal(scale=0.5), method="local")
    kernel, bias = model.layers[0].variational_weights
    mean = x @ kernel.mean.numpy() + bias.mean.numpy()
    variance = x**2 @ kernel.variance.numpy() + bias.variance.numpy()
    np.testing.assert_allclose(found.mean, mean, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found.epistemic, variance, rtol=1e-5)
    np.testing.assert_allclose(found.aleatoric, 0.25, rtol=1e-6)
    assert not found.mean_standard_error.any()
