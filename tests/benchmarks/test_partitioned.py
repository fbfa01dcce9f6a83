import itertools

import numpy as np
import pytest
from sklearn.datasets import load_diabetes

from tests.benchmarks.programs import load, run_smoke

partitioned = load("partitioned")
simulation = load("straggler_simulation")


@pytest.fixture(scope="module")
def smoke(tmp_path_factory):
    folder = tmp_path_factory.mktemp("partitioned")
    diabetes = load_diabetes()
    order = np.random.default_rng(0).permutation(len(diabetes.target))
    np.savez(
        folder / "diabetes.npz",
        data=np.column_stack([diabetes.data, diabetes.target]),
        index_features=np.arange(10),
        index_target=np.array(10),
        train_idx=[order[44:]],
        test_idx=[order[:44]],
    )
    return run_smoke("partitioned", folder, folder / "partitioned.json")


def test_every_part_has_records(smoke):
    parts = {name: smoke.select(part=name) for name in partitioned.PARTS}
    # One machine once, the other methods in both arrangements.
    assert [len(parts[name]) for name in partitioned.PARTS] == [5, 3, 3, 6]
    for record in parts["scores"]:
        assert np.isfinite(record["log_likelihood"])
    per_round = [r["bytes_sent"] / r["rounds"] for r in parts["costs"]]
    partitions = [r["partitions"] for r in parts["costs"]]
    np.testing.assert_allclose(np.divide(per_round, partitions), per_round[0])
    assert all(record["reached"] for record in parts["stragglers"])
    report = partitioned.report(smoke)
    assert "less that of one machine" in report
    assert "simulated workers" in report


def test_partitions_by_target_have_separate_ranges():
    y = np.random.default_rng(0).normal(size=100)
    parts = partitioned.arranged(y, "by target", 10)
    for left, right in itertools.pairwise(parts):
        assert y[left].max() <= y[right].min()


def test_a_simulated_cluster_with_faults_loses_some_updates():
    problem = simulation.regression(10, rows=50, weights=5)
    faults = simulation.Faults(slow=0.2, lost=0.2, doubled=0.2, deaths=0.05)
    cluster = simulation.SimulatedCluster(problem, faults, synchronous=False, step=0.5)
    assert cluster.run(tolerance=1e-5, most_updates=10_000)
    assert cluster.server.ignored > 0
    assert cluster.deaths > 0
