"""The choice between steps with and without XLA."""

from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from tests.ensembles import X, Y, network
from tests.training import trainings
from tfbbb.model.optimizers import Adam
from tfbbb.training import xla
from tfbbb.training.loop import fit
from tfbbb.training.progress import Interrupted
from tfbbb.training.steps import Steps


class Rows:
    """40 rows of numbers, which XLA can compile."""

    num_rows = len(X)
    sha256 = ""

    def targets(self):
        return Y

    def batches(self, batch_size, *, seed, epoch=0, batch=0):
        rows = tf.data.Dataset.from_tensor_slices((X, Y))
        return rows.batch(batch_size).repeat().skip(batch)


def trained(**options):
    """Returns outcome and weights of a training with noise."""
    model = network(2, "weight", posterior="mean_field_normal")
    model.compile(Adam(0.05))
    given = {"epochs": 3, "batch_size": 20, "held_out": (X, Y), **options}
    outcome = fit(model, Rows(), **given)
    return outcome, [variable.numpy() for variable in model.weights]


@pytest.fixture(autouse=True)
def few_measured_steps(monkeypatch):
    monkeypatch.setattr(xla, "_SECONDS_OF_EXECUTIONS", 0.0)


@pytest.fixture
def times(monkeypatch):
    """Seconds of a step without and with XLA, in place of the measured ones."""
    measure = xla._seconds_per_step

    def given(*seconds):
        left = iter(seconds)

        def take_steps(*arguments):
            measure(*arguments)
            return next(left)

        monkeypatch.setattr(xla, "_seconds_per_step", take_steps)

    return given


@pytest.fixture
def taken(monkeypatch):
    """For each execution of steps, whether it was by XLA."""
    found, take = [], Steps.take

    def spy(steps, first, end):
        found.append(steps.use_xla)
        return take(steps, first, end)

    monkeypatch.setattr(Steps, "take", spy)
    return found


@pytest.mark.parametrize(
    ("seconds", "used"), [(0.89, True), (0.91, False), (2.0, False), (None, False)]
)
def test_xla_is_used_if_it_saves_a_tenth(seconds, used):
    assert xla.XLAChoice.decide(1.0, seconds).used is used


@pytest.mark.parametrize(
    ("seconds", "described"),
    [
        (0.002, "2 ms per step with XLA, 3 ms without"),
        (0.02, "3 ms per step without XLA, 20 ms with it"),
        (None, "3 ms per step without XLA, which cannot compile it"),
    ],
)
def test_a_choice_is_described_with_its_times(seconds, described):
    assert str(xla.XLAChoice.decide(0.003, seconds)) == described


def test_steps_are_measured_by_default_on_a_gpu_only(monkeypatch):
    model = network(1)
    assert not xla.may_use_xla("auto", model)
    assert xla.may_use_xla("measure", model)
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda kind: [f"{kind}:0"])
    assert xla.may_use_xla("auto", model)
    assert not xla.may_use_xla("off", model)
    with pytest.raises(ValueError, match="Received: xla='on'"):
        xla.may_use_xla("on", model)


def test_a_short_training_does_not_repay_the_compilation(monkeypatch):
    monkeypatch.setattr(xla, "_seconds_per_step", lambda steps, *_: 1 - steps.use_xla)
    steps, model = SimpleNamespace(use_xla=False), network(1)
    assert xla.choose_xla("auto", steps, model, num_steps=100) is None
    limit = {"num_steps": 500, "max_seconds": 100.0}
    assert xla.choose_xla("auto", steps, model, **limit) is None
    choice = xla.choose_xla("auto", steps, model, num_steps=500)
    assert choice == xla.XLAChoice(True, 1, 0)


@pytest.mark.slow
def test_measured_steps_leave_no_trace_in_the_model(times, taken):
    times(1.0, 2.0)
    outcome, weights = trained(xla="measure")
    assert not outcome.xla.used
    assert {*taken[:1], *taken[-3:]} == {False}
    assert True in taken
    plain, expected = trained(xla="off")
    assert outcome.losses == plain.losses
    for found, weight in zip(weights, expected, strict=True):
        np.testing.assert_array_equal(found, weight)


@pytest.mark.slow
def test_the_time_of_measured_steps_counts(times):
    times(1.0, 2.0)
    outcome, _ = trained(xla="measure", max_seconds=1e-3)
    assert (outcome.step, outcome.out_of_time) == (1, True)


def test_steps_by_xla_are_those_of_the_same_network(times, taken):
    def without_noise(choice):
        model = network(2, "weight")
        model.compile(Adam(0.05))
        outcome = fit(model, Rows(), epochs=3, batch_size=16, xla=choice)
        return outcome, [weight.numpy() for weight in model.trainable_variables]

    times(2.0, 1.0)
    outcome, weights = without_noise("measure")
    assert outcome.xla == xla.XLAChoice(True, 2.0, 1.0)
    assert taken[-1]
    plain, expected = without_noise("off")
    np.testing.assert_allclose(outcome.losses, plain.losses, rtol=1e-4)
    for found, weight in zip(weights, expected, strict=True):
        np.testing.assert_allclose(found, weight, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_a_training_that_resumes_keeps_its_choice(tmp_path, times, monkeypatch):
    times(2.0, 1.0, 2.0, 1.0)
    whole, expected = trained(xla="measure")
    asked = count()
    with pytest.raises(Interrupted):
        trained(
            xla="measure",
            checkpoint_directory=tmp_path,
            should_stop=lambda: next(asked) == 2,
        )
    monkeypatch.setattr(xla, "_seconds_per_step", pytest.fail)
    outcome, weights = trained(xla="measure", checkpoint_directory=tmp_path)
    assert outcome.xla == whole.xla
    for found, weight in zip(weights, expected, strict=True):
        np.testing.assert_array_equal(found, weight)


def test_networks_that_xla_cannot_compile_train_without():
    # It has a column of text.
    measured, plain = trainings.model(), trainings.model()
    outcome = trainings.train(measured, xla="measure")
    assert outcome.xla.xla_seconds is None
    trainings.train(plain, xla="off")
    trainings.assert_same(measured, plain)
