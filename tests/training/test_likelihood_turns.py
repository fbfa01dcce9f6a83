"""Which likelihoods are trained, one after the other."""

import math
from types import SimpleNamespace

import pytest

from tfbbb.base.diverged_training import TrainingDivergedError
from tfbbb.training.candidates import train_in_turn
from tfbbb.training.job_clock import JobClock, Progress
from tfbbb.training.left_out_error import Trial
from tfbbb.training.run import ProgressOfAll
from tfbbb.training.spec.families import likelihoods
from tfbbb.training.target_likelihood import LikelihoodChoice, LikelihoodTrial

FIGURES = {"student_t": -3.0, "gamma": -2.5, "log_normal": -2.0}
TRIALS = tuple(
    LikelihoodTrial(likelihoods.make(name, heteroscedastic=True), value, 0.0, 0.0)
    for name, value in FIGURES.items()
)
CHOICE = LikelihoodChoice(TRIALS[-1].likelihood, TRIALS)


def turns(errors, choice=CHOICE, seconds=math.inf, off=()):
    """Trains with relative errors by likelihood; None for divergence.

    Sums of predictions by the likelihoods `off` are off.
    """

    def train(number, part):
        name = "" if part is None else part.name
        error = errors[name]
        if error is None:
            raise TrainingDivergedError(0.02)
        return [SimpleNamespace(trial=Trial(0.1, -1.0, 1.0, error, name in off))]

    clock = JobClock()
    clock.limit = seconds
    return train_in_turn(choice, train, clock)[1]


def test_a_likelihood_that_suits_is_trained_alone():
    assert turns({"log_normal": 0.7}) == {"log_normal": "trained"}


def test_a_likelihood_that_diverges_gives_way_to_the_next():
    assert turns({"log_normal": None, "gamma": 0.9}) == {
        "log_normal": "diverged",
        "gamma": "trained",
    }


def test_a_poor_likelihood_gives_way_to_the_default():
    assert turns({"log_normal": 9.0, "student_t": 0.9}) == {
        "log_normal": "poor",
        "student_t": "trained",
    }


def test_sums_that_are_off_try_a_mixture_after_the_default():
    errors = {"log_normal": 0.9, "student_t": 0.9, "normal_mixture": 0.8}
    assert turns(errors, off=["log_normal"]) == {
        "log_normal": "poor",
        "student_t": "trained",
    }
    assert turns(errors, off=["log_normal", "student_t"]) == {
        "log_normal": "poor",
        "student_t": "poor",
        "normal_mixture": "trained",
    }
    default = LikelihoodChoice(TRIALS[0].likelihood)
    found = turns(errors, default, off=["student_t"])
    assert found == {"student_t": "poor", "normal_mixture": "trained"}
    # A poor error alone is no reason.
    errors["student_t"] = 2.0
    assert turns(errors, default) == {"student_t": "poor"}


def test_no_time_is_left_after_a_poor_likelihood():
    assert turns({"log_normal": 9.0}, seconds=1e-9) == {"log_normal": "poor"}


def test_the_error_names_the_initial_learning_rate_if_all_diverge():
    with pytest.raises(TrainingDivergedError, match=r"Received: learning_rate=0\.02"):
        turns(dict.fromkeys(FIGURES))
    with pytest.raises(TrainingDivergedError):
        turns({"": None}, choice=None)


def test_progress_of_all_trainings_never_falls():
    reported = []
    progress = ProgressOfAll(reported.append)
    for parts in (2, 1):
        progress.begin(parts)
        for step in (5, 10):
            progress(Progress(step // 5, 2, step, 10, saved_step=5))
    assert [at.step for at in reported] == [5, 10, 15, 20]
    assert [at.saved_step for at in reported] == [5, 5, 15, 15]
    assert [at.steps for at in reported] == [20, 20, 20, 20]
