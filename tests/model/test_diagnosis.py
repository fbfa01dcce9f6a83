import keras
import numpy as np
import pytest

import tfbbb
from tests.repeated_calls import running_functions
from tfbbb.bayes.divergences import kl_divergence
from tfbbb.layers import DenseVariational
from tfbbb.model.inference_result import InferenceResult

N = 200
GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(2 * N, 3)).astype("float32")
Y = 20.0 + X[:, :1] - 2.0 * X[:, 1:2] + GENERATOR.normal(0.0, 0.5, (2 * N, 1))
HELD_OUT = X[N:], Y[N:]
# Weights start at their prior, N(0, 1 / fan_in).
AT_PRIOR = {
    "prior": "normal",
    "posterior": tfbbb.posteriors.MeanFieldNormal(initial_scale=1.0),
    "kernel_initializer": "zeros",
    "use_bias": False,
}


def linear(likelihood="normal", units=1, **options):
    inputs = keras.Input((3,))
    outputs = DenseVariational(units, name="last", **options)(inputs)
    return tfbbb.BayesianModel(inputs, outputs, likelihood=likelihood)


@running_functions(eagerly=False)
def fitted(model, y=Y, epochs=20):
    model.compile(keras.optimizers.Adam(0.05))
    model.fit(X[:N], y[:N], epochs=epochs, batch_size=20, verbose=0)
    return model


@pytest.fixture(scope="module")
def trained():
    keras.utils.set_random_seed(0)
    return fitted(linear())


def names(diagnosis):
    return [finding.name for finding in diagnosis.findings]


def test_weights_at_their_prior_have_collapsed_and_cost_nothing():
    diagnosis = tfbbb.diagnose(linear(**AT_PRIOR), *HELD_OUT)
    assert diagnosis.at_prior == 1.0
    assert diagnosis.kl_per_row == pytest.approx(0.0, abs=1e-6)
    assert {"kl_weight_unset", "collapsed"} <= set(names(diagnosis))
    assert diagnosis.layers[0].signal_to_noise == 0.0


def test_a_trained_model_has_no_findings(trained):
    diagnosis = tfbbb.diagnose(trained, *HELD_OUT)
    assert not diagnosis.findings
    assert "Nothing is wrong with these figures." in str(diagnosis)
    # A normal of the standard deviation 0.5 in place of that of the targets.
    expected = np.log(np.std(Y[N:]) / 0.5)
    # The mean over 200 rows of two half squares of normals, four standard errors.
    assert diagnosis.gain == pytest.approx(expected, abs=4.0 * np.sqrt(1.0 / N))
    assert diagnosis.temperatures == {"last": pytest.approx(1.0)}
    assert diagnosis.penalty == pytest.approx(diagnosis.kl_per_row)


def test_figures_are_those_of_the_metrics(trained):
    diagnosis = tfbbb.diagnose(trained, *HELD_OUT)
    prediction = trained.predictive(X[N:])
    share = prediction.epistemic.sum() / prediction.variance.sum()
    assert diagnosis.epistemic_share == pytest.approx(share)
    assert diagnosis.coverage == tfbbb.metrics.interval_coverage(prediction, Y[N:])
    assert diagnosis.nll == tfbbb.metrics.negative_log_likelihood(prediction, Y[N:])
    kl = sum(float(kl_divergence(w, None)) for w in trained.variational_weights)
    assert diagnosis.kl_per_row == pytest.approx(kl / N, rel=1e-5)


def test_a_wrong_kl_weight_is_found_by_its_temperature():
    model = linear(kl_weight=1.0, **AT_PRIOR)
    model.num_rows = N
    diagnosis = tfbbb.diagnose(model, *HELD_OUT)
    assert diagnosis.wrong_temperatures == {"last": N}
    assert "the temperature is 200 in last." in str(diagnosis)
    model.variational_layers[0].kl_weight.assign(1.0 / N)
    assert "kl_weight_wrong" not in names(tfbbb.diagnose(model, *HELD_OUT))


def test_shifted_targets_are_outside_their_intervals(trained):
    diagnosis = tfbbb.diagnose(trained, X[N:], Y[N:] + 3.0)
    assert {"learned_nothing", "too_sure"} <= set(names(diagnosis))
    # The mean of every row is its target.
    exact = trained.predictive(X[N:]).mean
    assert "too_unsure" in names(tfbbb.diagnose(trained, X[N:], exact))


def test_intervals_below_zero_of_positive_targets_are_found():
    y = np.exp(GENERATOR.normal(size=(N, 1)))
    model = linear()
    model.likelihood.adapt(y)
    diagnosis = tfbbb.diagnose(model, X[:N], y)
    assert diagnosis.below_zero > 0.5
    assert "below_zero" in names(diagnosis)
    positive = linear("log_normal")
    positive.likelihood.adapt(y)
    assert tfbbb.diagnose(positive, X[:N], y).below_zero == 0.0


def test_classes_have_a_calibration_error_and_the_entropy_of_their_shares():
    classes = (X[:, 0] > 0.0).astype(int)
    model = fitted(linear("categorical", units=2), classes, epochs=5)
    diagnosis = tfbbb.diagnose(model, X[N:], classes[N:])
    assert diagnosis.coverage is None
    prediction = model.predictive(X[N:])
    error = tfbbb.metrics.expected_calibration_error(prediction, classes[N:])
    assert diagnosis.calibration_error == error
    share = classes[N:].mean()
    entropy = -share * np.log(share) - (1.0 - share) * np.log(1.0 - share)
    assert diagnosis.nll_of_constant == pytest.approx(entropy)
    wrong = tfbbb.diagnose(model, X[N:], 1 - classes[N:])
    assert "too_sure" in names(wrong)
    one_hot = tfbbb.diagnose(model, X[N:], np.eye(2)[classes[N:]])
    assert one_hot == diagnosis


def test_point_weights_have_no_posterior_to_diagnose():
    model = linear(posterior="point", bias_posterior="point")
    diagnosis = tfbbb.diagnose(model, *HELD_OUT)
    assert diagnosis.layers == ()
    assert diagnosis.at_prior is None
    assert "temperature" not in str(diagnosis)


def test_a_posterior_of_an_inference_method_needs_no_kl_weight():
    model = linear()
    model.inference = InferenceResult("Laplace()")
    diagnosis = tfbbb.diagnose(model, *HELD_OUT)
    assert diagnosis.method == "Laplace()"
    assert "kl_weight_unset" not in names(diagnosis)
    assert "temperature" not in [name for name, *_ in diagnosis.rows()]
