"""Random features against the radial kernel, and processes of them in closed form."""

import keras
import numpy as np
import pytest
from keras.src import testing
from scipy.spatial.distance import cdist

import tfbbb
from tfbbb.inference import Laplace
from tfbbb.layers import DenseVariational, RandomFeatures

GENERATOR = np.random.default_rng(0)
X = GENERATOR.uniform(-2.0, 2.0, size=(40, 1)).astype("float32")
Y = np.sin(2.0 * X) + 0.3 * GENERATOR.normal(size=X.shape).astype("float32")
GRID = np.linspace(-4.0, 4.0, 16, dtype="float32")[:, np.newaxis]
NOISE, SCALE, LENGTH = 0.3, 1.5, 0.7
# The relative error of a variance of so many draws in pairs of opposite noise, 4 sigma.
DRAWS = 2000
ERROR = 4.0 * (2.0 / (DRAWS / 2)) ** 0.5


class KerasContractTest(testing.TestCase):
    def test_meets_the_contract_of_a_keras_layer(self):
        for shape in ((2, 3), (2, 4, 3)):
            self.run_layer_test(
                RandomFeatures,
                init_kwargs={"units": 5, "length_scale": 2.0, "seed": 1},
                input_shape=shape,
                expected_output_shape=(*shape[:-1], 5),
                expected_num_trainable_weights=0,
                expected_num_non_trainable_weights=2,
                expected_num_seed_generators=0,
                expected_num_losses=0,
                supports_masking=True,
            )


def kernel(first, second):
    """Returns the radial kernel, [rows, rows]."""
    distances = cdist(np.asarray(first, float), np.asarray(second, float))
    return np.exp(-0.5 * (distances / LENGTH) ** 2)


def process(prior):
    """Returns mean and variance of a Gaussian process at `GRID`, [16] each."""
    solved = np.linalg.solve(prior(X, X) + NOISE**2 * np.eye(len(X)), prior(X, GRID))
    variance = np.diag(prior(GRID, GRID)) - np.sum(prior(X, GRID) * solved, axis=0)
    return solved.T @ np.asarray(Y[:, 0], float), variance


def regression(units):
    """Returns the closed form of a model of random features, and these."""
    features = RandomFeatures(units, LENGTH, seed=3)
    last = DenseVariational(
        1, use_bias=False, posterior="point", prior=tfbbb.priors.Normal(SCALE)
    )
    network = keras.Sequential([keras.Input((1,)), features, last])
    likelihood = tfbbb.likelihoods.Normal(scale=NOISE, standardize=False)
    model = tfbbb.BayesianModel(network, likelihood=likelihood)
    phi = np.asarray(features(X), float)
    ridge = phi.T @ phi + (NOISE / SCALE) ** 2 * np.eye(units)
    last.kernel.variables["mean"].assign(np.linalg.solve(ridge, phi.T @ Y))
    method = Laplace("kron", "last_layer", prior_precision=None)
    return method.fit(model, X, Y, verbose=0), features


def classifier():
    """Returns a trained network over spectrally normalised layers, and its rows."""
    keras.utils.set_random_seed(0)
    x = GENERATOR.normal(size=(90, 4)).astype("float32")
    y = (x[:, 0] > 0).astype(int) + (x[:, 1] > 0)
    normalised = keras.layers.SpectralNormalization
    network = keras.Sequential(
        [
            keras.Input((4,)),
            normalised(keras.layers.Dense(16, "relu")),
            RandomFeatures(64, 0.5),
            keras.layers.Dense(3, use_bias=False),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    network.compile(keras.optimizers.Adam(0.02), loss)
    network.fit(x, y, epochs=10, verbose=0)
    return network, x, y


@pytest.fixture(scope="module")
def wide():
    """Returns a regression on so many features that their kernel is near the radial."""
    return regression(1000)[0]


@pytest.fixture(scope="module")
def fitted():
    network, x, y = classifier()
    method = Laplace("kron", "last_layer")
    return method.fit(network, x, y, likelihood="categorical", verbose=0), x


def test_products_estimate_the_radial_kernel():
    units = 20_000
    x = GENERATOR.normal(size=(12, 3)).astype("float32")
    features = np.asarray(RandomFeatures(units, LENGTH, seed=0)(x), float)
    expected = kernel(x, x)
    # Of 2 cos(a + b) cos(a' + b): Var = (1 + k^4) / 2 + ... <= 1 (Sutherland &
    # Schneider 2015, proposition 1).
    error = np.sqrt((1.0 + 0.5 * expected**4 - expected**2) / units)
    assert (np.abs(features @ features.T - expected) < 4.5 * error + 1e-5).all()


def test_a_seed_fixes_frequencies_and_phases():
    first, again, other = (
        np.asarray(RandomFeatures(8, seed=seed)(X)) for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)


def test_half_precision_keeps_features_of_large_inputs():
    x = np.array([[100.0], [200.0]], "float16")
    exact = RandomFeatures(50, 0.1, seed=0)(x.astype("float32"))
    half = RandomFeatures(50, 0.1, seed=0, dtype="mixed_float16")(x)
    assert half.dtype == "float16"
    np.testing.assert_allclose(half, exact, atol=1e-3)


def test_laplace_is_the_process_of_the_features_kernel():
    model, features = regression(300)

    def prior(first, second):
        left, right = (np.asarray(features(x), float) for x in (first, second))
        return SCALE**2 * left @ right.T

    mean, variance = process(prior)
    predicted = model.predictive(GRID, num_samples=DRAWS)
    np.testing.assert_allclose(predicted.mean[:, 0], mean, atol=1e-3)
    np.testing.assert_allclose(predicted.epistemic[:, 0], variance, rtol=ERROR)


def test_many_features_give_the_process_of_the_radial_kernel(wide):
    mean, variance = process(lambda a, b: SCALE**2 * kernel(a, b))
    predicted = wide.predictive(GRID, num_samples=DRAWS)
    # The kernel has a standard error of 0.03, times SCALE^2.
    near = {"atol": 0.1, "rtol": ERROR}
    np.testing.assert_allclose(predicted.mean[:, 0], mean, **near)
    found = np.sqrt(predicted.epistemic[:, 0])
    np.testing.assert_allclose(found, np.sqrt(variance), **near)


def test_epistemic_variance_far_away_is_the_prior_one(wide):
    far = np.array([[50.0], [-80.0], [1000.0]], "float32")
    found = wide.predictive(far, num_samples=DRAWS).epistemic[:, 0]
    # Beside the draws, phi^T phi has a standard error of 1 / sqrt(2 * 1000).
    np.testing.assert_allclose(found, SCALE**2, rtol=ERROR + 0.09)
    assert wide.predictive(X).epistemic.max() < NOISE**2


def test_classes_far_from_the_rows_are_uncertain(fitted):
    model, x = fitted
    near, far = (model.predictive(rows, seed=0) for rows in (x, 30.0 * x))
    assert far.mutual_information.mean() > 2.0 * near.mutual_information.mean()
    assert far.entropy.mean() > near.entropy.mean()


def test_saved_and_exported_models_predict_alike(fitted, tmp_path):
    model, x = fitted
    expected = model.predictive(x, num_samples=64, seed=1)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    again = loaded.predictive(x, num_samples=64, seed=1)
    np.testing.assert_allclose(again.probabilities, expected.probabilities, rtol=1e-4)
    model.export_predictive(tmp_path / "1", num_samples=64)
    exported = tfbbb.load(tmp_path / "1").predictive(x)
    expected = model.predictive(x, num_samples=64)
    np.testing.assert_allclose(
        exported.probabilities, expected.probabilities, rtol=1e-4
    )
    np.testing.assert_allclose(
        exported.mutual_information, expected.mutual_information, rtol=1e-3, atol=1e-6
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"units": 0}, "`units` must be a positive integer. Received: units=0"),
        ({"length_scale": -1.0}, "`length_scale` must be a positive finite number"),
        ({"seed": 0.5}, "`seed` must be an integer. Received: seed=0.5"),
    ],
)
def test_wrong_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        RandomFeatures(**{"units": 4, **arguments})
