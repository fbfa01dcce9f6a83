"""Trains with one likelihood after the other, until one suits rows left out."""

from collections.abc import Callable

from tfbbb.base.diverged_training import TrainingDivergedError
from tfbbb.training.job_clock import JobClock
from tfbbb.training.left_out_error import WORST_ERROR, most_likely
from tfbbb.training.run import Candidate
from tfbbb.training.spec.families import LikelihoodPart, likelihoods
from tfbbb.training.target_likelihood import LikelihoodChoice

MIXTURE = likelihoods.make("normal_mixture", components=2)


def train_in_turn(
    choice: LikelihoodChoice | None,
    train: Callable[[int, LikelihoodPart | None], list[Candidate]],
    clock: JobClock,
) -> tuple[list[Candidate], dict[str, str]]:
    """Trains with the likelihood that was chosen, and with others while it is no good.

    A likelihood whose training diverges gives way to the next by likelihood. One whose
    networks predict rows left out far worse than a constant gives way to the default,
    whose mean is linear in the output of the network, if half of the time is left. If
    the sum of the predictions is off then, as where most amounts are 0, a mixture of
    two normals is tried: one of them can be the zeros.

    Returns all trained networks, and how the training with each likelihood ended:
    `"trained"`, `"poor"` or `"diverged"`.
    """
    parts: list[LikelihoodPart | None] = [None]
    default = None
    if choice is not None:
        by_likelihood = sorted(choice.trials, key=lambda trial: -trial.log_likelihood)
        others = [trial.likelihood for trial in by_likelihood]
        parts = [choice.likelihood, *(x for x in others if x != choice.likelihood)]
        default = choice.trials[0].likelihood if choice.trials else choice.likelihood
        parts.append(MIXTURE)
    candidates: list[Candidate] = []
    outcomes: dict[str, str] = {}
    error: TrainingDivergedError | None = None
    is_poor = is_off = False
    for number, part in enumerate(parts):
        if (part is MIXTURE and not is_off) or (
            is_poor and part not in (default, MIXTURE)
        ):
            continue
        if is_poor and not clock.has_time_for_more:
            break
        name = "" if part is None else part.name
        try:
            found = train(number, part)
        except TrainingDivergedError as diverged:
            outcomes[name], error = "diverged", diverged
            continue
        candidates += found
        best = most_likely([each.trial for each in found])
        if best.relative_error <= WORST_ERROR and not best.is_off:
            outcomes[name] = "trained"
            break
        outcomes[name], is_poor = "poor", True
        is_off = most_likely([each.trial for each in candidates]).is_off
    if error is not None and not candidates:
        raise error
    return candidates, outcomes
