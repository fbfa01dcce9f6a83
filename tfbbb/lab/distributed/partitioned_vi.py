"""Partitioned variational inference: rows on separate machines, one posterior."""

from collections.abc import Callable, Sequence
from typing import Literal

import keras
import numpy as np

from tfbbb.base.numbers import (
    choice,
    fraction,
    int32,
    positive_integer,
    positive_number,
)
from tfbbb.inference.method import InferenceMethod
from tfbbb.lab.distributed.network_rows import copied_model
from tfbbb.lab.distributed.problems import (
    LinearProblem,
    NetworkProblem,
    Problem,
    is_linear,
)
from tfbbb.lab.distributed.rows import Source
from tfbbb.lab.distributed.run import Run
from tfbbb.lab.distributed.worker import PartitionWorker
from tfbbb.lab.distributed.workers import InProcessWorkers, Workers
from tfbbb.lab.inference.damping import SMALLEST_STEP, has_stagnated
from tfbbb.model.bayesian_model import BayesianModel

# The default damping where partitions compute at the same time, from the same q; and
# that of networks, whose partitions compute one after the other.
_DAMPING_AT_ONCE = 0.5
_DAMPING_IN_TURN = 0.25


class PartitionedVI(InferenceMethod):
    """Variational inference on rows in K separate partitions (Bui et al. 2018).

    q is the prior times one normal factor for each partition, which stands for the
    likelihood of its rows:

        q(w) = p(w) prod_k t_k(w)

    A partition trains on its rows with the *cavity* `q / t_k` as its prior,

        q_k = argmax  sum_{i in k} E_q_k[log p(y_i | x_i, w)] - KL(q_k || q / t_k)

    and sends only the change of its factor, in natural parameters (precision, and
    precision times mean), damped:

        t_k <- t_k (q_k / q)^(1 - damping)

    Partitions are asynchronous: each starts from the q that is there when it is ready.
    Where no factor changes any more, q is an optimum of the evidence lower bound on all
    rows, however they are split (Ashman et al. 2022).

    Linear regression with `Normal(scale=...)` has updates in closed form. It is exact
    with `covariance="full"`; with `"factorised"` q is the optimum of `CAVI` on all
    rows. Networks need `mean_field_normal` posteriors and normal priors, and train by
    Adam. A learned noise is a point: see `tfbbb.lab.distributed.network_rows`.

    With `ray_address` each partition is a Ray actor, on any machine of the cluster. An
    actor that dies is started again with its last accepted factor; no change counts
    twice. Without it, partitions live in this process and compute one after the other.

    Example:

    >>> import keras, numpy as np, tfbbb
    >>> from tfbbb.lab.distributed import PartitionedVI, split_rows
    >>> x = np.random.default_rng(0).normal(size=(400, 2))
    >>> y = x @ [1.0, -2.0] + 0.1 * np.random.default_rng(1).normal(size=400)
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(1, use_bias=False)(inputs)
    >>> likelihood = tfbbb.likelihoods.Normal(scale=0.1, standardize=False)
    >>> network = tfbbb.BayesianModel(inputs, outputs, likelihood=likelihood)
    >>> partitions = split_rows(x, y, partitions=4)
    >>> model = PartitionedVI("full").fit(network, partitions, verbose=0)
    >>> model.diagnostics["converged"]
    True
    >>> model.predictive(x[:3]).mean.shape
    (3, 1)

    Args:
        covariance: `"factorised"`, or `"full"` for linear regression.
        rounds: Most rounds. A round ends when every partition has updated its factor;
            partitions that are faster than others do so several times.
        epochs: Passes over the rows of a partition in one update of a network.
        batch_size: Rows of a step of a network.
        learning_rate: Learning rate of Adam at the start of each update.
        damping: Share of the old natural parameters in the new factor, from 0 to below
            1. None for 0.5 where partitions compute at the same time; where one
            computes at a time, for 0 in closed form and 0.25 for a network: undamped,
            the partition that has updated last would pull it to its own rows. Where
            the changes of q stay the same for ten rounds, the step is halved.
        tolerance: Largest change of means (in standard deviations) and of logarithms of
            variances in a round that counts as converged.
        ray_address: None for this process. `"local"` starts Ray on this machine,
            `"auto"` uses the running cluster, `"host:port"` the cluster at an address.
            Needs `pip install 'tfbbb[ray]'`.
        seed: Seed of the order of the rows.

    Raises:
        ValueError: An argument is out of range.
    """

    def __init__(
        self,
        covariance: Literal["factorised", "full"] = "factorised",
        rounds: int = 50,
        epochs: int = 50,
        batch_size: int = 32,
        learning_rate: float = 0.01,
        damping: float | None = None,
        tolerance: float = 1e-7,
        ray_address: str | None = None,
        seed: int = 0,
    ):
        self.covariance = choice("covariance", covariance, ("factorised", "full"))
        self.rounds = positive_integer("rounds", rounds)
        self.epochs = positive_integer("epochs", epochs)
        self.batch_size = positive_integer("batch_size", batch_size)
        self.learning_rate = positive_number("learning_rate", learning_rate)
        self.damping = None if damping is None else fraction("damping", damping)
        self.tolerance = positive_number("tolerance", tolerance)
        self.ray_address = ray_address
        self.seed = int32("seed", seed, least=0)

    def fit(
        self,
        model: BayesianModel,
        partitions: Sequence[Source],
        *,
        verbose: int = 1,
        should_stop: Callable[[int, float], bool] = lambda rounds, change: False,
    ) -> BayesianModel:
        """Returns a model with the posterior of the rows of all partitions.

        The diagnostics have `converged`, `rounds`, `updates`, the `changes` of q in
        each round, `bytes_sent` (to and from the partitions, without rows and model),
        `restarts`, `ignored_updates`, and the numbers of weights whose change was
        `withheld` (cavity too weak) or `shortened` (too little precision left in q).

        Args:
            model: A `BayesianModel`, which stays as it is. If its likelihood has no
                shift and scale of the targets yet, each partition sends its targets
                once; call `model.likelihood.adapt(y)` with a sample of them to avoid
                this.
            partitions: The rows of each partition, (x, y), as `split_rows` returns
                them; or functions without arguments that return them, which run where
                the partition lives, such as `functools.partial(read, path)`.
            verbose: 1 for a progress bar, 0 for none.
            should_stop: Called after each round with the number of rounds and the
                largest change of q in this one; True ends the training with the
                present q.

        Raises:
            ValueError: The model is not supported, or a partition has no rows.
            ConnectionError: No Ray cluster answers.
            RuntimeError: A worker has died three times in a row.
        """
        if not isinstance(model, BayesianModel):
            raise ValueError(
                "`model` must be a `tfbbb.BayesianModel`; see `tfbbb.convert`. "
                f"Received: model of type {type(model).__name__}"
            )
        if not len(partitions):
            raise ValueError(
                "There is nothing to train on. Received: an empty list of partitions"
            )
        # Refuses what is not supported before workers start.
        self._problem(model)
        model = copied_model(model)
        with self._workers(partitions) as workers:
            run = Run(workers, len(partitions))
            rows = sum(run.ask_all("load"))
            if not model.likelihood.adapted:
                model.likelihood.adapt(np.concatenate(run.ask_all("targets")))
            problem = self._problem(model)
            bar = keras.utils.Progbar(self.rounds, verbose=verbose, unit_name="round")
            converged = self._iterate(run, problem, bar, should_stop)
        fitted = problem.model_with(
            run.server.q,
            self.result(
                converged=converged,
                rounds=len(run.changes),
                updates=run.server.updates,
                changes=run.changes,
                bytes_sent=run.bytes_sent,
                restarts=run.restarts,
                ignored_updates=run.server.ignored,
                withheld=run.withheld,
                shortened=run.server.shortened,
            ),
        )
        fitted.num_rows = rows
        fitted.training_temperature(rows).assign(1.0)
        return fitted

    def _problem(self, model: BayesianModel) -> Problem:
        if self.covariance == "full" or is_linear(model):
            return LinearProblem(model, self.covariance)
        return NetworkProblem(
            model, self.epochs, self.batch_size, self.learning_rate, self.seed
        )

    def _workers(self, partitions: Sequence[Source]) -> Workers:
        if self.ray_address is None:
            return InProcessWorkers(PartitionWorker, partitions)
        from tfbbb.lab.distributed.ray_workers import RayWorkers

        return RayWorkers(PartitionWorker, partitions, self.ray_address)

    def _iterate(
        self,
        run: Run,
        problem: Problem,
        bar: keras.utils.Progbar,
        should_stop: Callable[[int, float], bool],
    ) -> bool:
        """Updates factors until q does not change; returns whether it converged."""
        damping = self.damping
        if damping is None:
            in_turn = 0.0 if isinstance(problem, LinearProblem) else _DAMPING_IN_TURN
            damping = in_turn if run.at_once == 1 else _DAMPING_AT_ONCE
        run.begin(problem, problem.prior, 1.0 - damping, problem.start)
        for round_ in range(self.rounds):
            run.one_round()
            bar.update(round_ + 1, [("change", run.changes[-1])])
            stopped = should_stop(round_ + 1, run.changes[-1])
            if run.changes[-1] <= self.tolerance:
                return True
            if stopped:
                return False
            if has_stagnated(run.changes):
                run.step = max(0.5 * run.step, SMALLEST_STEP)
        return False
