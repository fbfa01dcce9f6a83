import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf

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


def kl_weights(model):
    return [float(layer.kl_weight.numpy()) for layer in model.variational_layers]


def test_fit_reports_loss_nll_and_kl_and_their_validation_twins():
    model = regression()
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


def test_fit_takes_the_sum_of_sample_weights_for_n():
    model = untraced()
    model.fit(X, Y, sample_weight=np.full(60, 0.5), verbose=0)
    np.testing.assert_allclose(kl_weights(model), 1 / 30, rtol=1e-6)


def test_fit_counts_a_dataset_and_believes_dataset_size():
    model = untraced()
    data = tf.data.Dataset.from_tensor_slices((X, Y)).batch(16)
    model.fit(data, verbose=0)
    np.testing.assert_allclose(kl_weights(model), 1 / 60, rtol=1e-6)
    model.fit(data.repeat(), steps_per_epoch=2, verbose=0)
    np.testing.assert_allclose(kl_weights(model), 1 / 60, rtol=1e-6)
    model.fit(data.repeat(), steps_per_epoch=2, dataset_size=1000, verbose=0)
    np.testing.assert_allclose(kl_weights(model), 1 / 1000, rtol=1e-6)


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


def test_targets_with_and_without_a_last_dimension_train_alike():
    def trained(y):
        keras.utils.set_random_seed(3)
        model = untraced()
        return model.fit(X, y, epochs=2, shuffle=False, verbose=0).history["nll"]

    np.testing.assert_allclose(trained(Y), trained(Y[:, 0]), rtol=1e-5)


def test_users_see_raw_units_everywhere():
    model = regression()
    model.compile(keras.optimizers.Adam(0.02), metrics=["mae"], steps_per_execution=48)
    # As one epoch: that of a few steps takes mostly Keras' own time.
    rows = tf.data.Dataset.from_tensor_slices((X, Y)).repeat(80).batch(10)
    model.fit(rows, dataset_size=60, verbose=0)
    prediction = model.predictive(X)
    assert np.abs(prediction.mean - Y).mean() < 10
    assert np.abs(model.predict(X, verbose=0) - Y).mean() < 15
    assert model.evaluate(X, Y, verbose=0, return_dict=True)["mae"] < 15
    # The noise is 5: within a factor of two, from 60 rows and a short training.
    assert 2.5 < np.sqrt(prediction.aleatoric.mean()) < 10


def test_loss_averages_over_rows_by_their_weights():
    model = untraced(likelihood=Normal(scale=3.0))
    model.fit(X, Y, verbose=0)
    outputs = model(X)
    weights = GENERATOR.uniform(size=60).astype("float32")
    per_row = -np.asarray(model.likelihood.log_prob(Y, outputs))
    loss = model.compute_loss(X, Y, outputs, sample_weight=weights)
    expected = np.average(per_row, weights=weights) + np.sum(model.losses)
    np.testing.assert_allclose(loss, expected, rtol=1e-5)


def test_classes_train_with_metrics_on_probabilities():
    inputs = keras.Input((3,))
    outputs = DenseVariational(2)(DenseVariational(8, "tanh")(inputs))
    model = tfbbb.BayesianModel(inputs, outputs, likelihood="categorical")
    model.compile(
        keras.optimizers.Adam(0.05), metrics=["accuracy"], steps_per_execution=12
    )
    rows = tf.data.Dataset.from_tensor_slices((X, LABELS)).repeat(6).batch(30)
    history = model.fit(rows, dataset_size=60, epochs=10, verbose=0).history
    # The figure of the history is that of one draw of the weights at each step.
    assert history["accuracy"][-1] > 0.7
    classes = model.predictive(X).probabilities.argmax(axis=1)
    assert np.mean(classes == LABELS) > 0.9


def test_compiled_model_takes_class_indices_and_one_hot_targets():
    inputs = keras.Input((3,))
    model = tfbbb.BayesianModel(
        inputs, DenseVariational(2)(inputs), likelihood=Categorical()
    )
    outputs = model(X)
    given = (LABELS, LABELS[:, np.newaxis], np.eye(2)[LABELS])
    losses = [model.compute_loss(X, targets, outputs) for targets in given]
    np.testing.assert_array_equal(losses[0], losses[1])
    np.testing.assert_array_equal(losses[0], losses[2])
    model.compile("sgd")
    # 20 divides the rows, so that the batch's shape is static in the trace.
    for targets in given:
        history = model.fit(X, targets, batch_size=20, verbose=0).history
        assert np.isfinite(history["nll"][0])


def test_saved_models_come_back_with_config_weights_and_predictive(tmp_path):
    model = untraced(likelihood=Normal(heteroscedastic=True), units=2)
    model.fit(X, Y, verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert isinstance(loaded, tfbbb.BayesianModel)
    assert loaded.likelihood.heteroscedastic
    assert loaded.num_rows == 60
    for mine, other in zip(model.weights, loaded.weights, strict=True):
        np.testing.assert_array_equal(mine, other)
    for mine, other in zip(
        model.variational_layers, loaded.variational_layers, strict=True
    ):
        assert mine.get_config() == other.get_config()
    first, second = (m.predictive(X, seed=4, method="local") for m in (model, loaded))
    np.testing.assert_array_equal(first.mean, second.mean)
    np.testing.assert_array_equal(first.variance, second.variance)


def test_kl_schedule_is_compiled_saved_and_kept_to(tmp_path):
    model = regression()
    schedule = tfbbb.kl_schedules.LinearWarmup(epochs=4, each_batch=False)
    model.compile("adam", kl_schedule=schedule)
    history = model.fit(X, Y, epochs=5, validation_split=0.2, verbose=0).history
    expected = [schedule.temperature(epoch, 0, 2, 48) for epoch in range(5)]
    np.testing.assert_allclose(history["temperature"], expected)
    loss = np.add(history["nll"], np.multiply(expected, history["kl"]) / 48)
    np.testing.assert_allclose(history["loss"], loss, rtol=1e-5)
    # Validation is at the temperature that the schedule leads to.
    val_loss = np.add(history["val_nll"], np.divide(history["val_kl"], 48))
    np.testing.assert_allclose(history["val_loss"], val_loss, rtol=1e-5)
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
    for callbacks in (own, [own], (own,), listed, listed):
        model.fit(X, Y, callbacks=callbacks, verbose=0)
    model.fit(X, Y, None, 1, 0, [own])
    assert seen == [1.0] * 6
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
        (
            lambda: regression(Normal(heteroscedastic=True)),
            r"2 \* num_targets units",
        ),
        (lambda: regression("poison"), r"'categorical', .*'normal'.*'poison'"),
    ],
)
def test_mistakes_are_named(act, message):
    with pytest.raises(ValueError, match=message):
        act()


def test_refuses_several_outputs():
    inputs = keras.Input((3,))
    outputs = [DenseVariational(1)(inputs), DenseVariational(1)(inputs)]
    with pytest.raises(ValueError, match="Received: 2 outputs"):
        tfbbb.BayesianModel(inputs, outputs)


def test_generator_trains_once_the_targets_are_known():
    model = untraced()

    def batches():
        while True:
            yield X[:20], Y[:20]

    arguments = {"steps_per_epoch": 2, "dataset_size": 60, "verbose": 0}
    with pytest.raises(ValueError, match=r"model\.likelihood\.adapt\(y\)"):
        model.fit(batches(), **arguments)
    model.likelihood.adapt(Y)
    model.fit(batches(), **arguments)
    np.testing.assert_allclose(kl_weights(model), 1 / 60, rtol=1e-6)


def test_yesterdays_posterior_is_todays_prior_in_the_same_units():
    def build(prior, likelihood):
        inputs = keras.Input((3,))
        layer = DenseVariational(1, prior=prior, bias_prior=prior, name="only")
        return tfbbb.BayesianModel(inputs, layer(inputs), likelihood=likelihood)

    yesterday = build("normal", "normal")
    yesterday.compile("adam")
    yesterday.fit(X, Y, verbose=0)
    prior = tfbbb.priors.FromPosterior(yesterday)
    today = build(prior, "normal")
    today.compile("adam")
    with pytest.warns(UserWarning, match=r"likelihood=yesterday\.likelihood"):
        today.fit(X, 10.0 * Y, verbose=0)
    today = build(prior, yesterday.likelihood)
    today.compile("adam")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        today.fit(X, 10.0 * Y, verbose=0)
