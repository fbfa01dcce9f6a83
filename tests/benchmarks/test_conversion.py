"""Networks and their twins are scored alike, on rows that none was trained on."""

import numpy as np
import pytest

from tests.benchmarks.programs import load, run_smoke

conversion = load("conversion")


@pytest.fixture(scope="module")
def smoke(tmp_path_factory):
    folder = tmp_path_factory.mktemp("conversion")
    arguments = ("--networks", "MLP,two outputs")
    return run_smoke("conversion", folder, folder / "conversion.json", *arguments)


def test_smoke_run_compares_twins_with_their_networks(smoke):
    methods = {(record["network"], record["method"]) for record in smoke.records}
    assert len(methods) == len(smoke.records) == 4
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
