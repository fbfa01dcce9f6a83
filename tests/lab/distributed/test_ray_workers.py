"""Actors of a real Ray cluster on this machine, which die."""

import importlib.util
import os
import signal

import numpy as np
import pytest

from tests.lab.distributed.linear_partitions import (
    NOISE,
    LinearRegression,
    drawn_rows,
    posterior,
    standard_prior,
)
from tfbbb.lab.distributed.ray_workers import RayWorkers
from tfbbb.lab.distributed.run import Run
from tfbbb.lab.distributed.worker import PartitionWorker
from tfbbb.lab.distributed.workers import LostWorker


@pytest.fixture(scope="module", autouse=True)
def cluster():
    """Starts Ray once for the tests of this module."""
    if importlib.util.find_spec("ray") is None:
        reason = "Ray is not installed: `pip install 'tfbbb[ray]'`."
        (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)
    import ray

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray.init("local", num_cpus=3, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


class MortalWorker(PartitionWorker):
    """Dies by SIGKILL in some updates: before its work, or when the work is done."""

    def update(self, task):
        deaths = {(0, 1): "before", (1, 3): "before", (1, 5): "after", (2, 2): "after"}
        when = deaths.get((self._index, task.number))
        if when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        update = super().update(task)
        if when == "after":
            os.kill(os.getpid(), signal.SIGKILL)
        return update


class AlwaysDyingWorker(PartitionWorker):
    def update(self, task):
        os.kill(os.getpid(), signal.SIGKILL)


def started(worker, parts):
    workers = RayWorkers(worker, parts, "auto")
    run = Run(workers, len(parts))
    run.ask_all("load")
    prior = standard_prior(parts[0][0].shape[1], "factorised")
    run.begin(LinearRegression(prior), prior, step=0.7)
    return workers, run


@pytest.mark.slow
def test_killed_actors_are_restarted_from_their_factors():
    x, y = drawn_rows(60, 3)
    parts = [(x[k::3], y[k::3]) for k in range(3)]
    workers, run = started(MortalWorker, parts)
    with workers:
        for _ in range(80):
            run.one_round()
            if run.changes[-1] <= 1e-9:
                break
    assert run.restarts == 4
    product = run.server.prior
    for factor in run.server.factors:
        product = product + factor
    np.testing.assert_allclose(product.precision, run.server.q.precision)
    mean, variances = run.server.q.moments()
    expected = posterior(x, y, "factorised")
    np.testing.assert_allclose(mean, expected[0], rtol=1e-6)
    np.testing.assert_allclose(variances, expected[1], rtol=1e-6)


@pytest.mark.slow
def test_a_worker_that_always_dies_ends_the_run():
    x, y = drawn_rows(10, 2)
    workers, run = started(AlwaysDyingWorker, [(x, y)])
    with workers, pytest.raises(RuntimeError, match="died 3 times in a row"):
        run.one_round()


def test_a_table_is_trained_on_actors():
    import pyarrow as pa

    from tfbbb.training import train_table

    x, y = drawn_rows(100, 1)
    table = pa.table({"x": x[:, 0], "y": y})
    spec = {
        "target": "y",
        "model": {
            "hidden_units": [],
            "numeric_encoding": "standardized",
            "likelihood": {"name": "normal", "scale": NOISE},
        },
        "training": {"partitions": 2, "epochs": 60},
    }
    here, there = (train_table(table, spec, ray_address=a) for a in (None, "auto"))
    first, second = (
        np.concatenate([np.ravel(v) for w in weights for v in (w.mean, w.stddev)])
        for t in (here, there)
        for weights in [t.model.variational_layers[0].variational_weights]
    )
    # Both are at the optimum for all rows, in whatever order the actors answered.
    np.testing.assert_allclose(first, second, atol=1e-3)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("NodeDiedError", ["the node has died"]),
        ("ObjectLostError", ["00ff", None, ""]),
        ("OutOfMemoryError", ["the node has run out of memory"]),
        ("WorkerCrashedError", []),
    ],
)
def test_a_lost_answer_is_a_lost_worker(name, arguments, monkeypatch):
    import ray

    def lost(reference):
        raise getattr(ray.exceptions, name)(*arguments)

    with RayWorkers(PartitionWorker, [drawn_rows(10, 2)], "auto") as workers:
        workers.start(0)
        workers.submit(0, "load")
        monkeypatch.setattr(ray, "get", lost)
        partition, method, answer = workers.next()
    assert (partition, method) == (0, "load")
    assert isinstance(answer, LostWorker)
    assert str(answer)


def test_an_error_of_a_worker_is_its_own_error():
    x, y = drawn_rows(10, 2)
    with (
        RayWorkers(PartitionWorker, [(x, y), (x[:0], y[:0])], "auto") as workers,
        pytest.raises(ValueError, match="0 rows in partition 1"),
    ):
        Run(workers, 2).ask_all("load")


def test_an_address_without_a_cluster_is_refused(monkeypatch):
    import ray

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    for address in ("127.0.0.1:1", "ray://127.0.0.1:1", "nonsense"):
        with pytest.raises(ConnectionError, match=f"ray_address='{address}'"):
            RayWorkers(PartitionWorker, [], address)
