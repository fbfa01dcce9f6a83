"""Predictions of the network that is linear in its weights around their means."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfbbb
from tfbbb.inference import Laplace
from tfbbb.inference.network_function import NetworkFunction
from tfbbb.inference.row_derivatives import RowPass
from tfbbb.prediction.linearised import linearised_outputs, weight_means
from tfbbb.prediction.network_pass import NetworkPass
from tfbbb.prediction.plan import Plan
from tfbbb.prediction.structure import Structure

X = np.random.default_rng(0).normal(size=(12, 2)).astype("float32")
Y = X[:, :1] ** 2
SAMPLES = 4000


@pytest.fixture(scope="module")
def model():
    keras.utils.set_random_seed(0)
    inputs = keras.Input((2,))
    hidden = tfbbb.layers.DenseVariational(3, "tanh", posterior="point")(inputs)
    outputs = tfbbb.layers.DenseVariational(1, posterior="point")(hidden)
    likelihood = tfbbb.likelihoods.Normal(scale=0.5, standardize=False)
    network = tfbbb.BayesianModel(inputs, outputs, likelihood=likelihood)
    return Laplace("full", prior_precision=0.5).fit(network, X, Y, verbose=0)


@pytest.fixture(scope="module")
def exact(model):
    """Returns mean [rows] and covariance [rows, rows] of the linearised outputs."""
    network = NetworkFunction(model)
    means = [value[0] for value in network.split(network.means())]
    rows = RowPass(network, means, model.variational_layers, X)
    derivatives = rows.derivatives(np.ones((len(X), 1, 1), "float32"))
    jacobian = np.concatenate(
        [
            derivatives.jacobian(layer, weight)[:, 0]
            for layer in model.variational_layers
            for weight in layer.variational_weights
        ],
        axis=1,
    )
    factor = np.concatenate(
        [weight.posterior.factor(weight.parameters) for weight in network.weights]
    )
    root = jacobian @ factor
    return rows.outputs[:, 0].numpy(), root @ root.T


def test_means_and_variances_are_those_of_the_jacobian(model, exact):
    mean, covariance = exact
    variance = np.diag(covariance)
    found = model.predictive(X, num_samples=SAMPLES, method="linearised", seed=0)
    # Draws come in pairs of opposite noise: the outputs are linear in it.
    np.testing.assert_allclose(found.mean[:, 0], mean, rtol=1e-4, atol=1e-5)
    # The squares of a pair are equal: half as many count.
    error = variance * np.sqrt(2 / (SAMPLES / 2))
    assert (np.abs(found.epistemic[:, 0] - variance) < 5 * error).all()
    # The network is not linear: the test can fail.
    other = model.predictive(X, num_samples=SAMPLES, method="weight", seed=0)
    assert (np.abs(other.epistemic[:, 0] - variance) > 5 * error).any()


def test_joint_samples_have_the_covariance_of_the_jacobian(model, exact):
    _, covariance = exact
    found = model.predictive(X, num_samples=16, method="linearised", seed=0)
    samples = found.joint_sample(SAMPLES, seed=1)[..., 0]
    variance = np.diag(covariance)
    error = np.sqrt((np.outer(variance, variance) + covariance**2) / SAMPLES)
    assert (np.abs(np.cov(samples.T) - covariance) < 5 * error).all()


def test_a_laplace_approximation_is_linearised_by_default(model, tmp_path):
    expected = model.predictive(X, method="linearised").variance
    weights = model.predictive(X, method="weight").variance
    assert not np.allclose(weights, expected)
    model.export_predictive(tmp_path / "exported")
    exported = tfbbb.load(tmp_path / "exported")
    np.testing.assert_allclose(exported.predictive(X).variance, expected, rtol=1e-4)
    drawn = exported.predictive(X, method="weight").variance
    np.testing.assert_allclose(drawn, weights, rtol=1e-4)
    model.save(tmp_path / "laplace.keras")
    average = tfbbb.average([model, model])
    for each in (
        model,
        model.members[0],
        keras.models.load_model(tmp_path / "laplace.keras"),
    ):
        np.testing.assert_allclose(each.predictive(X).variance, expected, rtol=1e-5)
    found = average.predictive(X).variance
    of_parts = average.predictive(X, method="linearised").variance
    np.testing.assert_array_equal(found, of_parts)
    network = tfbbb.BayesianModel.from_config(model.get_config())
    drawn = network.predictive(X, method="weight").variance
    np.testing.assert_array_equal(network.predictive(X).variance, drawn)
    with pytest.raises(ValueError, match="Average models of one kind"):
        tfbbb.average([model, network]).predictive(X)


def test_of_a_last_layer_the_network_is_linear():
    """So its means are integrated, and the other layers run once."""
    keras.utils.set_random_seed(0)
    inputs = keras.Input((2,))
    hidden = keras.layers.Dense(3, "tanh")(inputs)
    network = keras.Model(inputs, keras.layers.Dense(1)(hidden))
    found = Laplace("full", "last_layer").fit(
        network, X, Y, likelihood="normal", verbose=0
    )
    local = found.predictive(X, method="local")
    np.testing.assert_array_equal(found.predictive(X).variance, local.variance)
    linearised = found.predictive(X, SAMPLES, method="linearised").epistemic
    # The standard error of a variance of so many pairs.
    np.testing.assert_allclose(
        found.predictive(X, SAMPLES).epistemic,
        linearised,
        rtol=5 * np.sqrt(2 / (SAMPLES / 2)),
    )


def test_a_linear_network_is_that_of_drawn_weights():
    inputs = keras.Input((2,))
    outputs = tfbbb.layers.DenseVariational(1)(inputs)
    linear = tfbbb.BayesianModel(inputs, outputs, members=2)
    found = linear.predictive(X, num_samples=16, method="linearised", seed=2)
    drawn = linear.predictive(X, num_samples=16, method="weight", seed=2)
    np.testing.assert_allclose(found.mean, drawn.mean, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found.epistemic, drawn.epistemic, rtol=1e-4, atol=1e-7)


def looped(inputs):
    """Returns a sequence after a loop that its number of steps depends on."""

    def step(number, sequence):
        return number + 1, tf.tanh(sequence) * tf.cast(number + 1, sequence.dtype)

    return tf.while_loop(lambda number, _: number < 3, step, (0, inputs))[1]


LOOPS = {
    "masked GRU": lambda x: tfbbb.layers.GRUVariational(2)(
        tfbbb.layers.DenseVariational(3)(keras.layers.Masking()(x))
    ),
    "longer than unrolled": lambda x: tfbbb.layers.SimpleRNNVariational(2, "sigmoid")(
        keras.layers.UpSampling1D(9)(x)
    ),
    "while": lambda x: keras.layers.Lambda(looped, output_shape=(4, 2))(
        tfbbb.layers.DenseVariational(2)(x)
    ),
}


@pytest.mark.few(1)
@pytest.mark.parametrize("network", LOOPS.values(), ids=LOOPS)
@pytest.mark.usefixtures("compiled_functions")
def test_loops_are_linearised_as_finite_differences(network):
    keras.utils.set_random_seed(0)
    inputs = keras.Input((4, 3))
    model = keras.Model(inputs, network(inputs))
    structure = Structure.of(model)
    x = tf.constant(np.random.default_rng(1).normal(size=(2, 4, 3)), tf.float32)
    x *= tf.constant([[1.0], [1.0], [1.0], [0.0]])
    draws = 3
    means = weight_means(structure)
    steps = tf.nest.map_structure(
        lambda mean: tf.random.normal([draws, *mean.shape], stddev=0.1), means
    )

    def drawn(factor):
        weights = tf.nest.map_structure(lambda m, s: m + factor * s, means, steps)
        # Of the noise of layers that draw by themselves: there are none.
        return {**weights, "source": {}}

    def outputs(factor):
        network_pass = NetworkPass(
            model, structure, Plan(), {}, drawn(factor), draws, False
        )
        return network_pass.run(x)[0][0]

    @tf.function
    def found():
        return linearised_outputs(model, structure, x, means, drawn(1.0), draws)[0]

    # Errors of order h^4, and of rounding divided by h.
    h = 2.0**-4
    near, far = (outputs(f * h) - outputs(-f * h) for f in (1.0, 2.0))
    expected = outputs(0.0) + (8.0 * near - far) / (12.0 * h)
    np.testing.assert_allclose(found(), expected, rtol=1e-5, atol=5e-5)
    # The network is not linear: the test can fail.
    assert np.abs(outputs(1.0) - expected).max() > 1e-4
