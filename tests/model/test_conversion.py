"""Deterministic models become Bayesian ones, start at their weights, and come back."""

import keras
import numpy as np
import pytest
import tensorflow_probability as tfp

import tfbbb
from tests.keras_twins import weights_of
from tfbbb.base.private_apis import sublayers
from tfbbb.bayes.posteriors import MeanFieldNormal, TFPDistribution
from tfbbb.layers import VariationalLayer

ALMOST_A_POINT = {
    "posterior": MeanFieldNormal(initial_scale=1e-7),
    "bias_posterior": MeanFieldNormal(initial_scale=1e-7),
    "kl_weight": 0.01,
}
FAMILIES = [
    "full_covariance_normal",
    "low_rank_normal",
    "matrix_normal",
    "point",
    "rank_1",
    tfp.distributions.Laplace,
]
GENERATOR = np.random.default_rng(0)


def random_weights(model):
    """Gives every weight, biases too, a value that a wrong place would show."""
    model.set_weights(
        [0.3 * GENERATOR.normal(size=w.shape).astype("float32") for w in model.weights]
    )
    return model


def images():
    layers = keras.layers
    return keras.Sequential(
        [
            keras.Input((8, 8, 2)),
            layers.Conv2D(4, 3, strides=2, activation="relu", kernel_regularizer="l2"),
            layers.DepthwiseConv2D(2, depth_multiplier=2, padding="same"),
            layers.SeparableConv2D(3, 2),
            layers.Conv2DTranspose(2, 2, strides=2),
            layers.Flatten(),
            layers.Dense(3, "tanh"),
            layers.Dense(1),
        ]
    )


def volumes():
    layers = keras.layers
    inputs = keras.Input((4, 4, 4, 1))
    hidden = layers.Conv3DTranspose(2, 2)(layers.Conv3D(2, 2)(inputs))
    hidden = layers.Reshape((16, 8))(hidden)
    hidden = layers.Conv1DTranspose(3, 2)(layers.Conv1D(3, 2, dilation_rate=2)(hidden))
    return keras.Model(inputs, layers.Dense(1)(layers.Flatten()(hidden)))


def words():
    layers = keras.layers
    inputs = keras.Input((5,), dtype="int32")
    hidden = layers.Embedding(7, 4, mask_zero=True)(inputs)
    hidden = layers.MultiHeadAttention(2, 3)(hidden, hidden)
    hidden = layers.EinsumDense("abc,cd->abd", (None, 4), bias_axes="d")(hidden)
    hidden = layers.LSTM(4, return_sequences=True)(hidden)
    hidden = layers.Bidirectional(layers.GRU(3, return_sequences=True))(hidden)
    hidden = layers.TimeDistributed(layers.Dense(3))(hidden)
    return keras.Model(inputs, layers.Dense(1)(layers.SimpleRNN(3)(hidden)))


def nested():
    inner_input = keras.Input((4,))
    inner = keras.Model(inner_input, keras.layers.Dense(4)(inner_input), name="inner")
    inputs = keras.Input((4,))
    shared = keras.layers.Dense(4, name="shared")
    hidden = keras.layers.BatchNormalization()(shared(shared(inner(inputs))))
    return keras.Model(inputs, keras.layers.Dense(2)(hidden))


CASES = {
    "images": (images, GENERATOR.normal(size=(3, 8, 8, 2)).astype("float32")),
    "volumes": (volumes, GENERATOR.normal(size=(3, 4, 4, 4, 1)).astype("float32")),
    "words": (words, GENERATOR.integers(0, 7, size=(3, 5))),
    "nested": (nested, GENERATOR.normal(size=(3, 4)).astype("float32")),
}


@pytest.fixture(scope="module", params=CASES)
def case(request):
    make, x = CASES[request.param]
    model = random_weights(make())
    return model, tfbbb.convert(model, **ALMOST_A_POINT), x


def test_every_layer_that_can_is_converted(case):
    model, converted, _ = case
    assert type(converted) is type(model)
    assert len(converted.losses) == 0
    left = [
        layer
        for layer in sublayers(converted)
        if layer._trainable_variables and not isinstance(layer, VariationalLayer)
    ]
    assert all(isinstance(x, keras.layers.BatchNormalization) for x in left)


def test_posterior_means_start_at_the_weights(case):
    model, converted, x = case
    np.testing.assert_allclose(converted(x), model(x), atol=2e-5)


def test_conversion_and_its_inverse_give_the_same_model(case):
    model, converted, x = case
    back = tfbbb.to_deterministic(converted)
    for layer, other in zip(back.layers, model.layers, strict=True):
        assert type(layer) is type(other)
        # Keras names the inputs of a clone anew.
        assert layer.name == other.name or isinstance(layer, keras.layers.InputLayer)
    np.testing.assert_allclose(back(x), model(x), atol=1e-6)


def test_converted_models_train_and_are_saved(case, tmp_path):
    _, converted, x = case
    # To trace the one step takes longer than to run it.
    converted.compile("sgd", "mse", run_eagerly=True)
    y = np.zeros((3, converted.output_shape[-1]))
    assert np.isfinite(converted.fit(x, y, verbose=0).history["loss"]).all()
    converted.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    for mine, other in zip(converted.weights, loaded.weights, strict=True):
        np.testing.assert_array_equal(mine, other)


def dense():
    return random_weights(
        keras.Sequential(
            [
                keras.Input((3,)),
                keras.layers.Dense(4, "tanh", name="hidden"),
                keras.layers.Dense(1, name="last"),
            ]
        )
    )


X = GENERATOR.normal(size=(20, 3)).astype("float32")


def test_named_layers_alone_are_converted():
    converted = tfbbb.convert(dense(), where=["last"], kl_weight=0.1)
    kinds = [type(layer).__name__ for layer in converted.layers]
    assert kinds == ["Dense", "DenseVariational"]


def test_likelihood_makes_a_bayesian_model_with_members():
    model = dense()
    converted = tfbbb.convert(model, likelihood="normal", members=2)
    assert isinstance(converted, tfbbb.BayesianModel)
    converted.compile("adam")
    kernel = np.asarray(converted.get_layer("last").kernel.mean)
    np.testing.assert_array_equal(kernel[0], model.get_layer("last").kernel)
    assert np.abs(kernel[1] - kernel[0]).max() > 0
    converted.fit(X, X[:, :1], verbose=0)
    back = tfbbb.to_deterministic(converted.members[0])
    assert back(X).shape == (20, 1)
    with pytest.raises(ValueError, match=r"members\[0\].*Received: 2 members"):
        tfbbb.to_deterministic(converted)


@pytest.mark.parametrize("name", ["normal", "laplace", "student_t"])
def test_converted_network_outputs_are_in_the_targets_units(name):
    likelihood = tfbbb.convert(dense(), likelihood=name).likelihood
    assert likelihood.name.startswith(name)
    likelihood.adapt(150.0 + 70.0 * X[:, : likelihood.num_targets])
    outputs = np.ones((4, likelihood.num_targets))
    np.testing.assert_array_equal(likelihood.mean(outputs), outputs)


def test_moped_centres_prior_and_posterior_at_the_weights():
    model = dense()
    converted = tfbbb.convert(
        model, likelihood="normal", moped=True, delta=0.2, prior_scale=0.5
    )
    weight = converted.get_layer("hidden").kernel
    w = np.asarray(model.get_layer("hidden").kernel, dtype=float)
    np.testing.assert_allclose(weight.mean, w, rtol=1e-6)
    np.testing.assert_allclose(weight.stddev, 0.2 * np.abs(w), rtol=1e-5)
    kl = tfbbb.divergences.kl_divergence(weight, lambda: weight.draw([0, 1]))
    ratio = 0.2 * np.abs(w) / 0.5
    expected = np.sum(0.5 * ratio**2 - 0.5 - np.log(ratio))
    np.testing.assert_allclose(kl, expected, rtol=1e-4)


@pytest.mark.parametrize("family", FAMILIES, ids=str)
def test_posterior_means_start_at_the_weights_and_convert_back(family):
    model = dense()
    converted = tfbbb.convert(model, posterior=family, bias_posterior=family)
    for layer, other in zip(converted.layers, model.layers, strict=True):
        np.testing.assert_allclose(layer.kernel.mean, other.kernel, rtol=1e-4)
        np.testing.assert_allclose(layer.bias.mean, other.bias, rtol=1e-4)
    back = tfbbb.to_deterministic(converted)
    np.testing.assert_allclose(back(X), model(X), atol=1e-5)


def test_moped_centres_the_priors_of_layers_in_layers():
    inputs = keras.Input((5, 3))
    hidden = keras.layers.MultiHeadAttention(2, 3)(inputs, inputs)
    hidden = keras.layers.MultiHeadAttention(2, 3)(hidden, hidden)
    hidden = keras.layers.Bidirectional(keras.layers.GRU(2))(hidden)
    model = random_weights(keras.Model(inputs, hidden))
    converted = tfbbb.convert(model, moped=True)
    weights = weights_of(converted)
    assert len(weights) == 2 * 8 + 2 * 3
    for weight in weights:
        (prior_mean,) = (
            v for k, v in weight.prior_variables.items() if k.endswith(":mean")
        )
        np.testing.assert_array_equal(weight.mean, prior_mean)


def test_trained_models_of_half_precision_are_converted():
    inputs = keras.Input((3,))
    inner = keras.Sequential(
        [keras.Input((3,)), keras.layers.Dense(3, dtype="mixed_bfloat16")]
    )
    model = keras.Model(inputs, inner(inner(inputs)))
    model.compile("sgd", "mse")
    model.fit(X, X, verbose=0)
    converted = tfbbb.convert(model, **ALMOST_A_POINT)
    (layer,) = [x for x in sublayers(converted) if isinstance(x, VariationalLayer)]
    assert layer.compute_dtype == "bfloat16"
    assert layer.kernel.mean.dtype == layer.kernel.stddev.dtype == "float32"
    # bfloat16 keeps eight bits.
    near = {"rtol": 0.03, "atol": 0.03}
    np.testing.assert_allclose(
        *(np.asarray(m(X), "float32") for m in (converted, model)), **near
    )
    back = tfbbb.to_deterministic(converted)
    np.testing.assert_array_equal(*(np.asarray(m(X), "float32") for m in (back, model)))


def test_spectrally_normalised_layers_stay_as_they_are():
    normalised = keras.layers.SpectralNormalization(keras.layers.Dense(3, name="inner"))
    model = keras.Sequential([keras.Input((3,)), normalised, keras.layers.Dense(3)])
    model.compile("sgd", "mse")
    model.fit(X, X, verbose=0)
    converted = tfbbb.convert(model, likelihood="normal", **ALMOST_A_POINT)
    assert len(converted.variational_layers) == 1
    np.testing.assert_allclose(converted(X), model(X), atol=1e-5)
    copied = converted.get_layer(normalised.name)
    np.testing.assert_array_equal(copied.vector_u, normalised.vector_u)
    with pytest.raises(ValueError, match="no layer of this name"):
        tfbbb.convert(model, where=["inner"])


def test_adapted_preprocessing_comes_along():
    normalization = keras.layers.Normalization()
    normalization.adapt(5.0 + 3.0 * X)
    lookup = keras.layers.StringLookup(output_mode="one_hot")
    lookup.adapt(["a", "b"])
    numbers, words = keras.Input((3,)), keras.Input((1,), dtype="string")
    joined = keras.layers.Concatenate()([normalization(numbers), lookup(words)])
    model = keras.Model([numbers, words], keras.layers.Dense(1)(joined))
    converted = tfbbb.convert(model, **ALMOST_A_POINT)
    inputs = [X[:2], np.array([["a"], ["c"]])]
    inputs = [keras.ops.convert_to_tensor(x) for x in inputs]
    np.testing.assert_allclose(converted(inputs), model(inputs), atol=1e-5)


def test_what_cannot_be_converted_is_refused():
    class Subclassed(keras.Model):
        def call(self, inputs):
            return inputs

    with pytest.raises(ValueError, match=r"functional and sequential.*Subclassed"):
        tfbbb.convert(Subclassed())
    with pytest.raises(ValueError, match=r"functional and sequential.*Sequential"):
        tfbbb.to_deterministic(keras.Sequential([keras.layers.Dense(1)]))
    with pytest.raises(ValueError, match=r"no layer of this name.*Received.*'first'"):
        tfbbb.convert(dense(), where=["first"])
    flat = keras.Sequential([keras.Input((3,)), keras.layers.Flatten(name="flat")])
    with pytest.raises(ValueError, match=r"'flat' has no variational counterpart"):
        tfbbb.convert(flat, where=["flat"])
    with pytest.raises(ValueError, match=r"no layer with a variational counterpart"):
        tfbbb.convert(flat)
    with pytest.raises(ValueError, match=r"list of the names.*where='first'"):
        tfbbb.convert(dense(), where="first")
    with pytest.raises(ValueError, match=r"Unknown option.*'posterior'.*'units'"):
        tfbbb.convert(dense(), units=3)
    with pytest.raises(ValueError, match=r"positive integer.*members=0"):
        tfbbb.convert(dense(), members=0)
    with pytest.raises(ValueError, match=r"^Unknown posterior.*'normal'"):
        tfbbb.convert(dense(), posterior="normal")
    with pytest.raises(ValueError, match=r"with `moped=True` only.*delta=0.2"):
        tfbbb.convert(dense(), delta=0.2)
    coin = TFPDistribution(tfp.distributions.Bernoulli, {"logits": 0.5})
    with pytest.raises(ValueError, match=r"cannot start at weights.*Bernoulli"):
        tfbbb.convert(dense(), posterior=coin, bias_posterior=coin)
    with pytest.raises(ValueError, match=r"leave these options out.*'prior'"):
        tfbbb.convert(dense(), moped=True, prior="normal")
    with pytest.raises(ValueError, match=r"`delta` must be positive.*delta=0"):
        tfbbb.convert(dense(), moped=True, delta=0)
    with pytest.raises(ValueError, match=r"`prior_scale` must be positive"):
        tfbbb.convert(dense(), moped=True, prior_scale=float("nan"))


def test_trained_regression_stays_trained_when_it_goes_on():
    x = GENERATOR.normal(size=(200, 3)).astype("float32")
    y = 150.0 + 70.0 * x[:, :1] + GENERATOR.normal(size=(200, 1))
    network = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    network.set_weights([np.array([[70.0], [0.0], [0.0]]), np.array([150.0])])
    for moped in (False, True):
        twin = tfbbb.convert(network, likelihood="normal", moped=moped)
        twin.compile(keras.optimizers.SGD(1e-6))
        twin.fit(x, y, verbose=0)
        mean = twin.predictive(x, num_samples=500).mean
        assert np.sqrt(np.mean((mean - y) ** 2)) < 3.0


def test_classifiers_give_the_same_probabilities():
    network = keras.Sequential(
        [keras.Input((3,)), keras.layers.Dense(4, activation="softmax")]
    )
    twin = tfbbb.convert(
        network,
        likelihood="categorical",
        posterior=MeanFieldNormal(initial_scale=1e-7),
        bias_posterior=MeanFieldNormal(initial_scale=1e-7),
    )
    probabilities = twin.predictive(X).probabilities
    np.testing.assert_allclose(probabilities, network(X), atol=1e-5)


def test_a_model_without_a_posterior_has_no_means():
    with pytest.raises(ValueError, match=r"no variational layer.*Received"):
        tfbbb.to_deterministic(dense())
