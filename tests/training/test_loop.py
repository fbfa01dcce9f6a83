from contextlib import suppress

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfbbb
from tests.training import trainings
from tests.waiting import set_clock
from tfbbb.base.diverged_training import TrainingDivergedError
from tfbbb.bayes.kl_schedules import LinearWarmup
from tfbbb.layers import DenseVariational
from tfbbb.tables import Schema, preprocessing
from tfbbb.tables.memory_rows import MemoryRows
from tfbbb.training import loop
from tfbbb.training.job_clock import Interrupted
from tfbbb.training.loop import Rounds, Steps
from tfbbb.training.spec.training import EarlyStopping


def test_xla_compiles_the_steps_if_asked():
    table = trainings.table().drop(["word"])
    schema = Schema.infer(table, "y")
    inputs, features = preprocessing(schema)
    losses = []
    for xla in (False, True):
        layer = DenseVariational(
            1, posterior="point", bias_posterior="point", kernel_initializer="zeros"
        )
        outputs = layer(features)
        model = tfbbb.BayesianModel(inputs, outputs, likelihood="normal")
        model.compile("adam")
        rows = MemoryRows.read(schema, [table], len(table))
        seen = []
        trainings.train(model, rows=rows, xla=xla, report=seen.append)
        losses.append([at.figures["loss"] for at in seen if at.figures])
    np.testing.assert_allclose(*losses, rtol=1e-4)


def until(seconds):
    """Returns what tells the time that is left of some seconds."""
    end = loop.time.monotonic() + seconds
    return lambda: end - loop.time.monotonic()


@pytest.fixture
def slow_steps(monkeypatch):
    """Moves the clock by the seconds of the first execution, and of each other."""
    monkeypatch.setattr("tfbbb.training.loop._SECONDS_PER_EXECUTION", 0.0)

    def given(first_seconds, before=lambda: None):
        now = [0.0]
        set_clock(monkeypatch, loop, monotonic=lambda: now[0])
        ended = Steps.on_train_batch_end

        def timed(steps, batch, logs):
            before()
            now[0] += 1.0 if steps.seconds else first_seconds
            ended(steps, batch, logs)

        monkeypatch.setattr(Steps, "on_train_batch_end", timed)

    return given


def test_time_is_left_for_what_follows_the_steps(slow_steps):
    slow_steps(10.0)
    for seconds, steps in ((20.0, 11), (-10.0, 1)):
        outcome = trainings.train(trainings.model(), seconds_left=until(seconds))
        assert (outcome.step, outcome.out_of_time) == (steps, True)


def test_the_reports_are_those_of_keras_on_the_same_batches():
    ours, reports = trainings.model(), []
    outcome = trainings.train(
        ours, epochs=2, held_out=trainings.held_out(), report=reports.append
    )
    ends = [(p.epoch, p.step) for p in reports if p.figures]
    assert ends == [(1, 7), (2, 14)]
    assert (reports[0].epochs, reports[0].steps) == (2, 14)
    assert ours.optimizer.iterations == 14
    assert (outcome.epoch, outcome.best_epoch) == (2, 2)
    keras_own = trainings.model()
    history = keras_own.fit(
        trainings.rows().batches(trainings.BATCH_SIZE, seed=3),
        epochs=2,
        steps_per_epoch=trainings.STEPS_PER_EPOCH,
        dataset_size=trainings.ROWS,
        validation_data=trainings.held_out(),
        validation_batch_size=trainings.ROWS,
        shuffle=False,
        verbose=0,
    ).history
    # Keras may compile a sum in another order.
    for name in ("loss", "nll", "kl", "val_nll"):
        figures = [p.figures[name] for p in reports if p.figures]
        np.testing.assert_allclose(figures, history[name], rtol=1e-5)
    for ours_, theirs in zip(ours.weights, keras_own.weights, strict=True):
        np.testing.assert_allclose(ours_, theirs, rtol=1e-4, atol=1e-6)


def test_a_schedule_sets_the_temperature_of_every_step():
    model = trainings.model(kl_schedule=LinearWarmup(epochs=2))
    (layer,) = model.variational_layers
    weights = tf.Variable(tf.zeros([3 * trainings.STEPS_PER_EPOCH]))
    train_step = model.train_step

    def recording(data):
        weights[model.optimizer.iterations.value].assign(layer.kl_weight.value)
        return train_step(data)

    model.train_step = recording
    trainings.train(model, epochs=3)
    rise = np.minimum(1.0, np.arange(21) / 14) / trainings.ROWS
    np.testing.assert_allclose(weights, rise, rtol=1e-6)
    np.testing.assert_allclose(layer.kl_weight.numpy(), 1 / trainings.ROWS, rtol=1e-6)


def test_many_small_epochs_make_some_fifty_rounds():
    rounds = Rounds.plan(trainings.model(), 450, 1, trainings.ROWS, None)
    assert (rounds.number, rounds.steps) == (50, 450)
    assert rounds.epochs_at(49) == 450


def test_early_stopping_restores_the_weights_of_the_best_epoch():
    model, reports = trainings.model(learning_rate=2.0), []
    outcome = trainings.train(
        model,
        epochs=50,
        held_out=trainings.held_out(),
        early_stopping=EarlyStopping(patience=3),
        report=reports.append,
    )
    nll = [progress.figures["val_nll"] for progress in reports if progress.figures]
    assert outcome.best_epoch == 1 + np.argmin(nll)
    assert outcome.epoch == len(nll) == outcome.best_epoch + 3
    until_then = trainings.model(learning_rate=2.0)
    # The same validations draw the same noise.
    trainings.train(
        until_then, epochs=outcome.best_epoch, held_out=trainings.held_out()
    )
    for value, expected in zip(model.weights, until_then.weights, strict=True):
        np.testing.assert_array_equal(value, expected)


def test_early_stopping_looks_at_no_epoch_of_a_warmup():
    model, rule = trainings.model(kl_schedule=LinearWarmup(epochs=4)), EarlyStopping()
    rounds = Rounds.plan(model, 30, trainings.STEPS_PER_EPOCH, 8, rule)
    assert rounds.early_stopping(model, rule).start_from_epoch == 4


def test_early_stopping_without_held_out_rows_is_refused():
    with pytest.raises(ValueError, match="pass `held_out`"):
        trainings.train(trainings.model(), early_stopping=EarlyStopping())


def test_diverging_training_ends_at_once_and_names_its_learning_rate(
    compiled_functions,
):
    model = trainings.model(learning_rate=1e30)
    with pytest.raises(TrainingDivergedError, match="learning_rate=1e\\+30"):
        trainings.train(model, epochs=1000)
    assert model.optimizer.iterations < 7000


def test_stopping_without_a_directory_only_stops():
    model = trainings.model()
    with pytest.raises(Interrupted, match="after 0 of 28 steps"):
        trainings.train(model, should_stop=lambda: True)
    assert model.num_rows is None


def test_the_decay_ends_with_the_time_if_that_ends_before_the_steps(slow_steps):
    """Of 28 steps, time is for 11, the first of which takes 10 s and each other 1 s."""
    linear = keras.optimizers.schedules.PolynomialDecay(0.01, 28, 0.0)
    model, rates = trainings.model(), []
    model.optimizer.learning_rate = linear
    slow_steps(10.0, before=lambda: rates.append(float(model.optimizer.learning_rate)))
    outcome = trainings.train(model, seconds_left=until(20.0), decay=linear)
    assert outcome.out_of_time
    # After each step; the time of the first one does not count.
    shares = [1 / 28, 2 / 28, *(0.1 * n + 1 / 28 for n in range(1, 10))]
    np.testing.assert_allclose(rates, 0.01 * np.subtract(1.0, shares), rtol=1e-6)


def test_a_time_limit_changes_neither_the_saved_optimizer_nor_a_long_training(tmp_path):
    models = []
    for options in (
        {},
        {"seconds_left": lambda: 1e6, "checkpoint_directory": tmp_path / "c"},
    ):
        models.append(trainings.model())
        decay = keras.optimizers.schedules.CosineDecay(0.05, 100)
        stops = iter([False] * 3 + [True] * bool(options))
        with suppress(Interrupted):
            trainings.train(
                models[-1],
                decay=decay,
                should_stop=lambda stops=stops: next(stops, False),
                **options,
            )
        if options:
            # Another process makes another decay.
            models[-1] = trainings.model()
            decay = keras.optimizers.schedules.CosineDecay(0.05, 100)
            trainings.train(models[-1], decay=decay, **options)
    trainings.assert_same(*models)
    models[1].save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    rates = [each.optimizer.get_config()["learning_rate"] for each in (loaded, *models)]
    assert rates[0] == rates[1] == rates[2]
