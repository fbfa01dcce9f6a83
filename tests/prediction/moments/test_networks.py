"""Whole networks: exact where every operation is, near where one is not."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

from tests.posterior_draws import engine_draws
from tests.uncertain_inputs import (
    assert_within_standard_errors,
    differ,
    with_standard_errors,
)
from tfbbb.bayes.posteriors import MeanFieldNormal
from tfbbb.layers import (
    Conv2DVariational,
    DenseVariational,
    LSTMVariational,
    MultiHeadAttentionVariational,
)
from tfbbb.prediction.moments import operations, output_moments, prepared

DRAWS = 40_000
X = np.random.default_rng(0).normal(size=(2, 4)).astype("float32")


def variational(units, activation=None, scale=1.0, **options):
    return DenseVariational(
        units,
        activation,
        posterior=MeanFieldNormal(initial_scale=scale),
        bias_posterior=MeanFieldNormal(initial_scale=0.3 * scale),
        bias_initializer="ones",
        **options,
    )


def one_hidden_layer():
    return [keras.Input((4,)), variational(6, "relu"), variational(2)]


def normalised_hidden_layer():
    return [
        keras.Input((4,)),
        variational(6),
        layers.BatchNormalization(),
        layers.LeakyReLU(),
        layers.Dropout(0.5),
        variational(1),
    ]


def certain_features():
    return [keras.Input((4,)), layers.Dense(5, "softmax"), variational(4, "elu")]


def residual_of_the_inputs():
    inputs = keras.Input((4,))
    hidden = layers.Add()([variational(4, "relu")(inputs), inputs])
    return keras.Model(inputs, variational(1)(hidden))


def two_branches():
    inputs = keras.Input((4,))
    branches = [variational(3, "relu")(inputs), variational(2)(inputs), inputs]
    return keras.Model(inputs, variational(2)(layers.Concatenate()(branches)))


def nested():
    inputs = keras.Input((4,))
    inner = keras.Sequential([keras.Input((4,)), variational(5, "relu")])
    return keras.Model(inputs, variational(1)(inner(inputs * 0.5)))


EXACT = [
    one_hidden_layer,
    normalised_hidden_layer,
    certain_features,
    residual_of_the_inputs,
    two_branches,
    nested,
]


def two_hidden_layers():
    return [
        keras.Input((4,)),
        variational(2, "relu"),
        variational(3, "relu"),
        layers.Dense(1, kernel_initializer="ones"),
    ]


def residual_of_the_weights():
    inputs = keras.Input((4,))
    hidden = variational(3)(inputs)
    return keras.Model(inputs, layers.Add()([hidden, variational(3, "relu")(hidden)]))


def shared_layer():
    inputs = keras.Input((4,))
    layer = variational(4)
    return keras.Model(inputs, layer(layer(inputs)))


def shared_layer_of_two_inputs():
    inputs = keras.Input((4,))
    layer = variational(3)
    return keras.Model(inputs, layers.Add()([layer(inputs), layer(2.0 * inputs)]))


def pooled_positions():
    return [
        keras.Input((4,)),
        layers.Reshape((4, 1)),
        variational(3),
        layers.GlobalAveragePooling1D(),
    ]


APPROXIMATE = [
    two_hidden_layers,
    residual_of_the_weights,
    shared_layer,
    shared_layer_of_two_inputs,
    pooled_positions,
]


def model_and_draws(make):
    keras.utils.set_random_seed(4)
    made = make()
    model = keras.Sequential(made) if isinstance(made, list) else made
    draws = engine_draws(model, X, "weight", DRAWS).astype("float64")
    return model, with_standard_errors(draws)


@pytest.mark.few(4)
@pytest.mark.parametrize("make", EXACT)
def test_networks_of_exact_operations_have_the_moments_of_draws(make):
    model, sampled = model_and_draws(make)
    assert all(each.exact for each in operations(model)), operations(model)
    assert_within_standard_errors([m[0] for m in output_moments(model, X)], sampled)


@pytest.mark.few(3)
@pytest.mark.parametrize("make", APPROXIMATE)
def test_networks_with_an_approximate_operation_do_not(make):
    model, sampled = model_and_draws(make)
    assert not all(each.exact for each in operations(model))
    assert all(each.exact == (not each.why) for each in operations(model))
    assert differ([m[0] for m in output_moments(model, X)], sampled)


def test_two_hidden_layers_are_near_the_moments_of_draws():
    keras.utils.set_random_seed(0)
    small = {"scale": 0.1}
    model = keras.Sequential(
        [
            keras.Input((4,)),
            variational(20, "relu", **small),
            variational(20, "relu", **small),
            variational(1, **small),
        ]
    )
    draws = engine_draws(model, X, "weight", 4_000)
    mean, variance = (m[0].numpy() for m in output_moments(model, X))
    stddev = draws.std(axis=0)
    # Means to a tenth and standard deviations to a fifth: no sampling error is near.
    np.testing.assert_array_less(np.abs(mean - draws.mean(axis=0)), 0.1 * stddev)
    np.testing.assert_allclose(np.sqrt(variance), stddev, rtol=0.2)


@pytest.mark.few(1)
@pytest.mark.parametrize("make", [one_hidden_layer, certain_features])
def test_members_have_the_moments_that_each_would_have_alone(make):
    keras.utils.set_random_seed(1)
    together, alone = keras.Sequential(make()), keras.Sequential(make())
    for layer in together.layers:
        if isinstance(layer, DenseVariational):
            layer.set_members(3)
    mean, variance = output_moments(together, X)
    assert mean.shape == variance.shape == (3, 2, *alone.output_shape[1:])
    for member in range(3):
        for layer, single in zip(together.layers, alone.layers, strict=True):
            if not isinstance(layer, DenseVariational):
                single.set_weights(layer.get_weights())
                continue
            for of_all, of_one in zip(
                layer.variational_weights, single.variational_weights, strict=True
            ):
                for name, variable in of_one.variables.items():
                    variable.assign(of_all.variables[name][member])
        expected = output_moments(alone, X)
        np.testing.assert_allclose(mean[member], expected[0][0], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(variance[member], expected[1][0], rtol=1e-5)


def test_members_on_images_have_their_own_moments():
    def network(members):
        return keras.Sequential(
            [
                keras.Input((4, 4, 2)),
                layers.Conv2D(2, 2),
                Conv2DVariational(2, 2, activation="relu", members=members),
                layers.Conv2D(3, 2, activation="relu"),
                Conv2DVariational(2, 1, members=members),
                layers.GlobalMaxPooling2D(),
            ]
        )

    together, alone = network(2), network(1)
    x = np.random.default_rng(0).normal(size=(3, 4, 4, 2)).astype("float32")
    mean, variance = output_moments(together, x)
    for member in range(2):
        for layer, single in zip(together.layers, alone.layers, strict=True):
            weights = layer.get_weights()
            if isinstance(layer, Conv2DVariational):
                weights = [w[member] if w.ndim else w for w in weights]
            single.set_weights(weights)
        expected = output_moments(alone, x)
        np.testing.assert_allclose(mean[member], expected[0][0], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(variance[member], expected[1][0], rtol=1e-4)


def test_several_outputs_have_moments_in_their_structure():
    inputs = keras.Input((4,))
    hidden = variational(3, "relu")(inputs)
    certain = layers.Dense(2)
    outputs = {"random": variational(2)(hidden), "certain": certain(inputs)}
    model = keras.Model(inputs, outputs)
    moments = output_moments(model, X)
    assert moments.keys() == outputs.keys()
    mean, variance = moments["certain"]
    np.testing.assert_allclose(mean[0], certain(X), rtol=1e-5)
    assert not np.any(variance)
    assert np.all(moments["random"][1] > 0)


def test_several_inputs_come_in_the_structure_of_the_model():
    inputs = {"a": keras.Input((4,), name="a"), "b": keras.Input((4,), name="b")}
    joined = layers.Subtract()([variational(2)(inputs["a"]), inputs["b"][:, :2]])
    model = keras.Model(inputs, joined)
    mean, _ = output_moments(model, {"a": tf.constant(X), "b": tf.constant(X + 1)})
    other, _ = output_moments(model, {"b": tf.constant(X + 2), "a": tf.constant(X)})
    np.testing.assert_allclose(mean - other, np.ones((1, 2, 2)), rtol=1e-5)


def test_what_is_prepared_gives_the_same_moments():
    keras.utils.set_random_seed(0)
    model = keras.Sequential([*two_hidden_layers(), variational(2)])
    known = prepared(model)
    assert sorted(name.split("/")[-1] for name in known) == sorted(
        ["kernel_variance", "bias_variance"] * 3 + ["kernel_square"] * 3
    )
    for given, fresh in zip(
        output_moments(model, X, known), output_moments(model, X), strict=True
    ):
        np.testing.assert_allclose(given, fresh, rtol=1e-6)
    for key in known:
        # They are used: with others the moments are others.
        changed = {**known, key: 2.0 * known[key]}
        variance, other = (output_moments(model, X, p)[1] for p in (known, changed))
        assert np.max(np.abs(variance / other - 1.0)) > 1e-4, key


def test_the_moments_compile_and_follow_the_weights():
    model = keras.Sequential(one_hidden_layer())
    compiled = tf.function(lambda x: output_moments(model, x), autograph=False)
    before = compiled(tf.constant(X))
    for a, b in zip(before, output_moments(model, X), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)
    weight = model.layers[-1].bias.variables["mean"]
    weight.assign(weight + 1.0)
    mean, variance = compiled(tf.constant(X))
    np.testing.assert_allclose(mean, before[0] + 1.0, rtol=1e-5)
    np.testing.assert_allclose(variance, before[1], rtol=1e-5)


def test_the_moments_are_saved_and_load_without_keras(tmp_path):
    model = keras.Sequential(two_hidden_layers())
    module = tf.Module()
    module.variables_ = [v.value for v in model.variables]
    module.moments = tf.function(
        lambda x: output_moments(model, x),
        input_signature=[tf.TensorSpec([None, 4])],
        autograph=False,
    )
    tf.saved_model.save(module, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    for a, b in zip(
        loaded.moments(tf.constant(X)), output_moments(model, X), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=1e-5)


@pytest.mark.few(1)
@pytest.mark.parametrize("dtype", ["mixed_float16", "mixed_bfloat16"])
def test_half_precision_propagates_in_single_precision(dtype):
    def network(policy):
        keras.utils.set_random_seed(0)
        return keras.Sequential(
            [
                keras.Input((4,)),
                variational(8, "relu", dtype=policy),
                layers.Reshape((2, 4), dtype=policy),
                layers.Conv1D(2, 1, activation="tanh", dtype=policy),
                layers.LayerNormalization(dtype=policy),
                layers.MaxPooling1D(2, dtype=policy),
                layers.Flatten(dtype=policy),
                variational(2, dtype=policy),
            ]
        )

    half, single = network(dtype), network("float32")
    for a, b in zip(output_moments(half, X), output_moments(single, X), strict=True):
        assert a.dtype == tf.float32
        # But for the rows themselves, which Keras casts to half precision.
        np.testing.assert_allclose(a, b, rtol=0.05, atol=0.01)


def test_layers_that_are_points_run_as_they_are():
    point = {"posterior": "point", "prior": None}
    points = {**point, "bias_posterior": "point", "bias_prior": None}
    model = keras.Sequential(
        [
            keras.Input((4,)),
            DenseVariational(5, "softmax", **points),
            variational(2),
        ]
    )
    assert [each.name for each in operations(model)] == [model.layers[-1].name]
    features = model.layers[0].activation(
        X @ model.layers[0].kernel.mean + model.layers[0].bias.mean
    )
    mean, _ = output_moments(model, X)
    alone = keras.Sequential([keras.Input((5,)), model.layers[1]])
    np.testing.assert_allclose(mean, output_moments(alone, features)[0], rtol=1e-5)
    assert not model.losses


def test_recurrent_and_attention_layers_run_at_their_points():
    points = {"posterior": "point", "prior": None}
    points |= {"bias_posterior": "point", "bias_prior": None}
    inputs = keras.Input((4,))
    steps = layers.Reshape((2, 2))(inputs)
    attended = MultiHeadAttentionVariational(2, 2, **points)(steps, steps)
    features = LSTMVariational(3, **points)(attended)
    model = keras.Model(inputs, variational(2)(features))
    alone = keras.Sequential([keras.Input((3,)), model.layers[-1]])
    certain = keras.Model(inputs, features)(X)
    for moment, expected in zip(
        output_moments(model, X), output_moments(alone, certain), strict=True
    ):
        np.testing.assert_allclose(moment, expected, rtol=1e-4, atol=1e-5)
