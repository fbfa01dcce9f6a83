import functools
import pickle

import keras
import numpy as np
import pytest
from keras.initializers import GlorotUniform

import tfbbb
from tests.lab.distributed.linear_partitions import drawn_rows
from tfbbb.lab.distributed import PartitionedVI, split_rows
from tfbbb.lab.distributed.network_rows import (
    LocalTraining,
    NetworkRows,
    NetworkWeights,
)


def linear_network(columns=3, likelihood=None, **options):
    inputs = keras.Input((columns,))
    outputs = tfbbb.layers.DenseVariational(1, **options)(inputs)
    likelihood = likelihood or tfbbb.likelihoods.Normal(scale=0.5)
    return tfbbb.BayesianModel(inputs, outputs, likelihood=likelihood)


def moments(model):
    weights = model.variational_weights
    return np.concatenate([np.ravel(v) for w in weights for v in (w.mean, w.variance)])


@pytest.fixture(scope="module")
def rows():
    return drawn_rows(60, 3)


@pytest.mark.parametrize("covariance", ["full", "factorised"])
def test_linear_regression_equals_one_machine(covariance, rows):
    network = linear_network()
    one = tfbbb.lab.inference.CAVI(covariance).fit(network, *rows)
    method = PartitionedVI(covariance, rounds=200)
    # In the order of the rows: the last partition has other targets than the first.
    x, y = (values[np.argsort(rows[1])] for values in rows)
    parts = [(x[:5], y[:5]), (x[5:30], y[5:30]), (x[30:], y[30:])]
    fitted = method.fit(network, parts, verbose=0)
    assert fitted.diagnostics["converged"]
    assert fitted.num_rows == 60
    np.testing.assert_allclose(moments(fitted), moments(one), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        fitted.predictive(x[:4]).stddev, one.predictive(x[:4]).stddev, rtol=1e-5
    )


def test_partitions_may_be_functions_that_read_rows(rows, tmp_path):
    parts = split_rows(*rows, partitions=3)
    paths = [tmp_path / f"{k}.npz" for k in range(3)]
    for path, (x, y) in zip(paths, parts, strict=True):
        np.savez(path, x=x, y=y)
    sources = [functools.partial(read, path) for path in paths]
    network, method = linear_network(), PartitionedVI("full")
    read_there = method.fit(network, sources, verbose=0)
    given = method.fit(network, parts, verbose=0)
    np.testing.assert_array_equal(moments(read_there), moments(given))


def read(path):
    with np.load(path) as arrays:
        return arrays["x"], arrays["y"]


def test_the_given_model_stays_as_it_is(rows):
    network = linear_network()
    before = [variable.numpy() for variable in network.variables]
    PartitionedVI("full").fit(network, split_rows(*rows, 2), verbose=0)
    for value, variable in zip(before, network.variables, strict=True):
        np.testing.assert_array_equal(value, variable.numpy())
    assert not network.likelihood.adapted


@pytest.fixture(scope="module")
def trained():
    """A network with learned noise, of partitions that are sorted by the input."""
    keras.utils.set_random_seed(0)
    generator = np.random.default_rng(0)
    x = np.sort(generator.uniform(-2.0, 2.0, size=(200, 1)), axis=0)
    y = np.sin(1.5 * x) + 0.2 * generator.normal(size=x.shape)
    inputs = keras.Input((1,))
    layer = functools.partial(tfbbb.layers.DenseVariational, prior="normal")
    hidden = layer(10, activation="tanh")(inputs)
    network = tfbbb.BayesianModel(inputs, layer(1)(hidden))
    parts = [(x[rows], y[rows]) for rows in np.array_split(np.arange(200), 4)]
    method = PartitionedVI(rounds=15, epochs=100, learning_rate=0.02)
    return x, y, network, method.fit(network, parts, verbose=0)


def test_a_network_learns_from_sorted_partitions(trained):
    x, y, _, fitted = trained
    # The function from all ranges of x: each partition knows a quarter of it. Without
    # the others it would be off by about the spread of the function, 0.7.
    error = fitted.predictive(x, num_samples=100).mean - np.sin(1.5 * x)
    assert np.sqrt(np.mean(error**2)) < 0.2
    # The noise 0.2, in the units of the targets, and the error of the function. Four
    # standard errors of a deviation of 200 rows, 5 % each.
    noise = np.logaddexp(0.0, fitted.likelihood.raw_noise.numpy()) * y.std()
    assert 0.8 * 0.2 < noise[0] < 1.2 * np.hypot(0.2, 0.2)


def test_one_undamped_partition_trains_as_one_machine(rows):
    def network():
        inputs = keras.Input((3,))
        hidden = tfbbb.layers.DenseVariational(
            4, activation="tanh", kernel_initializer=GlorotUniform(seed=1), seed=1
        )(inputs)
        outputs = tfbbb.layers.DenseVariational(
            1, kernel_initializer=GlorotUniform(seed=2), seed=2
        )(hidden)
        model = tfbbb.BayesianModel(inputs, outputs)
        model.likelihood.adapt(rows[1])
        return model

    method = PartitionedVI(rounds=1, epochs=20, damping=0.0)
    fitted = method.fit(network(), [rows], verbose=0)
    # The cavity of the only factor is the prior.
    weights = NetworkWeights(network())
    training = LocalTraining(weights, 20, 32, 0.01)
    whole = NetworkRows(*rows, training, 0).optimum(weights.prior, weights.start, 1)
    found = NetworkWeights(fitted).moments
    points = len(weights.learned_parameters)
    for value, expected in zip(found, whole.moments(), strict=True):
        np.testing.assert_allclose(value[:-points], expected[:-points], rtol=1e-4)


def test_the_result_keeps_its_own_priors_and_is_saved(trained, tmp_path):
    x, _, network, fitted = trained
    for layer, own in zip(
        fitted.variational_layers, network.variational_layers, strict=True
    ):
        assert layer.prior == own.prior
    fitted.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.diagnostics["bytes_sent"] == fitted.diagnostics["bytes_sent"]
    np.testing.assert_allclose(
        loaded.predictive(x[:3], seed=1).mean, fitted.predictive(x[:3], seed=1).mean
    )


def test_vectors_hold_the_weights_of_the_network(trained):
    *_, fitted = trained
    weights = pickle.loads(pickle.dumps(NetworkWeights(fitted)))
    mean, variance = weights.moments
    assert len(mean) == 10 + 10 + 10 + 1 + 1
    weights.set_q(mean + 1.0, 4.0 * variance + 1e-3)
    moved, spread = weights.moments
    np.testing.assert_allclose(moved, mean + 1.0, rtol=1e-5)
    # The learned noise is a point.
    np.testing.assert_allclose(spread[:-1], 4.0 * variance[:-1] + 1e-3, rtol=1e-4)
    # The priors 1 / fan-in of kernel, bias, kernel and bias, and the noise's weak one.
    expected = [*[1.0] * 20, *[10.0] * 10, 1.0, 1e-3]
    np.testing.assert_allclose(weights.prior.precision, expected, rtol=1e-6)
    np.testing.assert_array_equal(weights.prior.linear[:-1], 0.0)


def test_bytes_are_two_numbers_per_weight_and_message(rows):
    model = PartitionedVI("factorised", rounds=3, tolerance=1e-30).fit(
        linear_network(), split_rows(*rows, 5), verbose=0
    )
    # 3 rounds of 5 tasks and 5 updates, of 4 weights; the first tasks carry factors.
    assert model.diagnostics["bytes_sent"] == (2 * 15 + 5) * 4 * 2 * 8


def test_split_rows_needs_a_row_for_each_partition():
    with pytest.raises(ValueError, match="partitions=3 for 2 rows"):
        split_rows(np.zeros((2, 1)), np.zeros(2), partitions=3)
    with pytest.raises(ValueError, match="one entry for each row"):
        split_rows(np.zeros((2, 1)), np.zeros(3), partitions=2)


@pytest.mark.parametrize(
    ("partitions", "message"),
    [
        ([], "an empty list of partitions"),
        ([(np.zeros((2, 3)), np.arange(2.0)), (np.zeros((0, 3)), [])], "partition 1"),
        ([np.zeros((2, 3))], "ndarray for partition 0"),
        ([(np.zeros((2, 3)), np.zeros(3))], "one entry for each row"),
    ],
)
def test_partitions_without_rows_are_refused(partitions, message):
    with pytest.raises(ValueError, match=message):
        PartitionedVI("full").fit(linear_network(), partitions, verbose=0)


def learned(**options):
    return linear_network(likelihood="normal", **options)


def with_plain_layer(scale=None):
    inputs = keras.Input((3,))
    hidden = keras.layers.Dense(2)(inputs)
    outputs = tfbbb.layers.DenseVariational(1)(hidden)
    likelihood = tfbbb.likelihoods.Normal(scale=scale)
    return tfbbb.BayesianModel(inputs, outputs, likelihood=likelihood)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: learned(posterior="low_rank_normal"), "must be 'mean_field_normal'"),
        (lambda: learned(prior="laplace"), "needs normal priors"),
        (lambda: learned(kl_weight=0.1), "leave `kl_weight` out"),
        (lambda: learned(members=2), "take one member"),
        (with_plain_layer, "a posterior for every trainable weight"),
        (lambda: with_plain_layer(0.5), "a posterior for every trainable weight"),
    ],
)
def test_models_that_are_not_supported_are_refused(build, message, rows):
    with pytest.raises(ValueError, match=message):
        PartitionedVI().fit(build(), split_rows(*rows, 2), verbose=0)


def followed_by_another_operation():
    inputs = keras.Input((3,))
    hidden = tfbbb.layers.DenseVariational(1)(inputs)
    likelihood = tfbbb.likelihoods.Normal(scale=0.5)
    outputs = keras.layers.Activation("tanh")(hidden)
    return tfbbb.BayesianModel(inputs, outputs, likelihood=likelihood)


def with_prior_of_another_model():
    prior = tfbbb.priors.FromPosterior(linear_network(name="dense"))
    return linear_network(name="dense", prior=prior, bias_prior=prior)


@pytest.mark.parametrize(
    "build", [followed_by_another_operation, with_prior_of_another_model]
)
def test_models_without_a_closed_form_train_as_networks(build, rows):
    parts = split_rows(*rows, partitions=2)
    method = PartitionedVI(rounds=2, epochs=2)
    assert method.fit(build(), parts, verbose=0).num_rows == 60


def test_a_full_covariance_is_for_given_noise(rows):
    with pytest.raises(ValueError, match="noise of a given scale"):
        PartitionedVI("full").fit(learned(), split_rows(*rows, 2), verbose=0)


@pytest.mark.parametrize(
    "arguments",
    [{"covariance": "diagonal"}, {"damping": 1.0}, {"rounds": 0}, {"tolerance": 0.0}],
)
def test_arguments_out_of_range_are_refused(arguments):
    with pytest.raises(ValueError, match="Received"):
        PartitionedVI(**arguments)
