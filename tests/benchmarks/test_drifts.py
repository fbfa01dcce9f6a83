"""Streams that drift, and the intervals that cover them or do not."""

import numpy as np
import pytest

from tests.benchmarks.programs import load, run_smoke


@pytest.fixture(scope="module")
def smoke(tmp_path_factory):
    folder = tmp_path_factory.mktemp("drifts")
    return run_smoke("drifts", folder, folder / "drifts.json")


def test_any_500_adapted_rows_cover_87_to_93_percent(smoke):
    records = smoke.select(method="adaptive")
    assert {record["drift"] for record in records} == set(load("drifts").DRIFTS)
    for record in records:
        assert 0.87 <= record["least"] <= record["greatest"] <= 0.93, record
        assert record["infinite"] == 0


def test_a_version_alone_covers_no_stream_that_drifts(smoke):
    for record in smoke.select(method="version"):
        assert (record["least"] < 0.8) == (record["drift"] != "none")
        assert record["width"] == 1.0


def test_predictions_before_the_drift_are_calibrated():
    drifts = load("drifts")
    inside = []
    for seed in range(20):
        targets, mean, stddev = drifts.stream("level", seed)
        errors = ((targets - mean) / stddev)[: drifts.NUM_ROWS // 3]
        inside.append(np.mean(np.abs(errors) < 1.6449))
    # Three standard errors of 20 000 rows.
    assert abs(np.mean(inside) - 0.9) < 3 * 0.0021
