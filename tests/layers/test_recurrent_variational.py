"""Recurrent layers compute what Keras' do, with weights of one draw per sequence."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.posterior_draws import assert_same_moments, brute_force_draws, engine_draws
from tests.repeated_calls import repeated
from tfbbb.base.call_context import call_with
from tfbbb.bayes.estimators import Weight
from tfbbb.bayes.posteriors import MeanFieldNormal
from tfbbb.layers import GRUVariational, LSTMVariational, SimpleRNNVariational

GENERATOR = np.random.default_rng(0)
SEQUENCES = GENERATOR.normal(size=(3, 4, 2)).astype("float32")
MASK = np.array([[1, 1, 0, 0], [0, 1, 1, 1], [1, 1, 1, 0]], bool)

# Ours, Keras', and the arguments that choose an equation of its own.
KINDS = {
    "simple_rnn": (SimpleRNNVariational, keras.layers.SimpleRNN, {}),
    "lstm": (LSTMVariational, keras.layers.LSTM, {}),
    "gru": (GRUVariational, keras.layers.GRU, {}),
    "gru_reset_before": (GRUVariational, keras.layers.GRU, {"reset_after": False}),
}
ESTIMATORS = ("weight", "flipout")
every_kind = pytest.mark.parametrize("kind", KINDS)


def variational(kind, units=3, scale=0.5, **kwargs):
    """Returns a layer whose posterior has standard deviations of `scale` or so."""
    layer, _, arguments = KINDS[kind]
    return layer(
        units,
        posterior=MeanFieldNormal(scale),
        bias_posterior=MeanFieldNormal(scale),
        bias_initializer=keras.initializers.RandomNormal(stddev=0.5),
        **{"kl_weight": 0.1, **arguments, **kwargs},
    )


def certain(kind, **kwargs):
    """Returns a layer whose weights are their means, but for rounding."""
    return variational(kind, scale=1e-9, **kwargs)


def deterministic(kind, layer, weights=None, **kwargs):
    """Returns the Keras layer with other weights, or a layer's posterior means."""
    _, keras_layer, arguments = KINDS[kind]
    twin = keras_layer(layer.units, **arguments, **kwargs)
    twin.build((None, None, layer.kernel.shape[0]))
    if weights is None:
        weights = [weight.mean for weight in layer.variational_weights]
    twin.set_weights([np.asarray(weight) for weight in weights])
    return twin


def with_drawn_weights(kind, layer, **kwargs):
    """Returns the Keras layer as a function that draws its weights at every call."""
    twin = deterministic(kind, layer, **kwargs)

    def call(x):
        weights = [
            w.mean + w.stddev * tf.random.normal(w.shape)
            for w in layer.variational_weights
        ]
        return twin.stateless_call(weights, twin.non_trainable_variables, x)[0]

    return call


@pytest.fixture(autouse=True)
def seeded():
    keras.utils.set_random_seed(0)


@pytest.mark.few(6)
@every_kind
@pytest.mark.parametrize(
    ("estimator", "options", "mask"),
    [
        (
            "flipout",
            {"activation": "relu", "use_bias": False, "go_backwards": True},
            None,
        ),
        ("weight", {"return_sequences": True, "return_state": True}, MASK),
        (
            "flipout",
            {"return_sequences": True, "go_backwards": True, "unroll": True},
            MASK,
        ),
        ("weight", {"return_sequences": True, "zero_output_for_mask": True}, MASK),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_without_variance_it_is_the_layer_of_keras(kind, estimator, options, mask):
    layer = certain(kind, estimator=estimator, **options)
    outputs = layer(SEQUENCES, mask=mask)
    expected = deterministic(kind, layer, **options)(SEQUENCES, mask=mask)
    tf.nest.map_structure(
        lambda x, y: np.testing.assert_allclose(x, y, atol=1e-6), outputs, expected
    )


@every_kind
def test_states_may_be_given_and_are_returned(kind):
    layer = certain(kind, return_state=True)
    _, *states = layer(SEQUENCES)
    output = layer(SEQUENCES, initial_state=states)[0]
    twin = deterministic(kind, layer)
    np.testing.assert_allclose(output, twin(SEQUENCES, states), atol=1e-6)


@every_kind
def test_stateful_layers_continue_from_the_last_state(kind):
    layer = certain(kind, stateful=True)
    outputs = [layer(SEQUENCES), layer(SEQUENCES)]
    long = deterministic(kind, layer, return_sequences=True)(
        np.concatenate([SEQUENCES, SEQUENCES], axis=1)
    )
    np.testing.assert_allclose(outputs[0], long[:, 3], atol=1e-6)
    np.testing.assert_allclose(outputs[1], long[:, 7], atol=1e-6)
    layer.reset_state()
    np.testing.assert_allclose(layer(SEQUENCES), outputs[0], atol=1e-6)


@pytest.mark.few(1)
@every_kind
def test_outputs_are_distributed_like_keras_with_drawn_weights(kind):
    num_draws = 1000
    layers = [
        variational(kind, return_sequences=True, estimator=estimator, seed=3)
        for estimator in ESTIMATORS
    ]
    for layer in layers:
        layer.build(SEQUENCES.shape)
        layer.set_weights(layers[0].get_weights())
    keras_layer = with_drawn_weights(kind, layers[0], return_sequences=True)
    x = tf.constant(SEQUENCES[:2])
    expected, *drawn = (
        repeated(lambda call=call: call(x), num_draws)
        for call in [keras_layer, *layers]
    )
    for draws in drawn:
        assert_same_moments(draws, expected)
        # Of products of two steps: their covariance is that of one draw for both.
        assert_same_moments(_products(draws), _products(expected))


def _products(draws):
    """Returns the products of the outputs of every two steps of a sequence."""
    return np.einsum("dnsu,dntu->dnstu", draws, draws)


@pytest.mark.parametrize(("estimator", "expected"), [("weight", 1.0), ("flipout", 0.0)])
def test_sequences_are_as_correlated_as_the_estimator_says(estimator, expected):
    # Small variances: the output is linear in the weights to first order.
    num_draws = 1000
    layer = variational("lstm", scale=0.05, estimator=estimator, seed=0)
    x = tf.constant(np.repeat(SEQUENCES[:1], 2, axis=0))
    draws = repeated(lambda: layer(x), num_draws)[:, :, 0]
    correlation = np.corrcoef(draws.T)[0, 1]
    # The standard error of a correlation of 0 is 1 / sqrt(n).
    assert abs(correlation - expected) < 4.5 / np.sqrt(num_draws)


@pytest.mark.few(2)
@every_kind
def test_every_draw_of_several_serves_its_rows(kind):
    layer = variational(kind, estimator="score_function")
    x = np.concatenate([SEQUENCES, SEQUENCES])
    with call_with(samples_in_batch=2):
        outputs = layer(x)
    for draw, rows in ((0, slice(3)), (1, slice(3, 6))):
        weights = [layer.step_draws[w.name][draw] for w in layer.variational_weights]
        expected = deterministic(kind, layer, weights)(SEQUENCES)
        np.testing.assert_allclose(outputs[rows], expected, atol=1e-6)


def test_dropout_uses_one_mask_for_all_steps():
    arguments = {
        "units": 50,
        "activation": None,
        "kernel_initializer": "identity",
        "recurrent_initializer": "identity",
        "posterior": MeanFieldNormal(1e-9),
        "bias_posterior": MeanFieldNormal(1e-9),
        "return_sequences": True,
        "kl_weight": 0.1,
        "seed": 0,
    }
    x = np.ones((4, 3, 50), "float32")
    layer = SimpleRNNVariational(dropout=0.5, **arguments)
    # Kept inputs are doubled: 2, 4, 6; dropped ones give 0, 0, 0.
    sums = np.asarray(layer(x, training=True)) / [[[1.0], [2.0], [3.0]]]
    np.testing.assert_allclose(sums, sums[:, :1].repeat(3, axis=1), atol=1e-5)
    assert set(np.round(np.unique(sums), 4)) == {0.0, 2.0}
    np.testing.assert_allclose(layer(x), x.cumsum(axis=1), atol=1e-5)
    layer = SimpleRNNVariational(recurrent_dropout=0.5, **arguments)
    outputs = np.asarray(layer(x, training=True))
    # A kept state is doubled: 1, 1 + 2 * 1, 1 + 2 * 3; a dropped one is not added.
    histories = {tuple(steps) for steps in outputs.transpose(0, 2, 1).reshape(-1, 3)}
    assert {tuple(np.round(h, 3)) for h in histories} == {(1, 1, 1), (1, 3, 7)}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["lstm", "gru_reset_before"])
def test_dropout_has_the_distribution_of_keras(kind):
    options = {"dropout": 0.3, "recurrent_dropout": 0.4, "return_sequences": True}
    layer = certain(kind, seed=0, **options)
    layer(SEQUENCES)
    twin = deterministic(kind, layer, seed=0, **options)
    ours, theirs = (
        repeated(lambda each=each: each(SEQUENCES, training=True), 700)
        for each in (layer, twin)
    )
    assert_same_moments(ours, theirs)


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("kind", "options", "steps", "masked"),
    [
        ("simple_rnn", {"go_backwards": True}, 4, False),
        ("lstm", {"use_bias": False}, 4, True),
        ("lstm", {"return_sequences": True, "go_backwards": True}, 4, False),
        ("lstm", {}, None, False),
        ("gru", {"return_sequences": True}, 4, False),
        ("gru", {"use_bias": False}, 4, True),
    ],
)
def test_joined_kernels_answer_as_separate_ones(
    kind, options, steps, masked, monkeypatch
):
    inputs = keras.Input((steps, 2))
    layer = variational(kind, members=2, **options)
    model = keras.Model(
        inputs, layer(keras.layers.Masking()(inputs) if masked else inputs)
    )
    x = SEQUENCES * MASK[..., None]
    joined = engine_draws(model, x, "weight", 6)
    monkeypatch.setattr(type(layer), "_joins_kernels", False)
    # Single precision, summed in another order.
    np.testing.assert_allclose(joined, engine_draws(model, x, "weight", 6), atol=1e-5)


def test_engines_draw_bidirectional_layers_and_passed_states():
    inputs = keras.Input((4, 2))
    both = keras.layers.Bidirectional(
        variational("gru", estimator="weight", return_sequences=True)
    )(inputs)
    _, *states = variational("lstm", estimator="weight", return_state=True)(both)
    outputs = variational("lstm", estimator="weight")(inputs, initial_state=states)
    model = keras.Model(inputs, outputs)
    loop = brute_force_draws(model, SEQUENCES, 600)
    assert_same_moments(engine_draws(model, SEQUENCES, "weight", 1000), loop)


class Correlated(MeanFieldNormal):
    factorised = False


def test_auto_chooses_flipout_if_possible():
    layer = variational("lstm")
    layer.build((None, 4, 2))
    assert type(layer.estimator.choose_of_weights(layer)).__name__ == "Flipout"
    layer = LSTMVariational(3, posterior=Correlated())
    layer.build((None, 4, 2))
    assert layer.estimator.choose_of_weights(layer) == Weight()
    with pytest.raises(ValueError, match=r"Use one of 'auto', .*'weight'.*Received:"):
        LSTMVariational(3, posterior=Correlated(), estimator="flipout")


def test_stateful_layers_have_no_posterior_predictive():
    layer = variational("gru", stateful=True)
    model = keras.Sequential([keras.Input((4, 2), batch_size=3), layer])
    with pytest.raises(ValueError, match=r"stateful=False.*Received: stateful=True"):
        engine_draws(model, SEQUENCES, "weight", 2)


def test_forget_gate_starts_open_unless_told_otherwise():
    layer = LSTMVariational(2, bias_initializer="zeros")
    layer.build((None, 4, 2))
    np.testing.assert_array_equal(layer.bias.mean, [0, 0, 1, 1, 0, 0, 0, 0])
    layer = LSTMVariational(2, unit_forget_bias=False, members=2)
    layer.build((None, 4, 2))
    np.testing.assert_array_equal(layer.bias.mean, np.zeros((2, 8)))
