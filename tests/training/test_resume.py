import itertools

import pytest

from tests.training import trainings
from tfbbb.training.job_clock import Interrupted
from tfbbb.training.spec.training import EarlyStopping


class Killed(Exception):
    """Stands for the end of a process: nothing is written any more."""


def interrupted_after(executions, how):
    asked = itertools.count()

    def should_stop():
        if next(asked) < executions:
            return False
        if how is Killed:
            raise Killed
        return True

    return should_stop


def train_with_interruptions(make, directory, interruptions, **options):
    """Trains by one model after the other, each until it is interrupted.

    Only the last comes to the end.
    """
    for executions, how in interruptions:
        with pytest.raises(how):
            trainings.train(
                make(),
                checkpoint_directory=directory,
                checkpoint_seconds=1e-9,
                should_stop=interrupted_after(executions, how),
                **options,
            )
    last = make()
    outcome = trainings.train(last, checkpoint_directory=directory, **options)
    return last, outcome


def test_a_training_that_stops_after_an_epoch_comes_to_the_same(tmp_path):
    whole = trainings.model()
    trainings.train(whole, epochs=8)
    # After a checkpoint that is not the first, and at once.
    interruptions = [(2, Killed), (0, Interrupted)]
    last, _ = train_with_interruptions(
        trainings.model, tmp_path, interruptions, epochs=8
    )
    trainings.assert_same(last, whole)


def test_a_training_that_stops_within_an_epoch_goes_on_from_there(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("tfbbb.training.loop._SECONDS_PER_EXECUTION", 0.0)
    _, outcome = train_with_interruptions(
        trainings.model, tmp_path, [(3, Interrupted), (6, Killed)]
    )
    assert outcome.epoch == 4


def test_with_members_a_schedule_and_early_stopping_too(tmp_path):
    def make():
        return trainings.model(
            members=2, learning_rate=1.0, kl_schedule="linear_warmup"
        )

    options = {
        "epochs": 30,
        "held_out": trainings.held_out(),
        "early_stopping": EarlyStopping(patience=3),
    }
    whole = make()
    expected = trainings.train(whole, **options)
    assert expected.best_epoch < expected.epoch < 30
    # An execution is a step: the second one stops after the best epoch.
    steps = trainings.STEPS_PER_EPOCH
    interruptions = [(2 * steps, Killed)]
    interruptions.append(((expected.best_epoch - 1) * steps, Interrupted))
    last, outcome = train_with_interruptions(make, tmp_path, interruptions, **options)
    assert outcome == expected
    trainings.assert_same(last, whole)


def test_the_checkpoint_of_another_training_is_ignored(tmp_path):
    with pytest.raises(Interrupted):
        trainings.train(
            trainings.model(), checkpoint_directory=tmp_path, should_stop=lambda: True
        )
    with pytest.warns(UserWarning, match="is ignored: it belongs to a training"):
        trainings.train(trainings.model(), checkpoint_directory=tmp_path, seed=4)
