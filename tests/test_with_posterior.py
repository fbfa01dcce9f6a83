import keras
import numpy as np
import pytest

import tfbbb
from tfbbb.model.conversion import with_posterior

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


def normal_around(mean):
    """Returns the posterior of another model, as a prior."""
    inputs = keras.Input((3,))
    layer = tfbbb.layers.DenseVariational(1, name="output", use_bias=False)
    model = keras.Model(inputs, layer(inputs))
    layer.kernel.variables["mean"].assign(np.full((3, 1), mean))
    return tfbbb.priors.FromPosterior(model)


def one_layer(prior):
    inputs = keras.Input((3,))
    layer = tfbbb.layers.DenseVariational(1, name="output", use_bias=False, prior=prior)
    return tfbbb.BayesianModel(inputs, layer(inputs))


def prior_values(model):
    (weight,) = model.variational_layers[0].variational_weights
    return [variable.numpy() for variable in weight.prior_variables.values()]


@pytest.mark.parametrize(
    ("posterior", "old", "new"),
    [
        ("mean_field_normal", normal_around(1.0), normal_around(2.0)),
        (
            "point",
            tfbbb.priors.Normal(scale=1.0, trainable=True),
            tfbbb.priors.Normal(scale=2.0, trainable=True),
        ),
    ],
    ids=["from_posterior", "normal"],
)
def test_a_new_prior_has_its_own_values(old, new, posterior):
    changed = with_posterior(one_layer(old), posterior, prior=new)
    expected = prior_values(one_layer(new))
    for found, value in zip(prior_values(changed), expected, strict=True):
        np.testing.assert_array_equal(found, value)


@pytest.mark.parametrize(
    "prior",
    [normal_around(1.0), tfbbb.priors.Normal(scale=1.0, trainable=True)],
    ids=["from_posterior", "normal"],
)
def test_a_prior_that_stays_keeps_its_values(prior):
    model = one_layer(prior)
    (weight,) = model.variational_layers[0].variational_weights
    for variable in weight.prior_variables.values():
        variable.assign(variable + 0.5)
    same = with_posterior(model, "mean_field_normal")
    for found, value in zip(prior_values(same), prior_values(model), strict=True):
        np.testing.assert_array_equal(found, value)
