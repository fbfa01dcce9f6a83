import keras
import numpy as np

import tfbbb
from tfbbb.conversion import with_posterior

POINT = {"posterior": "point", "bias_posterior": "point"}
X = np.random.default_rng(5).normal(size=(6, 3)).astype("float32")


def network_that_shares_layers():
    shared = tfbbb.layers.DenseVariational(3, activation="tanh", **POINT)
    inner_input = keras.Input((3,))
    inner = keras.Model(inner_input, shared(inner_input))
    inputs = keras.Input((3,), name="rows")
    hidden = keras.layers.LayerNormalization()(inner(shared(inner(inputs))))
    outputs = tfbbb.layers.DenseVariational(1, **POINT)(hidden)
    return tfbbb.BayesianModel(inputs, outputs)


def test_shared_layers_and_networks_stay_shared():
    model = network_that_shares_layers()
    new = with_posterior(model, "point")
    assert len(new.variational_layers) == len(model.variational_layers) == 2
    assert len(new.layers) == len(model.layers)
    assert len(new.variables) == len(model.variables)


def test_the_new_model_is_the_same_function():
    model = network_that_shares_layers()
    for weight in model.trainable_variables:
        weight.assign(weight + 0.1)
    new = with_posterior(model, "mean_field_normal")
    np.testing.assert_allclose(with_posterior(new, "point")(X), model(X), rtol=1e-6)


def test_a_compiled_model_is_copied_uncompiled():
    model = network_that_shares_layers()
    model.compile("adam")
    new = with_posterior(model, "point")
    assert not new.compiled
    np.testing.assert_allclose(new(X), model(X), rtol=1e-6)
