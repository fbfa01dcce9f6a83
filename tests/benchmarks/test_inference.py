import numpy as np
import pytest

from tests.benchmarks.programs import load, run_smoke

inference = load("inference")


@pytest.fixture(scope="module")
def smoke(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inference")
    options = ("--sets", "cubic", "--methods", "Laplace full")
    return run_smoke("inference", folder, folder / "inference.json", *options)


def test_an_approximation_around_a_trained_mode_does_better_than_nothing(smoke):
    (record,) = smoke.records
    # The test rows reach beyond the training rows, where the cubic is steep.
    _, targets = load("curves").CURVES["cubic"].test_rows()
    assert record["rmse"] < targets.std()
    assert record["peak_mib"] >= 0.0


def test_the_distance_is_that_of_shifted_distributions(smoke):
    (reference,) = smoke.records
    assert inference.distance(reference, reference) == 0.0
    moved = {**reference, "quantiles": np.asarray(reference["quantiles"]) + 3.0}
    expected = 3.0 / reference["target_scale"]
    assert inference.distance(moved, reference) == pytest.approx(expected)
    assert "distance from NUTS" in inference.report(smoke)
