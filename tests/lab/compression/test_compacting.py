import keras
import numpy as np
import pytest
from keras import layers

import tfbbb
from tfbbb.bayes.likelihoods import Normal
from tfbbb.lab.compression import compact
from tfbbb.layers import Conv2DVariational, DenseVariational
from tfbbb.model.compression import prune

GENERATOR = np.random.default_rng(0)


def scramble(model):
    """Gives every weight a mean of its own, none of them 0."""
    for variable in model.trainable_variables:
        if not variable.path.endswith("log_scale"):
            variable.assign(GENERATOR.normal(scale=0.5, size=variable.shape))
    return model


def at_means(model, x):
    """Returns what the model computes with every weight at its mean."""
    for layer in model.layers:
        for weight in getattr(layer, "variational_weights", []):
            log_scale = weight.variables["log_scale"]
            log_scale.assign(np.full(log_scale.shape, -60.0))
    return np.asarray(model(x, training=False))


def kill(layer, incoming=(), outgoing=()):
    """Removes all weights into some units, and all weights out of some inputs."""
    weight = layer.kernel
    kernel = np.asarray(getattr(weight, "mean", weight)).copy()
    kernel[..., list(incoming)] = 0.0
    kernel[..., list(outgoing), :] = 0.0
    assign(weight, kernel)


def assign(weight, values):
    """Sets a weight of Keras, or the mean of a variational one."""
    variable = weight.variables["mean"] if hasattr(weight, "variables") else weight
    variable.assign(values)


def units(network):
    return [x.units for x in network.layers if isinstance(x, layers.Dense)]


def dense_chain(activation="relu", **options):
    return scramble(
        keras.Sequential(
            [
                keras.Input((5,)),
                DenseVariational(8, activation, **options),
                DenseVariational(6, activation, **options),
                DenseVariational(2, **options),
            ]
        )
    )


ROWS = GENERATOR.normal(size=(40, 5)).astype("float32")
IMAGES = GENERATOR.normal(size=(7, 9, 8, 2)).astype("float32")


@pytest.mark.few(7)
@pytest.mark.parametrize("activation", ["relu", "sigmoid", "softplus", None])
@pytest.mark.parametrize("share", [0.0, 0.5, 0.8, 0.95, 1.0])
def test_computes_what_the_pruned_model_computes(activation, share):
    pruned = prune(dense_chain(activation), share)
    network = compact(pruned)
    expected = at_means(pruned, ROWS)
    np.testing.assert_allclose(network(ROWS), expected, rtol=1e-5, atol=1e-5)


def test_constants_of_dead_units_move_to_the_next_bias():
    model = dense_chain("sigmoid")
    kill(model.layers[0], incoming=[1, 4])
    kill(model.layers[1], incoming=[5], outgoing=[0])
    kill(model.layers[2], outgoing=[2, 3])
    network = compact(model)
    # 8 - two constant ones - one unread; 6 - one constant - two unread.
    assert units(network) == [5, 3, 2]
    np.testing.assert_allclose(
        network(ROWS), at_means(model, ROWS), rtol=1e-5, atol=1e-5
    )


def test_units_read_only_by_unread_units_are_removed():
    model = dense_chain()
    kill(model.layers[2], outgoing=[0, 1, 2])
    kernel = model.layers[1].kernel.variables["mean"].numpy()
    kernel[6:, 3:] = 0.0
    model.layers[1].kernel.variables["mean"].assign(kernel)
    assert units(compact(model)) == [6, 3, 2]


def test_constants_pass_through_several_layers():
    model = dense_chain("sigmoid")
    kill(model.layers[0], incoming=[0, 1, 2])
    kernel = model.layers[1].kernel.variables["mean"].numpy()
    # Unit 0 of the second layer reads only constant units: it is one itself.
    kernel[3:, 0] = 0.0
    model.layers[1].kernel.variables["mean"].assign(kernel)
    network = compact(model)
    assert units(network) == [5, 5, 2]
    np.testing.assert_allclose(
        network(ROWS), at_means(model, ROWS), rtol=1e-5, atol=1e-5
    )


def test_an_empty_layer_keeps_one_unit():
    network = compact(prune(dense_chain("sigmoid"), 1.0))
    assert units(network) == [1, 1, 2]


def test_a_bias_is_added_for_a_constant():
    model = dense_chain("sigmoid", use_bias=False)
    kill(model.layers[0], incoming=[0])
    network = compact(model)
    assert [layer.use_bias for layer in network.layers] == [False, True, False]
    np.testing.assert_allclose(
        network(ROWS), at_means(model, ROWS), rtol=1e-5, atol=1e-5
    )


def test_units_before_a_softmax_within_the_network_stay():
    model = dense_chain("softmax")
    kill(model.layers[0], incoming=[0, 1])
    kill(model.layers[1], outgoing=[3])
    network = compact(model)
    assert units(network) == [8, 6, 2]
    np.testing.assert_allclose(network(ROWS), at_means(model, ROWS), rtol=1e-5)


def test_separate_activations_dropout_and_nested_models_are_followed():
    inner = keras.Sequential(
        [keras.Input((6,)), layers.LeakyReLU(), layers.Dense(4), layers.ReLU()]
    )
    inputs = keras.Input((5,))
    hidden = DenseVariational(6)(inputs)
    hidden = layers.Dropout(0.5)(inner(hidden))
    model = scramble(keras.Model(inputs, DenseVariational(2, "softmax")(hidden)))
    kill(model.layers[1], incoming=[0, 3])
    kill(inner.layers[1], incoming=[2])
    network = compact(model)
    assert units(network) == [4, 3, 2]
    assert not any(isinstance(layer, layers.Dropout) for layer in network.layers)
    np.testing.assert_allclose(
        network(ROWS), at_means(model, ROWS), rtol=1e-5, atol=1e-6
    )


@pytest.mark.few(7)
@pytest.mark.parametrize("convolution", [layers.Conv2D, Conv2DVariational])
@pytest.mark.parametrize("padding", ["valid", "same"])
@pytest.mark.parametrize("activation", ["relu", "sigmoid"])
@pytest.mark.parametrize(
    "pooling",
    [
        [layers.MaxPooling2D(2), layers.Flatten()],
        [layers.AveragePooling2D(2, padding="same"), layers.Flatten()],
        [layers.GlobalAveragePooling2D()],
    ],
    ids=["max", "average", "global"],
)
def test_channels_of_convolutions_are_removed(
    convolution, padding, activation, pooling
):
    model = scramble(
        keras.Sequential(
            [
                keras.Input((9, 8, 2)),
                convolution(6, 3, padding=padding, activation=activation),
                convolution(5, 2, 2, padding=padding, activation=activation),
                *[type(layer).from_config(layer.get_config()) for layer in pooling],
                DenseVariational(4, "tanh"),
                DenseVariational(2),
            ]
        )
    )
    kill(model.layers[0], incoming=[0, 3])
    kill(model.layers[1], incoming=[4], outgoing=[1])
    assign(model.layers[0].bias, [-1.0, 1.0, 1.0, 0.5, 1.0, 1.0])
    network = compact(model)
    # A constant that is not 0 is another number beside the padding; relu(-1) is 0.
    stays = {"relu": 1, "sigmoid": 2}[activation] if padding == "same" else 0
    filters = [x.filters for x in network.layers if isinstance(x, layers.Conv2D)]
    assert filters == [3 + stays, 4]
    np.testing.assert_allclose(
        network(IMAGES), at_means(model, IMAGES), rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize("share", [0.5, 0.9, 0.98])
def test_compact_convolutions_compute_the_same(share):
    model = scramble(
        keras.Sequential(
            [
                keras.Input((9, 8, 2)),
                Conv2DVariational(8, 3, padding="same", activation="sigmoid"),
                layers.MaxPooling2D(2),
                Conv2DVariational(6, 2, dilation_rate=2, activation="relu"),
                layers.Flatten(),
                DenseVariational(3),
            ]
        )
    )
    pruned = prune(model, share, scope="layer")
    network = compact(pruned)
    np.testing.assert_allclose(
        network(IMAGES), at_means(pruned, IMAGES), rtol=1e-5, atol=1e-5
    )


def test_compact_bayesian_models_output_before_the_likelihood():
    inputs = keras.Input((5,))
    hidden = DenseVariational(8, "relu")(inputs)
    model = tfbbb.BayesianModel(
        inputs, DenseVariational(1)(hidden), likelihood=Normal(scale=1.0)
    )
    model.compile("adam")
    model.fit(ROWS, 100.0 + ROWS[:, :1], verbose=0)
    pruned = prune(model, 0.6)
    network = compact(pruned)
    at_means(pruned, ROWS)
    np.testing.assert_allclose(
        pruned.likelihood.mean(network(ROWS)), pruned.predictive(ROWS).mean, rtol=1e-5
    )
    assert network.count_params() < sum(w.size for w in pruned.variational_weights)


def test_compact_networks_are_plain_keras_models(tmp_path):
    network = compact(prune(dense_chain(), 0.7))
    network.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras", safe_mode=True)
    assert {type(layer) for layer in loaded.layers} == {layers.Dense}
    np.testing.assert_array_equal(loaded(ROWS), network(ROWS))


def branching():
    inputs = keras.Input((3,))
    hidden = DenseVariational(3, name="body")(inputs)
    joined = layers.Add(name="joined")([hidden, inputs])
    return keras.Model(inputs, joined, name="residual")


def shared():
    inputs, layer = keras.Input((3,)), DenseVariational(3, name="twice")
    return keras.Model(inputs, layer(layer(inputs)))


def two_inputs():
    inputs = [keras.Input((3,)), keras.Input((3,))]
    return keras.Model(inputs, layers.Concatenate()(inputs))


def with_layer(layer, shape=(3,)):
    return keras.Sequential([keras.Input(shape), layer])


class Subclassed(keras.Model):
    def __init__(self):
        super().__init__(name="own")
        self.built = True


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (branching, "residual.*'joined'|'joined'"),
        (shared, "shares at 'twice'"),
        (two_inputs, "2 inputs"),
        (
            lambda: with_layer(layers.BatchNormalization(name="norm")),
            "the layer 'norm', a BatchNormalization",
        ),
        (
            lambda: with_layer(DenseVariational(2, members=3, name="mixed")),
            "members=3 in 'mixed'",
        ),
        (
            lambda: with_layer(layers.Conv2D(4, 2, groups=2, name="split"), (5, 5, 2)),
            "groups=2 in 'split'",
        ),
        (
            lambda: with_layer(
                layers.Flatten(data_format="channels_first", name="flat"), (5, 5, 2)
            ),
            "data_format='channels_first' in 'flat'",
        ),
        (Subclassed, "model='own', a Subclassed"),
        (lambda: keras.Sequential([DenseVariational(2)], name="new"), "model=.*new"),
        (lambda: "model", "model='model'"),
    ],
)
def test_an_unsupported_model_is_refused(model, message):
    with pytest.raises(ValueError, match=f"Received: .*({message})"):
        compact(model())


def test_preprocessing_stays_in_front():
    x = np.random.default_rng(0).normal(3.0, 2.0, size=(20, 4)).astype("float32")
    standardize = keras.layers.Normalization()
    standardize.adapt(x)
    model = keras.Sequential(
        [
            keras.Input((4,)),
            keras.layers.Rescaling(0.5),
            standardize,
            keras.layers.Reshape((2, 2)),
            tfbbb.layers.Conv1DVariational(3, 1, activation="relu"),
            keras.layers.Flatten(),
            tfbbb.layers.DenseVariational(8, "relu"),
            tfbbb.layers.DenseVariational(1),
        ]
    )
    pruned = tfbbb.compression.prune(model, 0.5)
    smaller = tfbbb.lab.compression.compact(pruned)
    means = tfbbb.to_deterministic(pruned)
    np.testing.assert_allclose(smaller(x), means(x), rtol=1e-5, atol=1e-5)
