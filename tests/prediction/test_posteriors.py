"""Draws of every posterior family are those of ordinary calls, in pairs and alone.

The two draws of a pair have noise of opposite signs. What a family makes of it need
not be odd, nor even continuous (a distribution of TFP takes its seeds from it): every
draw has to be one from the posterior all the same.
"""

import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp

import tfbbb
from tests.posterior_draws import assert_same_moments, brute_force_draws
from tfbbb import posteriors
from tfbbb.bayes.likelihoods import Normal
from tfbbb.layers import DenseVariational
from tfbbb.prediction.structure import Structure

X = np.random.default_rng(0).normal(size=(3, 4)).astype("float32")


def gumbel(loc, log_scale):
    return tfp.distributions.Gumbel(loc, tf.exp(log_scale))


# The last layer has the family that is left out.
FAMILIES = {
    name: posteriors.make(name, **({} if name == "point" else {"initial_scale": 0.5}))
    for name in posteriors.names()
    if name != "mean_field_normal"
} | {
    "skewed": posteriors.TFPDistribution(gumbel, {"log_scale": -1.0}),
}
SLOW = ("skewed",)
FACTORISED = ("point",)


def network(name, members=1):
    """A hidden layer of a family and a last layer that knows its weights all but."""
    keras.utils.set_random_seed(0)
    family = FAMILIES[name]
    inputs = keras.Input((4,))
    hidden = DenseVariational(
        5,
        "relu",
        posterior=family,
        bias_posterior=family,
        bias_initializer="ones",
        estimator="weight",
        members=members,
    )(inputs)
    known = posteriors.MeanFieldNormal(initial_scale=0.1)
    outputs = DenseVariational(2, posterior=known, estimator="weight", members=members)(
        hidden
    )
    model = keras.Model(inputs, outputs)
    for weight in model.layers[1].variational_weights:
        for key, variable in weight.variables.items():
            # Off the start, where factors of covariances are diagonal.
            if "factor" in key or "scale" in key:
                variable.assign_add(0.2 * keras.random.normal(variable.shape))
    return model


@pytest.mark.few(2)
@pytest.mark.parametrize("name", FAMILIES)
def test_draws_are_those_of_ordinary_calls(name):
    model = network(name)
    # Drawing one weight after the other takes TFP a millisecond each.
    loop = brute_force_draws(model, X, 200 if name in SLOW else 500)
    prediction = tfbbb.predictive(
        model,
        X,
        likelihood=Normal(scale=1.0),
        num_samples=2 * len(loop),
        method="weight",
    )
    drawn = np.moveaxis(prediction.of_outputs(lambda outputs: outputs), 1, 0)
    first, mirrored = drawn[::2], drawn[1::2]
    assert_same_moments(first, loop)
    assert_same_moments(mirrored, loop)


def test_pre_activations_are_drawn_of_independent_normals_alone():
    for name in FAMILIES:
        hidden, last = Structure.of(network(name)).layer_infos
        assert hidden.is_local == (name in FACTORISED)
        assert last.is_local
