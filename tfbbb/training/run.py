"""One training of a table on its way through its steps."""

from collections.abc import Callable, Sequence
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
    """Counts the progress of trainings, one after the other, as that of one."""

    def __init__(self, report: Callable[[Progress], object]) -> None:
        self._report = report
        self._before = self._last = Progress(epoch=0, epochs=0, step=0, steps=0)
        self._parts = 1

    def begin(self, parts: int = 1) -> None:
        """Counts the last progress as done; so many trainings like the next follow."""
        self._before, self._parts = self._last, parts

    def __call__(self, at: Progress) -> None:
        """Reports the progress of the present training."""
        before = self._before
        self._last = replace(
            at,
            epoch=before.epoch + at.epoch,
            epochs=before.epoch + self._parts * at.epochs,
            step=before.step + at.step,
            steps=before.step + self._parts * at.steps,
            saved_step=before.step + at.saved_step,
            seconds=before.seconds + at.seconds,
        )
        self._report(self._last)


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
    # By `make_plan`: the completed spec, untrained networks and the rows of members.
    plan: TrainingPlan = _LATER
    networks: Sequence[BayesianModel] = ()
    members: MemberRows = _LATER
    # By `train_networks`; the outcomes are those of `train_in_turn`.
    candidates: Sequence[Candidate] = ()
    outcomes: Config = _LATER
    # By `compare_baselines`: the rows that measure the model, which no member saw that
    # predicts them, and their weights, None if all are 1.
    inputs: Inputs = _LATER
    targets: np.ndarray = _LATER
    row_weights: np.ndarray | None = None
    baselines: TrainingBaselines = _LATER
    # By `train_best_network`: 0 if of no use; None if they were not tried.
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
