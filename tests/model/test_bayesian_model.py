import warnings

import keras
import numpy as np
import pytest

import tfbbb
from tfbbb.bayes.likelihoods import Categorical, Normal
from tfbbb.layers import DenseVariational

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(60, 3)).astype("float32")
Y = 500.0 + 30.0 * X[:, :1] + 5.0 * GENERATOR.normal(size=(60, 1))
LABELS = (X[:, 0] > 0).astype(int)


def regression(likelihood=None, kl_weight=None, units=1, run_eagerly=False):
    inputs = keras.Input((3,))
    hidden = DenseVariational(8, "tanh", kl_weight=kl_weight)(inputs)
    outputs = DenseVariational(units, kl_weight=kl_weight)(hidden)
    model = tfbbb.BayesianModel(inputs, outputs, likelihood=likelihood or "normal")
    model.compile(keras.optimizers.Adam(0.02), run_eagerly=run_eagerly)
    return model


def untraced(**options):
    """Returns a model whose few steps run faster than they would be traced."""
    return regression(**options, run_eagerly=True)


def test_fit_reports_loss_nll_and_kl_and_their_validation_twins():
    model = untraced()
    history = model.fit(X, Y, validation_split=0.2, epochs=2, verbose=0).history
    assert set(history) == {
        *("loss", "nll", "kl", "temperature"),
        *("val_loss", "val_nll", "val_kl"),
    }
    assert history["temperature"] == [1.0, 1.0]
    for prefix in ("", "val_"):
        np.testing.assert_allclose(
            history[f"{prefix}loss"],
            np.add(history[f"{prefix}nll"], np.divide(history[f"{prefix}kl"], 48)),
            rtol=1e-5,
        )


@pytest.mark.usefixtures("compiled_functions")
def test_fit_traces_the_training_step_once():
    model, traces = regression(), []
    step = model.train_step
    model.train_step = lambda data: traces.append(data) or step(data)
    model.fit(X, Y, verbose=0)
    assert len(traces) == 1


def test_second_fit_keeps_the_variables_of_the_optimizer():
    model = regression()
    # Its `build` adds its variables whenever it is called.
    model.compile(keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam()))
    model.fit(X, Y, verbose=0)
    before = list(model.optimizer.variables)
    model.fit(X, Y, verbose=0)
    assert [id(v) for v in model.optimizer.variables] == [id(v) for v in before]


def test_only_the_first_fit_standardises_targets_on_training_rows():
    model = untraced()
    model.fit(X, Y, validation_split=0.25, verbose=0)
    shift, scale = model.likelihood.target_shift, model.likelihood.target_scale
    np.testing.assert_allclose(shift, Y[:45].mean(axis=0), rtol=1e-6)
    np.testing.assert_allclose(scale, Y[:45].std(axis=0), rtol=1e-6)
    model.fit(X, 100.0 * Y, verbose=0)
    np.testing.assert_allclose(shift, Y[:45].mean(axis=0), rtol=1e-6)


def test_fit_that_fails_before_its_first_step_leaves_nothing_behind():
    model = untraced()
    for y in (Y[:10], np.where(np.arange(60) == 7, np.nan, Y[:, 0])):
        with pytest.raises(ValueError, match=r"cardinality|finite"):
            model.fit(X, y, verbose=0)
        assert not model.likelihood.adapted
        assert model.num_rows is None
        assert not any(layer.kl_weight_is_set for layer in model.variational_layers)
    model.fit(X, Y, verbose=0)
    np.testing.assert_allclose(model.likelihood.target_shift, Y.mean(axis=0), rtol=1e-6)


def test_users_see_raw_units_everywhere():
    model = regression()
    model.compile("sgd", metrics=["mae"], run_eagerly=True)
    model.fit(X, Y, verbose=0)
    # A new network is off by some standard deviations, 30; the targets are near 500.
    prediction = model.predictive(X)
    assert np.abs(prediction.mean - Y).mean() < 100
    assert np.abs(model.predict(X, verbose=0) - Y).mean() < 100
    assert model.evaluate(X, Y, verbose=0, return_dict=True)["mae"] < 100
    assert 10 < np.sqrt(prediction.aleatoric.mean()) < 100


def test_kl_schedule_is_compiled_saved_and_kept_to(tmp_path):
    model = regression()
    schedule = tfbbb.kl_schedules.LinearWarmup(epochs=4, each_batch=False)
    model.compile("adam", kl_schedule=schedule, run_eagerly=True)
    history = model.fit(X, Y, epochs=5, verbose=0).history
    expected = [schedule.temperature(epoch, 0, 2, 60) for epoch in range(5)]
    np.testing.assert_allclose(history["temperature"], expected)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.kl_schedule == schedule
    with pytest.raises(ValueError, match=r"Unknown.*'blundell'.*Received"):
        model.compile("adam", kl_schedule="poison")


def test_callbacks_may_come_in_any_form():
    model = untraced()
    seen = []
    own = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: seen.append(logs["temperature"])
    )
    listed = keras.callbacks.CallbackList([own], model=model, steps=2)
    for callbacks in (own, (own,), listed, listed):
        model.fit(X, Y, callbacks=callbacks, verbose=0)
    model.fit(X, Y, None, 1, 0, [own])
    assert seen == [1.0] * 5
    assert listed.callbacks.count(own) == 1
    assert len(listed.callbacks) == 1


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: regression().evaluate(X, Y, verbose=0), "Call `fit` first"),
        (lambda: regression().compile("adam", loss="mse"), "leave `loss` out"),
        (
            lambda: regression().compile("adam", loss_weights=[0.1]),
            r"Leave `loss_weights` out.*Received: loss_weights=\[0\.1\]",
        ),
        (lambda: regression().fit(X, np.ones(60)), "Target 0 is constant"),
        (
            lambda: regression().fit(X, np.where(np.arange(60) == 7, np.nan, Y[:, 0])),
            r"in row 7",
        ),
        (lambda: regression(Categorical()).fit(X, LABELS), "at least two classes"),
        (lambda: regression(units=2).fit(X, Y), r"shape \[rows, 2\]"),
        (lambda: regression(Normal(heteroscedastic=True)), r"2 \* num_targets units"),
        (lambda: regression("poison"), r"'categorical', .*'normal'.*'poison'"),
    ],
)
def test_mistakes_are_named(act, message):
    with pytest.raises(ValueError, match=message):
        act()


@pytest.mark.usefixtures("compiled_functions")
def test_yesterdays_posterior_is_todays_prior_in_the_same_units():
    def build(prior, likelihood):
        inputs = keras.Input((3,))
        layer = DenseVariational(1, prior=prior, bias_prior=prior, name="only")
        return tfbbb.BayesianModel(inputs, layer(inputs), likelihood=likelihood)

    yesterday = build("normal", "normal")
    yesterday.compile("adam", run_eagerly=True)
    yesterday.fit(X, Y, verbose=0)
    prior = tfbbb.priors.FromPosterior(yesterday)
    today = build(prior, "normal")
    today.compile("adam", run_eagerly=True)
    with pytest.warns(UserWarning, match=r"likelihood=yesterday\.likelihood"):
        today.fit(X, 10.0 * Y, verbose=0)
    today = build(prior, yesterday.likelihood)
    today.compile("adam", run_eagerly=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        today.fit(X, 10.0 * Y, verbose=0)
