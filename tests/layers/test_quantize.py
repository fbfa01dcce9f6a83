"""Keras quantizes the layers that have one value for each weight."""

import keras
import numpy as np
import pytest

import tfbbb
from tfbbb.layers import DenseVariational, VariationalLayer

X = np.random.default_rng(0).normal(size=(5, 4)).astype("float32")


def network(kind):
    inputs = keras.Input((4,))
    hidden = keras.layers.Dense(8, name="plain")(inputs)
    return kind(inputs, DenseVariational(1)(hidden))


@pytest.mark.filterwarnings("ignore:Layer .* does not have a `quantize`")
@pytest.mark.parametrize("kind", [keras.Model, tfbbb.BayesianModel])
def test_weights_with_a_posterior_are_not_quantized(kind):
    model = network(kind)
    with pytest.raises(ValueError, match=r"to_deterministic.*Received: Dense"):
        model.quantize("int8")
    if kind is tfbbb.BayesianModel:
        assert model.get_layer("plain").quantization_mode is None


@pytest.mark.filterwarnings("ignore:Layer .* does not have a `quantize`")
def test_predictions_use_the_quantized_weights_of_other_layers():
    model = network(tfbbb.BayesianModel)
    before = model.predictive(X).mean
    model.quantize(
        "int8", filters=lambda layer: not isinstance(layer, VariationalLayer)
    )
    found = model.predictive(X).mean
    assert np.abs(found - before).max() > 0.0
    last = model.layers[-1]
    expected = model.get_layer("plain")(X) @ last.kernel.mean + last.bias.mean
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_weights_with_a_posterior_take_no_lora():
    layer = DenseVariational(1)
    layer.build((None, 4))
    with pytest.raises(ValueError, match=r"adapters\.add.*Received: Dense"):
        layer.enable_lora(2)
    with pytest.raises(TypeError, match=r"no argument 'lora_rank'.*lora_rank=2"):
        DenseVariational(1, lora_rank=2)
