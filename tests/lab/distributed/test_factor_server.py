"""Messages that are lost, late, doubled or out of order never count twice."""

import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.lab.distributed.linear_partitions import (
    NOISE,
    LinearRegression,
    drawn_rows,
    posterior,
    standard_prior,
)
from tfbbb.lab.distributed.factor_server import (
    LEAST_PRECISION,
    FactorServer,
    Update,
)
from tfbbb.lab.distributed.linear_rows import LinearRows
from tfbbb.lab.distributed.partition import Partition
from tfbbb.lab.distributed.worker import PartitionWorker
from tfbbb.lab.inference.natural_normal import NaturalNormal

PARTITIONS = 3


class Network:
    """Partitions and a server whose messages a test delivers as it likes."""

    def __init__(self, covariance, step):
        self.prior = standard_prior(2, covariance)
        self.x, self.y = drawn_rows(30, 2)
        self.step = step
        self.server = FactorServer(self.prior, PARTITIONS)
        self.updates = []
        self.partitions = [self.new_partition(k) for k in range(PARTITIONS)]

    def new_partition(self, k):
        rows = slice(k, None, PARTITIONS)
        return Partition(LinearRows(self.x[rows], self.y[rows], NOISE, self.prior))

    def send_task(self, k):
        task = self.server.task(k, self.step)
        self.updates.append((k, self.partitions[k].update(task)))

    def act(self, action, k, place):
        if action == "send":
            self.send_task(k)
        elif action == "lose the task":
            self.server.task(k, self.step)
        elif action == "kill":
            self.partitions[k] = self.new_partition(k)
            self.server.restart(k)
        elif self.updates:
            place %= len(self.updates)
            message = self.updates[place]
            if action != "deliver a copy":
                del self.updates[place]
            if action != "lose the update":
                self.server.receive(*message)

    def check(self):
        product = self.prior
        for factor in self.server.factors:
            product = product + factor
        np.testing.assert_allclose(product.linear, self.server.q.linear, atol=1e-9)
        np.testing.assert_allclose(product.precision, self.server.q.precision)

    def deliver_all(self):
        """One update of each partition, delivered at once."""
        for k in range(PARTITIONS):
            self.send_task(k)
            assert self.server.receive(*self.updates.pop())


ACTIONS = st.tuples(
    st.sampled_from(
        [
            *("send", "send", "deliver", "deliver", "deliver a copy"),
            *("lose the task", "lose the update", "kill"),
        ]
    ),
    st.integers(0, PARTITIONS - 1),
    st.integers(0, 100),
)


@pytest.mark.parametrize("covariance", ["full", "factorised"])
@settings(max_examples=40, deadline=None, derandomize=True)
@given(actions=st.lists(ACTIONS, max_size=60), step=st.sampled_from([1.0, 0.5]))
def test_q_stays_the_product_of_the_factors(covariance, actions, step):
    network = Network(covariance, step)
    for action in actions:
        network.act(*action)
        network.check()
    # A worker that had another factor than the server would now spoil q for ever.
    for _ in range(80):
        network.deliver_all()
    network.check()
    mean, spread = network.server.q.moments()
    expected = posterior(network.x, network.y, covariance)
    np.testing.assert_allclose(mean, expected[0], rtol=1e-6)
    np.testing.assert_allclose(spread, expected[1], rtol=1e-6)


def opened(prior=None):
    """A server with an open task of partition 0."""
    server = FactorServer(prior or standard_prior(2, "factorised"), PARTITIONS)
    return server, server.task(0)


def change(linear, precision):
    return NaturalNormal(np.asarray(linear, float), np.asarray(precision, float))


def test_an_update_counts_once():
    server, task = opened()
    update = Update(task.number, change([1.0, 1.0], [2.0, 2.0]))
    assert server.receive(0, update)
    assert not server.receive(0, update)
    np.testing.assert_array_equal(server.q.precision, [3.0, 3.0])
    assert server.ignored == 1


def test_an_update_from_before_a_restart_does_not_count():
    server, task = opened()
    server.restart(0)
    assert not server.receive(0, Update(task.number, change([1, 1], [2, 2])))
    server.task(0)
    assert not server.receive(0, Update(task.number, change([1, 1], [2, 2])))
    np.testing.assert_array_equal(server.q.precision, [1.0, 1.0])


def test_a_restarted_worker_gets_its_accepted_factor():
    server, task = opened()
    server.receive(0, Update(task.number, change([1, 1], [2, 2])))
    assert server.task(0).factor is None
    server.restart(0)
    np.testing.assert_array_equal(server.task(0).factor.precision, [2.0, 2.0])


def test_q_keeps_a_share_of_the_prior_precision():
    server, task = opened()
    server.receive(0, Update(task.number, change([1.0, 1.0], [-3.0, 2.0])))
    np.testing.assert_allclose(server.q.precision, [LEAST_PRECISION, 3.0])
    # The mean's part is shortened by the same share.
    np.testing.assert_allclose(server.q.linear, [(1 - LEAST_PRECISION) / 3.0, 1.0])
    assert server.shortened == 1
    np.testing.assert_allclose(server.task(0).factor.precision, [-0.9, 2.0])


def test_a_change_that_makes_a_full_q_improper_is_refused():
    server, task = opened(standard_prior(2, "full"))
    improper = change([1.0, 1.0], [[0.0, -2.0], [-2.0, 0.0]])
    server.receive(0, Update(task.number, improper))
    np.testing.assert_array_equal(server.q.precision, np.eye(2))
    assert server.shortened == 2


class RowsThatWant:
    """Rows whose optimum is always the same q; they keep the cavity they were given."""

    def __init__(self, found):
        self.prior = standard_prior(2, "factorised")
        self.found = found

    def optimum(self, cavity, start, seed):
        self.cavity = cavity
        return self.found


def test_a_weight_with_a_weak_cavity_withholds_its_change():
    rows = RowsThatWant(change([8.0, 8.0], [4.0, 4.0]))
    server = FactorServer(rows.prior, 2)
    # The other partition's negative factor leaves the cavity of partition 0 with the
    # precision 1 - 0.95 in the first weight.
    for k, precision in ((0, [5.0, 1.0]), (1, [-0.95, 1.0])):
        server.receive(k, Update(server.task(k).number, change([6, 0], precision)))
    server.restart(0)
    update = Partition(rows).update(server.task(0))
    assert update.withheld == 1
    np.testing.assert_array_equal(update.change.linear[0], 0.0)
    np.testing.assert_array_equal(update.change.precision[0], 0.0)
    # Training saw a tenth of the prior around the mean of q, and the cavity of the
    # other weight as it is.
    np.testing.assert_allclose(rows.cavity.precision, [LEAST_PRECISION, 2.0])
    mean = server.q.linear[0] / server.q.precision[0]
    np.testing.assert_allclose(rows.cavity.linear[0], LEAST_PRECISION * mean)
    np.testing.assert_allclose(update.change.precision[1], 4.0 - 2.0 - 1.0)


def test_a_worker_without_a_factor_asks_for_a_restart():
    server, _ = opened()
    server.receive(0, Update(server.task(0).number, change([1, 1], [2, 2])))
    rows = RowsThatWant(change([1.0, 1.0], [2.0, 2.0]))
    with pytest.raises(RuntimeError, match="does not know its factor"):
        Partition(rows).update(server.task(0))


def test_a_worker_keeps_no_rows_beside_those_of_the_model():
    rows = [np.ones((3, 2)), np.ones(3)]
    kept = weakref.ref(rows[0])
    worker = PartitionWorker(0, lambda: (rows.pop(0), rows.pop(0)))
    worker.load()
    worker.prepare(LinearRegression(standard_prior(2, "factorised")))
    assert kept() is None
