"""Trains with one likelihood after the other, until one suits rows left out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tfbbb.base.diverged_training import TrainingDivergedError
from tfbbb.training.candidates import Candidate
from tfbbb.training.left_out_error import WORST_ERROR, most_likely
from tfbbb.training.loop import Outcome
from tfbbb.training.progress import Progress
from tfbbb.training.spec.families import LikelihoodPart, likelihoods
from tfbbb.training.target_likelihood import LikelihoodChoice
from tfbbb.training.time_limit import TimeLimit

MIXTURE = likelihoods.make("normal_mixture", components=2)


@dataclass(frozen=True)
class Turns:
    """The networks of all likelihoods that were trained.

    Attributes:
        candidates: The trained networks.
        outcomes: How the training with a likelihood ended, by its name: `"trained"`,
            `"poor"` or `"diverged"`.
    """

    candidates: list[Candidate]
    outcomes: dict[str, str]


def train_in_turn(
    choice: LikelihoodChoice | None,
    train: Callable[[int, LikelihoodPart | None, TimeLimit], list[Candidate]],
    limit: TimeLimit,
) -> Turns:
    """Trains with the likelihood that was chosen, and with others while it is no good.

    A likelihood whose training diverges gives way to the next by likelihood. One whose
    networks predict rows left out far worse than a constant gives way to the default,
    whose mean is linear in the output of the network, if half of the time is left. If
    the sum of the predictions is off then, as where most amounts are 0, a mixture of
    two normals is tried: one of them can be the zeros.
    """
    parts: list[LikelihoodPart | None] = [None]
    default = None
    if choice is not None:
        by_likelihood = sorted(choice.trials, key=lambda trial: -trial.log_likelihood)
        others = [trial.likelihood for trial in by_likelihood]
        parts = [choice.likelihood, *(x for x in others if x != choice.likelihood)]
        default = choice.trials[0].likelihood if choice.trials else choice.likelihood
        parts.append(MIXTURE)
    turns = Turns([], {})
    error: TrainingDivergedError | None = None
    for number, part in enumerate(parts):
        is_poor = "poor" in turns.outcomes.values()
        if part is MIXTURE and not (is_poor and most_likely(turns.candidates).is_off):
            continue
        if is_poor and part not in (default, MIXTURE):
            continue
        if is_poor and not limit.has_time_for_more:
            break
        name = "" if part is None else part.name
        try:
            found = train(number, part, limit if number == 0 else limit.rest())
        except TrainingDivergedError as diverged:
            turns.outcomes[name], error = "diverged", diverged
            continue
        turns.candidates.extend(found)
        best = most_likely(found)
        if best.relative_error <= WORST_ERROR and not best.is_off:
            turns.outcomes[name] = "trained"
            break
        turns.outcomes[name] = "poor"
    if error is not None and not turns.candidates:
        raise error
    return turns


class ProgressOfTurns:
    """Counts the progress of one training after the other as that of one.

    Args:
        report: Called with the progress.
        before: Trainings that have ended.
    """

    def __init__(
        self, report: Callable[[Progress], object], before: Sequence[Outcome] = ()
    ) -> None:
        self._report = report
        epochs = sum(each.epoch for each in before)
        steps = sum(each.step for each in before)
        self._before = self._last = Progress(
            epoch=epochs,
            epochs=epochs,
            step=steps,
            steps=steps,
            saved_step=steps,
            seconds=sum(each.seconds for each in before),
        )
        self._likelihood = ""

    def begin(self, number: int, part: LikelihoodPart | None) -> None:
        """Counts the last progress as done, for the n-th likelihood."""
        self._before = self._last
        self._likelihood = part.name if number and part is not None else ""

    def __call__(self, at: Progress) -> None:
        """Reports the progress of the present training."""
        before = self._before
        stage = f"likelihood {self._likelihood}; {at.stage}"
        self._last = replace(
            at,
            epoch=before.epoch + at.epoch,
            epochs=before.epoch + at.epochs,
            step=before.step + at.step,
            steps=before.step + at.steps,
            saved_step=before.saved_step + at.saved_step,
            seconds=before.seconds + at.seconds,
            stage=stage if self._likelihood else at.stage,
        )
        self._report(self._last)
