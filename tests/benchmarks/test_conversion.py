"""Networks and their twins are scored alike, on rows that none was trained on."""

import keras
import numpy as np
import pytest
from scipy import stats

import tfbbb
from tests.benchmarks.programs import load, run_smoke

conversion = load("conversion")


@pytest.fixture(scope="module")
def smoke(tmp_path_factory):
    folder = tmp_path_factory.mktemp("conversion")
    arguments = ("--networks", "MLP,two outputs")
    return run_smoke("conversion", folder, folder / "conversion.json", *arguments)


def test_smoke_run_compares_twins_with_their_networks(smoke):
    methods = {(record["network"], record["method"]) for record in smoke.records}
    assert len(methods) == len(smoke.records) == 6
    compared = conversion.compare(smoke)
    assert {each.on for each in compared} == {"MLP", "two outputs"}
    assert all(np.isfinite(each.margin) for each in compared)
    assert "Of 2 twins" in conversion.report(smoke)


def test_scores_of_a_network_are_those_of_its_outputs(smoke):
    _, network, _ = conversion.trained("MLP", 0, 1)
    _, (x, y) = conversion.split("MLP", 0)
    probabilities = network.predict(x, verbose=0)
    (record,) = smoke.select(network="MLP", method="network")
    # Training is repeated, and sums of floats depend on the threads.
    expected = np.log(probabilities[np.arange(len(y)), y]).mean()
    assert record["log_likelihood"] == pytest.approx(expected, abs=1e-3)
    error = np.mean(probabilities.argmax(axis=1) != y)
    assert record["error"] == pytest.approx(error, abs=3 / len(y))


def test_training_rows_are_no_test_rows():
    (x, _), (x_test, _) = conversion.split("GRU", 1)
    assert len(x) == conversion.ROWS
    assert not {row.tobytes() for row in x} & {row.tobytes() for row in x_test}


def test_scores_of_numbers_are_those_of_their_normal():
    random = np.random.default_rng(0)
    mean = random.normal(size=(500, 1)).astype("float32")
    y = mean + random.normal(scale=2.0, size=mean.shape)
    network = keras.Sequential(
        [keras.Input((1,)), keras.layers.Dense(1, kernel_initializer="ones")]
    )
    twin = tfbbb.convert(
        network,
        likelihood=tfbbb.likelihoods.Normal(scale=2.0, standardize=False),
        posterior="point",
        bias_posterior="point",
    )
    prediction = twin.predictive(mean, num_samples=2)
    scores = conversion.prediction_scores(prediction, y, "normal")
    density = stats.norm(mean, 2.0).logpdf(y).mean()
    assert scores["log_likelihood"] == pytest.approx(density, rel=1e-5)
    assert scores["error"] == pytest.approx(np.sqrt(np.mean((y - mean) ** 2)))
    # The deviation of an empirical distribution of 500 from its own, on average.
    assert scores["calibration_error"] < 3 * 0.5 / np.sqrt(500)
