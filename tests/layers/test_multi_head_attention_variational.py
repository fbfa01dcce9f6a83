"""Attention is Keras', with projections whose weights have a posterior."""

import inspect

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.posterior_draws import assert_same_moments, brute_force_draws, engine_draws
from tfbbb.base.call_context import call_with
from tfbbb.bayes.posteriors import MeanFieldNormal
from tfbbb.layers import MultiHeadAttentionVariational

GENERATOR = np.random.default_rng(0)
QUERY = GENERATOR.normal(size=(3, 4, 2)).astype("float32")
VALUE = GENERATOR.normal(size=(3, 5, 3)).astype("float32")
KEY = GENERATOR.normal(size=(3, 5, 4)).astype("float32")
MASK = np.array([[1, 1, 0, 0], [1, 1, 1, 1], [1, 0, 0, 0]], bool)


@pytest.fixture(autouse=True)
def seeded():
    keras.utils.set_random_seed(0)


def attention(scale=0.5, **kwargs):
    """Returns a layer whose posterior has standard deviations of `scale` or so."""
    return MultiHeadAttentionVariational(
        **{"num_heads": 2, "key_dim": 3, "kl_weight": 0.1, **kwargs},
        posterior=MeanFieldNormal(scale),
        bias_posterior=MeanFieldNormal(scale),
        bias_initializer=keras.initializers.RandomNormal(stddev=0.5),
    )


def certain(**kwargs):
    """Returns a layer whose weights are their means, but for rounding."""
    return attention(scale=1e-9, **kwargs)


def projections(layer):
    gate = getattr(layer, "_gate_dense", None)
    all_of_them = (layer.query_dense, layer.key_dense, layer.value_dense, gate)
    return [x for x in (*all_of_them, layer.output_dense) if x is not None]


def deterministic(layer, weights_of, *inputs):
    """Returns Keras' layer, each projection with the weights of its twin."""
    known = inspect.signature(keras.layers.MultiHeadAttention).parameters
    arguments = {k: v for k, v in layer.get_config().items() if k in known}
    twin = keras.layers.MultiHeadAttention(**arguments)
    twin.build(*[x.shape for x in inputs])
    for ours, theirs in zip(projections(layer), projections(twin), strict=True):
        theirs.set_weights(
            [np.asarray(weights_of(w)) for w in ours.variational_weights]
        )
    return twin


def mean(weight):
    return weight.mean


@pytest.mark.parametrize(
    ("estimator", "options", "call"),
    [
        ("weight", {}, {}),
        ("flipout", {"use_gate": True, "sliding_window": 2}, {"use_causal_mask": True}),
        ("weight", {"value_dim": 2, "use_bias": False}, {"key": KEY}),
        (
            "flipout",
            {"output_shape": (2, 3)},
            {"attention_mask": GENERATOR.random((3, 4, 5)) < 0.7},
        ),
        (
            "weight",
            {"dropout": 0.5},
            {"return_attention_scores": True, "use_causal_mask": True},
        ),
    ],
    ids=str,
)
def test_without_variance_it_is_the_layer_of_keras(estimator, options, call):
    layer = certain(estimator=estimator, **options)
    outputs = layer(QUERY, VALUE, **call)
    others = [call["key"]] if "key" in call else []
    twin = deterministic(layer, mean, QUERY, VALUE, *others)
    expected = twin(QUERY, VALUE, **call)
    tf.nest.map_structure(
        lambda x, y: np.testing.assert_allclose(x, y, atol=1e-6), outputs, expected
    )


def test_attention_runs_over_the_axes_that_are_named():
    x = GENERATOR.normal(size=(2, 3, 4, 2)).astype("float32")
    layer = certain(attention_axes=2)
    outputs = layer(x, x)
    twin = deterministic(layer, mean, x, x)
    np.testing.assert_allclose(outputs, twin(x, x), atol=1e-6)


def test_masks_of_the_inputs_are_those_of_keras():
    x = QUERY * MASK[..., None]
    masked = keras.layers.Masking()
    layer = certain()
    outputs = layer(masked(x), masked(x))
    twin = deterministic(layer, mean, x, x)
    np.testing.assert_allclose(outputs, twin(masked(x), masked(x)), atol=1e-6)
    np.testing.assert_array_equal(outputs._keras_mask, MASK)
    # What is masked matters to no other position.
    others = layer(keras.layers.Masking()(x), x)
    assert not np.allclose(outputs[0, 0], others[0, 0], atol=1e-4)


def test_every_draw_of_several_serves_its_rows():
    layer = attention(estimator="score_function")
    x = np.concatenate([QUERY, QUERY])
    with call_with(samples_in_batch=2):
        outputs = layer(x, x)
    for draw, rows in ((0, slice(3)), (1, slice(3, 6))):
        drawn = {
            id(w): p.step_draws[w.name][draw]
            for p in projections(layer)
            for w in p.variational_weights
        }
        twin = deterministic(layer, lambda w, drawn=drawn: drawn[id(w)], QUERY, QUERY)
        np.testing.assert_allclose(outputs[rows], twin(QUERY, QUERY), atol=1e-6)


def cross_attention_by_names(inputs):
    values = attention(estimator="weight", output_shape=2)(inputs, inputs)
    return attention(estimator="weight")(
        query=inputs, key=keras.layers.Dense(2)(inputs), value=values
    )


def attention_to_what_is_not_masked(inputs):
    masked = keras.layers.Masking()(inputs)
    hidden = attention(estimator="weight")(masked, masked)
    return keras.layers.GlobalAveragePooling1D()(
        attention(estimator="weight")(hidden, hidden)
    )


def attention_by_a_mask_of_its_own(inputs):
    first = inputs[:, :, :1]
    not_smaller = first <= keras.ops.transpose(first, (0, 2, 1))
    hidden, scores = attention(estimator="weight")(
        inputs, inputs, attention_mask=not_smaller, return_attention_scores=True
    )
    return keras.ops.concatenate([hidden, scores[:, 0]], axis=-1)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("body", "x", "method"),
    [
        (cross_attention_by_names, QUERY, "weight"),
        (attention_to_what_is_not_masked, QUERY * MASK[..., None], "local"),
        (attention_by_a_mask_of_its_own, QUERY, "weight"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_engines_draw_what_ordinary_calls_draw(body, x, method):
    inputs = keras.Input((4, 2))
    model = keras.Model(inputs, body(inputs))
    loop = brute_force_draws(model, x, 600)
    assert_same_moments(engine_draws(model, x, method, 1000), loop)
