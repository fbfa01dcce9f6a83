"""Deterministic models become Bayesian ones, start at their weights, and come back."""

import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp

import tfbbb
from tfbbb.base.private_apis import sublayers
from tfbbb.bayes.estimators import ClosedForm
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
    tfp.distributions.Laplace,
]
GENERATOR = np.random.default_rng(0)


def random_weights(model):
    """Gives every weight, biases too, a value that a wrong place would show."""
    model.set_weights(
        [0.3 * GENERATOR.normal(size=w.shape).astype("float32") for w in model.weights]
    )
    return model


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
    "words": (words, GENERATOR.integers(0, 7, size=(3, 5))),
    "nested": (nested, GENERATOR.normal(size=(3, 4)).astype("float32")),
}


@pytest.fixture(scope="module", params=CASES)
def case(request):
    make, x = CASES[request.param]
    model = random_weights(make())
    return model, tfbbb.convert(model, **ALMOST_A_POINT), x


def test_a_mean_is_refused_where_its_logarithm_is_taken():
    last = keras.layers.Dense(1, "softplus")
    network = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1), last])
    with pytest.raises(ValueError, match=r"Poisson takes the logarithm of the mean"):
        tfbbb.convert(network, likelihood="poisson")


@pytest.mark.parametrize(
    ("likelihood", "form"),
    [("poisson", "activation"), ("gamma", "layer"), ("poisson", "operation")],
)
def test_a_last_exponential_is_removed_where_the_logarithm_is_taken(likelihood, form):
    inputs = keras.Input((2,))
    activation = "exponential" if form == "activation" else None
    means = keras.layers.Dense(1, activation=activation, name="last")(inputs)
    if form == "layer":
        means = keras.layers.Activation("exponential")(means)
    if form == "operation":
        means = keras.ops.exp(means)
    network = random_weights(keras.Model(inputs, means))
    x = GENERATOR.normal(size=(8, 2)).astype("float32")
    expected = network.predict(x, verbose=0)
    twin = tfbbb.convert(network, likelihood=likelihood, **ALMOST_A_POINT)
    assert twin.conversion.removed == ("exponential",)
    assert network.layers[1].activation.__name__ == (activation or "linear")
    np.testing.assert_allclose(
        twin.likelihood.mean(twin(x)), expected, rtol=2e-4, atol=1e-6
    )


def test_conversion_and_its_inverse_give_the_same_model(case):
    model, converted, x = case
    back = tfbbb.to_deterministic(converted)
    for layer, other in zip(back.layers, model.layers, strict=True):
        assert type(layer) is type(other)
        # Keras names the inputs of a clone anew.
        assert layer.name == other.name or isinstance(layer, keras.layers.InputLayer)
    np.testing.assert_allclose(back(x), model(x), atol=1e-6)


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


@pytest.mark.few(3)
@pytest.mark.parametrize("family", FAMILIES, ids=str)
def test_posterior_means_start_at_the_weights_and_convert_back(family):
    model = dense()
    converted = tfbbb.convert(model, posterior=family, bias_posterior=family)
    for layer, other in zip(converted.layers, model.layers, strict=True):
        np.testing.assert_allclose(layer.kernel.mean, other.kernel, rtol=1e-4)
        np.testing.assert_allclose(layer.bias.mean, other.bias, rtol=1e-4)
    back = tfbbb.to_deterministic(converted)
    np.testing.assert_allclose(back(X), model(X), atol=1e-5)


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
    with pytest.raises(ValueError, match=r"'flat' gets no variational counterpart"):
        tfbbb.convert(flat, where=["flat"])
    with pytest.raises(ValueError, match=r"no layer with a variational counterpart"):
        tfbbb.convert(flat)
    with pytest.raises(ValueError, match=r"no variational layer.*Received"):
        tfbbb.to_deterministic(dense())
    with pytest.raises(ValueError, match=r"list of the names.*where='first'"):
        tfbbb.convert(dense(), where="first")
    with pytest.raises(ValueError, match=r"Unknown option.*'posterior'.*'units'"):
        tfbbb.convert(dense(), units=3)
    with pytest.raises(ValueError, match=r"positive integer.*members=0"):
        tfbbb.convert(dense(), members=0)
    with pytest.raises(ValueError, match=r"^Unknown posterior.*'normal'"):
        tfbbb.convert(dense(), posterior="normal")
    coin = TFPDistribution(tfp.distributions.Bernoulli, {"logits": 0.5})
    with pytest.raises(ValueError, match=r"cannot start at weights.*Bernoulli"):
        tfbbb.convert(dense(), posterior=coin, bias_posterior=coin)


def names(model):
    return [x.name for x in sublayers(model) if isinstance(x, VariationalLayer)]


def two_towers():
    inner_input = keras.Input((4,))
    hidden = keras.layers.Dense(4, name="deep")(inner_input)
    inner = keras.Model(inner_input, keras.layers.Dense(4, name="left")(hidden))
    first, second = keras.Input((4,)), keras.Input((5, 3))
    right = keras.layers.Bidirectional(keras.layers.GRU(2), name="right")(second)
    dot = keras.layers.Dot(1)([inner(first), right])
    return keras.Model([first, second], keras.layers.Activation("sigmoid")(dot))


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("all", ["deep", "left", "forward_gru", "backward_gru"]),
        ("last", ["left", "forward_gru", "backward_gru"]),
        (["right", "deep"], ["deep", "forward_gru", "backward_gru"]),
        (lambda layer: layer.name == "deep", ["deep"]),
    ],
    ids=["all", "last", "names", "rule"],
)
def test_where_chooses_the_layers_that_are_converted(where, expected):
    keras.utils.clear_session()
    converted = tfbbb.convert(two_towers(), where=where, kl_weight=0.1)
    assert sorted(names(converted)) == sorted(expected)
    rows = [row.name for row in converted.conversion.layers if row.posterior]
    assert sorted(rows) == sorted(expected)


def test_last_layer_has_its_loss_in_closed_form_where_exact():
    def estimator(network, **options):
        twin = tfbbb.convert(network, **{"where": "last", **options})
        stated = "loss in closed form" in str(twin.conversion)
        assert stated == isinstance(last(twin).estimator, ClosedForm)
        return type(last(twin).estimator).__name__

    def last(twin):
        return twin.get_layer("last")

    def network(units=1, activation=None):
        layers = keras.layers
        return keras.Sequential(
            [
                keras.Input((4,)),
                layers.Dense(3, "tanh"),
                layers.Dense(units, activation, name="last"),
            ]
        )

    assert estimator(network(), likelihood="normal") == "ClosedForm"
    full = {"posterior": "full_covariance_normal"}
    assert estimator(network(), likelihood="normal", **full) == "ClosedForm"
    heteroscedastic = tfbbb.likelihoods.Normal(heteroscedastic=True)
    for options in (
        {"likelihood": "normal", "posterior": tfp.distributions.Laplace},
        {"likelihood": "normal", "estimator": "auto"},
        {"likelihood": "normal", "where": "all"},
        {"likelihood": "laplace"},
        {},
    ):
        assert estimator(network(), **options) == "Auto"
    assert estimator(network(2), likelihood=heteroscedastic) == "Auto"
    assert estimator(network(3, "softmax"), likelihood="categorical") == "Auto"
    assert estimator(network(1, "relu"), likelihood="normal") == "Auto"


@pytest.mark.parametrize(("rows", "temperature"), [(10, 3 / 21), (2100, 1.0)])
def test_temperature_is_rows_per_weight_unless_compile_says_another(rows, temperature):
    converted = tfbbb.convert(dense(), likelihood="normal")
    x = np.resize(X, (rows, 3))
    converted.compile("adam", run_eagerly=True)
    history = converted.fit(x, x[:, :1], batch_size=rows, verbose=0).history
    np.testing.assert_allclose(history["temperature"], [temperature], rtol=1e-6)
    converted.compile("adam", kl_schedule="constant", run_eagerly=True)
    history = converted.fit(x, x[:, :1], batch_size=rows, verbose=0).history
    assert history["temperature"] == [1.0]


@pytest.mark.parametrize(
    "options", [{"kl_weight": 0.1}, {"posterior": "point"}], ids=str
)
def test_given_weights_and_points_keep_temperature_one(options):
    if "posterior" in options:
        options = {**options, "bias_posterior": "point"}
    converted = tfbbb.convert(dense(), likelihood="normal", **options)
    assert converted.conversion.kl_schedule == tfbbb.kl_schedules.Constant()


@pytest.mark.parametrize(("members", "as_dataset"), [(1, False), (2, True)])
def test_noise_starts_at_the_residuals_of_the_network(members, as_dataset):
    generator = np.random.default_rng(1)
    network = random_weights(
        keras.Sequential([keras.Input((5, 3)), keras.layers.Dense(2)])
    )
    x = generator.normal(size=(40, 5, 3)).astype("float32")
    residuals = generator.normal(scale=(0.5, 0.1), size=(40, 5, 2))
    y = np.asarray(network(x)) + residuals
    converted = tfbbb.convert(
        network, likelihood="normal", members=members, **ALMOST_A_POINT
    )
    converted.compile(keras.optimizers.SGD(1e-12), run_eagerly=True)
    if as_dataset:
        converted.fit(tf.data.Dataset.from_tensor_slices((x, y)).batch(16), verbose=0)
    else:
        converted.fit(x, y, verbose=0)
    noise = np.log1p(np.exp(converted.likelihood.raw_noise)).reshape(members, 2)
    found = noise[0] * converted.likelihood.target_scale
    expected = np.sqrt(np.mean(residuals**2, axis=(0, 1)))
    np.testing.assert_allclose(found, expected, rtol=2e-3)
    if members == 2:
        # The second member starts as a new layer: its noise is that of the targets.
        assert (noise[1] > noise[0]).all()
        assert (noise[1] <= 1.0 + 1e-3).all()


def test_means_start_at_kernels_with_lora_merged():
    network = dense()
    network.get_layer("hidden").enable_lora(2)
    random_weights(network)
    converted = tfbbb.convert(network, likelihood="normal")
    np.testing.assert_allclose(
        converted.get_layer("hidden").kernel.mean,
        network.get_layer("hidden").kernel,
        rtol=1e-6,
    )
    assert "LoRA merged" in str(converted.conversion)
    kept = tfbbb.convert(network, where="last", **ALMOST_A_POINT)
    np.testing.assert_allclose(kept(X), network(X), atol=1e-5)


def test_table_says_what_became_of_each_layer_and_why():
    inputs = keras.Input((4,))
    hidden = keras.layers.Dense(6, name="frozen", trainable=False)(inputs)
    hidden = keras.layers.BatchNormalization(name="norm")(hidden)
    hidden = keras.layers.Dense(5, name="middle")(hidden)
    network = keras.Model(inputs, keras.layers.Dense(3, "softmax", name="end")(hidden))
    conversion = tfbbb.convert(
        network, where=["end"], likelihood="categorical"
    ).conversion
    assert [(row.name, row.weights, row.note) for row in conversion.layers] == [
        ("frozen", 30, "frozen: trainable=False"),
        ("norm", 24, "no variational counterpart"),
        ("middle", 35, "not in `where`"),
        ("end", 18, "Normal(scale=0.5, trainable=False)"),
    ]
    text = str(conversion)
    assert "18 of 107 weights have a posterior" in text
    assert "RowsPerWeight(num_weights=18)" in text
    assert "Removed at the end: softmax" in text


def test_layers_that_cannot_be_copied_are_refused_by_name():
    class WithoutConfig(keras.layers.Layer):
        def __init__(self, units):
            super().__init__(name="own")
            self.dense = keras.layers.Dense(units)

        def call(self, inputs):
            return self.dense(inputs)

    class Tied(keras.layers.Layer):
        def __init__(self, table):
            super().__init__(name="tied")
            self.table = table

        def call(self, inputs):
            return keras.ops.matmul(inputs, keras.ops.transpose(self.table.embeddings))

    network = keras.Sequential(
        [keras.Input((3,)), WithoutConfig(2), keras.layers.Dense(1)]
    )
    with pytest.raises(ValueError, match=r"'own' cannot be copied.*`get_config`"):
        tfbbb.convert(network)
    table = keras.layers.Embedding(5, 4, name="table")
    words = keras.Input((3,), dtype="int32")
    network = keras.Model(words, Tied(table)(keras.layers.GRU(4)(table(words))))
    with pytest.raises(ValueError, match=r"'table' and 'tied' share a weight"):
        tfbbb.convert(network)
    shared = keras.layers.Dense(3)
    shared.build((None, 3))
    own = keras.layers.Lambda(lambda x: shared(x), name="own")
    network = keras.Sequential([keras.Input((3,)), keras.layers.Dense(3), own])
    with pytest.raises(ValueError, match=r"Lambda 'own' uses weights.*shared="):
        tfbbb.convert(network)
    network = dense()
    network.quantize("int8")
    with pytest.raises(ValueError, match=r"'hidden' is quantized.*before `quantize`"):
        tfbbb.convert(network)
    network = dense()
    network.get_layer("last").trainable = False
    with pytest.raises(
        ValueError, match=r"'last' gets no .*: frozen.*trainable = True"
    ):
        tfbbb.convert(network, where=["last"])
    network.trainable = False
    with pytest.raises(ValueError, match=r"may be converted.*frozen"):
        tfbbb.convert(network)


@pytest.mark.parametrize("as_dictionary", [False, True])
def test_heads_have_likelihoods_by_name_in_any_order(as_dictionary):
    inputs = keras.Input((3,))
    outputs = {
        "price": keras.layers.Dense(1, name="price")(inputs),
        "kind": keras.layers.Activation("softmax", name="kind")(
            keras.layers.Dense(4)(inputs)
        ),
    }
    network = keras.Model(inputs, outputs if as_dictionary else [*outputs.values()])
    normal = tfbbb.likelihoods.Normal(scale=1.0, standardize=False)
    by_name = {"kind": "categorical", "price": normal}
    twin = tfbbb.convert(network, likelihood=by_name, kl_weight=0.1)
    assert twin.conversion.removed == ("softmax",)
    assert twin.output_names == network.output_names
    x, y = X[:, :3], {"kind": np.arange(len(X)) % 4, "price": X[:, :1]}
    likelihoods = [by_name] if as_dictionary else [by_name, [normal, "categorical"]]
    for each in likelihoods:
        twin.compile("sgd", each, run_eagerly=True)
        twin.fit(x, y if as_dictionary else [y["price"], y["kind"]], verbose=0)
        found = tfbbb.predictive(twin, x, likelihood=each)
        if not as_dictionary:
            found = dict(zip(outputs, found, strict=True))
        assert found["price"].mean.shape == (len(X), 1)
        assert found["kind"].probabilities.shape == (len(X), 4)
    if as_dictionary:
        # Keras sorts the outputs, so the order of a list is not what it seems.
        with pytest.raises(
            ValueError, match=r"dictionary by name.*\['kind', 'price'\]"
        ):
            tfbbb.convert(network, likelihood=[normal, "categorical"], kl_weight=0.1)


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("likelihood", "units"),
    [
        (tfbbb.likelihoods.Normal(), 2),
        (tfbbb.likelihoods.Laplace(heteroscedastic=True), 4),
        (tfbbb.likelihoods.NegativeBinomial(), 2),
        (tfbbb.likelihoods.NormalMixture(3), 18),
        (tfbbb.likelihoods.Categorical(), 3),
    ],
    ids=lambda x: type(x).__name__,
)
def test_the_deterministic_network_predicts_in_the_targets_units(likelihood, units):
    inputs = keras.Input((3,))
    layer = tfbbb.layers.DenseVariational(units, **ALMOST_A_POINT)
    model = tfbbb.BayesianModel(inputs, layer(inputs), likelihood=likelihood)
    targets = np.random.default_rng(0).poisson([20.0, 900.0], size=(60, 2))
    is_of_classes = likelihood.task == "classification"
    model.likelihood.adapt(targets[:, 0] % 3 if is_of_classes else targets)
    x = X[:20, :3]
    network = tfbbb.to_deterministic(model)
    if is_of_classes:
        expected, plain = model(x), model.likelihood
    else:
        expected = model.predict(x, verbose=0)
        config = {**model.likelihood.get_config(), "standardize": False}
        plain = type(likelihood).from_config(config)
        plain.build(network.output_shape)
        for ours, theirs in zip(
            plain.variables, model.likelihood.variables, strict=True
        ):
            ours.assign(theirs)
    found = network(x)
    if not is_of_classes:
        found = plain.point_prediction(found)
    np.testing.assert_allclose(found, expected, rtol=1e-3)


def test_members_of_a_trained_network_draw_a_warning():
    network = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    network.compile("adam", "mse")
    assert (
        tfbbb.convert(network, likelihood="normal", members=2).conversion.members == 2
    )
    network.fit(X, X[:, :1], verbose=0)
    with pytest.warns(UserWarning, match="first member .* Received: members=3"):
        twin = tfbbb.convert(network, likelihood="normal", members=3)
    assert "Of 3 members the first starts there" in str(twin.conversion)
    np.testing.assert_array_equal(
        twin.members[0].layers[-1].kernel.mean, network.layers[-1].kernel
    )


def test_the_table_of_a_conversion_is_saved(tmp_path):
    network = keras.Sequential(
        [keras.Input((3,)), keras.layers.Dense(4), keras.layers.Dense(1)]
    )
    twin = tfbbb.convert(network, likelihood="normal", members=2)
    twin.save(tmp_path / "twin.keras")
    loaded = keras.saving.load_model(tmp_path / "twin.keras")
    assert loaded.conversion == twin.conversion
    assert str(loaded.conversion) == str(twin.conversion)
    # The schedule that `compile` takes by default.
    loaded.compile("adam")
    assert loaded.kl_schedule == tfbbb.kl_schedules.RowsPerWeight(21)
