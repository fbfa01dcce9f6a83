"""One training of a table on its way through its steps."""

import functools
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from tfbbb.base.types import Config
from tfbbb.judging.evaluation.predicted_rows import PredictedRows
from tfbbb.judging.types import Inputs
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.prediction.extrapolation import Extrapolation
from tfbbb.prediction.familiarity import Familiarity
from tfbbb.training.cross_fitting import MemberRows
from tfbbb.training.job_clock import JobClock, Progress
from tfbbb.training.judging import TrainingBaselines
from tfbbb.training.left_out_error import Trial, most_likely
from tfbbb.training.loop import Outcome
from tfbbb.training.parent_version import ParentVersion
from tfbbb.training.plan import TrainingPlan
from tfbbb.training.preparation import Prepared
from tfbbb.training.recalibration import Calibrated
from tfbbb.training.serving_version import ServingVersion
from tfbbb.training.spec import JobSpec, ModelSpec
from tfbbb.training.target_likelihood import LikelihoodChoice
from tfbbb.training.temperature_choice import TemperatureChoice

# Of fields that a later step sets.
_LATER: Any = None


class ProgressOfAll:
    """Counts the progress of trainings, in turns or at once, as that of one.

    From the first steps on, which leave Python's lock, a thread computes beside them.
    """

    def __init__(self, report: Callable[[Progress], object]) -> None:
        self._report = report
        self._thread = ThreadPoolExecutor(max_workers=1)
        self._beside: list[Callable[[], Future[Any]]] = []
        self._lock = threading.Lock()
        self._last = Progress(epoch=0, epochs=0, step=0, steps=0)

    def beside_steps(self, compute: Callable[[], Any]) -> Callable[[], Any]:
        """Lets the thread compute something; returns what waits for the result."""
        begin = functools.cache(functools.partial(self._thread.submit, compute))
        self._beside.append(begin)
        return lambda: begin().result()

    def begin(self, parts: int = 1) -> list[Callable[[Progress], None]]:
        """Counts the last progress as done; returns the reports of the next trainings.

        These are about alike.
        """
        before, latest = self._last, [Progress(0, 0, 0, 0)] * parts

        def report(number: int, at: Progress) -> None:
            with self._lock:
                for begin in self._beside:
                    begin()
                latest[number] = at
                # Those that have not begun take as many steps as the others.
                unseen = parts / sum(each.steps > 0 for each in latest)

                def total(field: str) -> Any:
                    return sum(getattr(each, field) for each in latest)

                self._last = replace(
                    at,
                    epoch=before.epoch + total("epoch"),
                    epochs=before.epoch + round(unseen * total("epochs")),
                    step=before.step + total("step"),
                    steps=before.step + round(unseen * total("steps")),
                    saved_step=before.step + total("saved_step"),
                    seconds=before.seconds + total("seconds"),
                )
                self._report(self._last)

        return [functools.partial(report, number) for number in range(parts)]


@dataclass(frozen=True)
class Candidate:
    """A trained network: the mixture of the members of its best temperature.

    The choice of the temperature is None if there was nothing to choose.
    """

    name: str
    network: ModelSpec
    model: BayesianModel
    choice: TemperatureChoice | None
    outcome: Outcome
    trial: Trial


@dataclass(frozen=True, kw_only=True)
class Run:
    """The arguments of `train_table`, and what the steps of the training found.

    Each step returns a copy with its fields set.
    """

    source: Any
    spec: JobSpec
    weights: np.ndarray | None
    parent: ParentVersion | None
    serving: ServingVersion | None = None
    directory: Path | None
    checkpoint_seconds: float
    xla: bool
    clock: JobClock = field(default_factory=JobClock)
    report: ProgressOfAll
    should_stop: Callable[[], bool]

    # By `prepare_rows`, which also sets a parent's network in the spec. The likelihoods
    # are None if the spec names one, or the target has classes.
    prepared: Prepared = _LATER
    likelihoods: LikelihoodChoice | None = None
    # By `make_plan`: the completed spec, untrained networks, the rows of members, and
    # what waits for baselines and familiarity, which are fitted beside the steps.
    plan: TrainingPlan = _LATER
    networks: Sequence[BayesianModel] = ()
    members: MemberRows = _LATER
    baselines_beside: Callable[[], TrainingBaselines] = _LATER
    familiarity_beside: Callable[[], Familiarity | None] = _LATER
    # By `train_networks`; the outcomes are those of `train_in_turn`.
    candidates: Sequence[Candidate] = ()
    outcomes: Config = _LATER
    # By `compare_baselines`: the rows that measure the model, which no member saw that
    # predicts them, and their weights, None if all are 1.
    inputs: Inputs = _LATER
    targets: np.ndarray = _LATER
    row_weights: np.ndarray | None = None
    baselines: TrainingBaselines = _LATER
    # By `train_best_network`: what waits for the extrapolation, fitted beside steps;
    # and the steps, 0 if of no use, None if they were not tried.
    extrapolation_beside: Callable[[], Extrapolation | None] = _LATER
    steps_on_more_rows: int | None = None
    # By `calibrate_model`: the predictions of the rows that measure, and their scores.
    calibrated: Calibrated = _LATER
    scored: PredictedRows = _LATER
    # By `learn_familiarity`.
    familiarity: Familiarity | None = None
    extrapolation: Extrapolation | None = None
    has_time: bool = True
    # By `judge_model`.
    judgement: Config = _LATER
    recipe: Config = _LATER

    @property
    def best(self) -> Candidate:
        """The trained network whose rows left out are most likely."""
        trial = most_likely([each.trial for each in self.candidates])
        return next(each for each in self.candidates if each.trial is trial)

    @property
    def out_of_time(self) -> bool:
        """Whether `max_seconds` ended a training."""
        return any(each.outcome.out_of_time for each in self.candidates)

    @property
    def places(self) -> np.ndarray:
        """The places in the table of the rows that measure the model."""
        prepared = self.prepared
        if self.members.folds is None:
            return prepared.held_out_rows
        return prepared.training_rows[self.members.left_out]

    def measured_rows(self) -> tuple[Any, np.ndarray, np.ndarray | None]:
        """Returns inputs, targets and weights of the rows that give the figures."""
        prepared, members = self.prepared, self.members
        if members.folds is None:
            return *prepared.held_out, prepared.held_out_weights
        inputs, targets = prepared.rows.at(members.left_out)
        weights = prepared.weights
        return inputs, targets, None if weights is None else weights[members.left_out]
