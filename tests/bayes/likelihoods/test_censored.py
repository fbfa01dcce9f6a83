"""Times of which some are cut off."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from scipy import stats

import tfbbb
from tfbbb.bayes.likelihoods import LogNormal, Weibull

GENERATOR = np.random.default_rng(0)
KINDS = [(LogNormal, False), (LogNormal, True), (Weibull, False), (Weibull, True)]
EVERY = pytest.mark.parametrize(("family", "heteroscedastic"), KINDS)


def cut_off(times, limits):
    """Times and events [n, 2]: 0 where a row was still running at its limit."""
    happened = times <= limits
    return np.stack([np.where(happened, times, limits), happened], axis=1)


TARGETS = cut_off(
    12.0 * GENERATOR.weibull(1.5, size=400), GENERATOR.uniform(1.0, 30.0, size=400)
)


def built(family, heteroscedastic=False, targets=TARGETS):
    likelihood = family(heteroscedastic=heteroscedastic, censored=True)
    likelihood.build((None, likelihood.num_outputs(1)))
    likelihood.adapt(targets)
    return likelihood


def outputs_for(likelihood, *rows):
    width = likelihood.num_outputs(1)
    return 0.7 * np.random.default_rng(1).normal(size=(*rows, width))


@EVERY
def test_events_have_the_density_and_others_the_log_survival(family, heteroscedastic):
    likelihood = built(family, heteroscedastic)
    outputs = outputs_for(likelihood, 4)
    for time in (0.5, 9.0, 40.0):
        times = np.full((4, 1), time)
        density, running = (
            np.exp(likelihood.log_prob(np.hstack([times, np.full((4, 1), x)]), outputs))
            for x in (1.0, 0.0)
        )
        expected = likelihood.prob(times, outputs)[:, 0]
        np.testing.assert_allclose(density, expected, rtol=1e-9)
        survival = 1.0 - likelihood.cdf(times, outputs)[:, 0].numpy()
        np.testing.assert_allclose(running, survival, rtol=1e-7, atol=1e-12)


@EVERY
def test_log_survival_and_its_gradient_are_right_far_in_the_tail(
    family, heteroscedastic
):
    likelihood = built(family, heteroscedastic)
    outputs = outputs_for(likelihood, 1)
    found = {name: x.numpy() for name, x in likelihood.parameters(outputs).items()}
    loc, scale = found["loc"][0, 0], found["scale"][0, 0]
    z, expected = 30.0, stats.norm.logsf(30.0)
    if family is Weibull:
        z, expected = 6.0, -np.exp(6.0 - np.euler_gamma)
    time = np.exp(loc + z * scale)
    log_prob = likelihood.log_prob([[time, 0.0]], outputs).numpy()
    np.testing.assert_allclose(log_prob, expected, rtol=1e-6)
    for precision in ("float32", "float64"):
        moved = tf.Variable(tf.cast(outputs, precision))
        for target in ([time, 0.0], [time, 1.0], [1e-30, 0.0], [1e-30, 1.0]):
            with tf.GradientTape() as tape:
                value = likelihood.log_prob(tf.cast([target], precision), moved)
            assert np.isfinite(tape.gradient(value, moved)).all()
    # A row that is still running raises its location.
    later = [[np.exp(loc + 2.0 * scale), 0.0]]
    with tf.GradientTape() as tape:
        value = likelihood.log_prob(tf.cast(later, precision), moved)
    assert tape.gradient(value, moved)[0, 0] > 0.0


@EVERY
def test_answers_are_about_the_time_whenever_it_is_cut_off(family, heteroscedastic):
    likelihood = built(family, heteroscedastic)
    plain = family(heteroscedastic=heteroscedastic)
    plain.build((None, plain.num_outputs(1)))
    plain.set_weights(likelihood.get_weights())
    outputs = outputs_for(likelihood, 5)
    for name in ("mean", "variance"):
        found, expected = (getattr(x, name)(outputs) for x in (likelihood, plain))
        np.testing.assert_array_equal(found, expected)
    for name in ("cdf", "prob", "quantile", "sample"):
        given = [0.3, outputs] if name != "sample" else [outputs, outputs[:, :1]]
        found, expected = (getattr(x, name)(*given) for x in (likelihood, plain))
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("family", [LogNormal, Weibull])
def test_start_does_not_take_limits_for_times(family):
    logs = GENERATOR.normal(3.0, 0.8, size=4000)
    targets = cut_off(np.exp(logs), np.full(4000, 12.0))
    assert targets[:, 1].mean() < 0.3
    likelihood = built(family, targets=targets)
    # Of 1000 events of 4000 rows: some 3 per cent of a deviation.
    assert likelihood.target_shift.numpy() == pytest.approx(3.0, abs=0.15)
    assert likelihood.target_scale.numpy() == pytest.approx(0.8, abs=0.1)


@pytest.mark.parametrize(
    ("targets", "said"),
    [
        ([[1.0, 2.0], [2.0, 1.0]], "tells the event"),
        ([[1.0, np.nan], [2.0, 1.0]], "tells the event"),
        ([[1.0, 0.0], [2.0, 0.0]], "happened in no row"),
        ([[0.0, 1.0], [2.0, 1.0]], "must be"),
        ([[1.0], [2.0]], "must have the shape"),
    ],
)
def test_wrong_targets_are_named(targets, said):
    with pytest.raises(ValueError, match=said):
        built(Weibull, targets=np.array(targets))


def network(likelihood):
    columns = {"x": keras.Input((), name="x")}
    x = keras.ops.expand_dims(columns["x"], -1)
    outputs = tfbbb.layers.DenseVariational(likelihood.num_outputs(1))(x)
    return tfbbb.BayesianModel(columns, outputs, likelihood=likelihood)


def test_rows_that_were_cut_off_recalibrate_nothing():
    model = network(Weibull(censored=True))
    model.likelihood.adapt(TARGETS)
    with pytest.raises(ValueError, match="cut off do not tell"):
        model.recalibrate({"x": np.zeros(len(TARGETS), "float32")}, TARGETS)
