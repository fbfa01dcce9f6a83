"""Linear regression in partitions, without a network, and its exact posterior."""

from dataclasses import dataclass

import numpy as np

from tfbbb.lab.distributed.linear_rows import LinearRows
from tfbbb.lab.distributed.run import Run
from tfbbb.lab.distributed.worker import PartitionWorker
from tfbbb.lab.distributed.workers import InProcessWorkers
from tfbbb.lab.inference.natural_normal import NaturalNormal

NOISE = 0.5


@dataclass(frozen=True)
class LinearRegression:
    """The argument of `prepare`."""

    prior: NaturalNormal

    def local_rows(self, x, y, partition):
        return LinearRows(x, y, NOISE, self.prior)


def drawn_rows(size, num_weights, seed=0):
    """Rows with correlated inputs."""
    generator = np.random.default_rng(seed)
    mixing = np.eye(num_weights) + 0.5
    x = generator.normal(size=(size, num_weights)) @ mixing
    y = x @ generator.normal(size=num_weights)
    return x, y + NOISE * generator.normal(size=size)


def standard_prior(num_weights, covariance):
    ones = np.ones(num_weights)
    spread = np.diag(ones) if covariance == "full" else ones
    return NaturalNormal.from_moments(np.zeros(num_weights), spread)


def posterior(x, y, covariance):
    """Mean and covariance of the exact posterior, or of the best factorised q.

    The best factorised q has the exact means, and the diagonal of the precision matrix
    (Bishop 2006, section 10.1.2).
    """
    precision = np.eye(x.shape[1]) + x.T @ x / NOISE**2
    mean = np.linalg.solve(precision, x.T @ y / NOISE**2)
    if covariance == "full":
        return mean, np.linalg.inv(precision)
    return mean, 1.0 / np.diag(precision)


def run_in_process(parts, covariance, rounds, worker=PartitionWorker):
    """Runs rounds until nothing changes; returns the run."""
    prior = standard_prior(parts[0][0].shape[1], covariance)
    with InProcessWorkers(worker, parts) as workers:
        run = Run(workers, len(parts))
        run.ask_all("load")
        run.begin(LinearRegression(prior), prior, step=1.0)
        for _ in range(rounds):
            run.one_round()
            if run.changes[-1] <= 1e-9:
                break
    return run
