import keras
import numpy as np
import pytest

import tfbbb
from tfbbb.inference.batches import Batches
from tfbbb.inference.network_function import NetworkFunction
from tfbbb.model.conversion import with_posterior
from tfbbb.model.inference_result import InferenceResult

X = np.random.default_rng(0).normal(size=(40, 3)).astype("float32")
Y = 2.0 * X[:, :1] + 1.0


@pytest.fixture(scope="module")
def trained():
    keras.utils.set_random_seed(0)
    inputs = keras.Input((3,))
    hidden = tfbbb.layers.DenseVariational(5, activation="tanh")(inputs)
    model = tfbbb.BayesianModel(inputs, tfbbb.layers.DenseVariational(1)(hidden))
    model.compile()
    model.fit(X, Y, epochs=2, verbose=0)
    return model


def test_log_likelihood_and_prior_are_those_of_the_loss(trained):
    points = with_posterior(trained, "point")
    points.compile()
    network = NetworkFunction(points)
    values = network.split(network.means())
    _, nll, kl = points.evaluate(X, Y, verbose=0)
    log_likelihood = network.log_likelihood(values, X, Y).numpy()
    assert -log_likelihood.mean() == pytest.approx(nll, rel=1e-5)
    assert -float(network.log_prior(values)[0]) == pytest.approx(kl, rel=1e-5)


def test_the_result_of_an_inference_is_saved_and_removed_by_training(trained, tmp_path):
    model = with_posterior(trained, "mean_field_normal")
    model.inference = InferenceResult("Laplace()", -3.5, {"condition": 2.0})
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.log_evidence == -3.5
    assert loaded.diagnostics == {"condition": 2.0}
    loaded.compile()
    loaded.fit(X, Y, verbose=0)
    assert loaded.log_evidence is None
    assert loaded.diagnostics == {}


@pytest.mark.parametrize("batch_size", [7, 40])
def test_batches_read_all_rows_in_every_pass(batch_size):
    batches = Batches({"x": X}, Y, np.arange(40.0), batch_size)
    for _ in range(2):
        found = list(batches)
        assert len(found) == len(batches)
        np.testing.assert_array_equal(np.concatenate([b[0]["x"] for b in found]), X)
        np.testing.assert_array_equal(np.concatenate([b[1] for b in found]), Y)
        np.testing.assert_array_equal(
            np.concatenate([b[2] for b in found]), np.arange(40.0)
        )
    assert batches.size == 780.0
