"""Copies of models: untrained ones, and ones with all that was fitted."""

import copy
import pickle

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfbbb
from tfbbb import likelihoods, recalibration
from tfbbb.layers import DenseVariational
from tfbbb.model.inference_result import InferenceResult

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(24, 3)).astype("float32")
Y = 500.0 + 30.0 * X[:, :2] + 5.0 * GENERATOR.normal(size=(24, 2))


def untrained(cls=tfbbb.BayesianModel, units=2, likelihood="student_t", **options):
    inputs = keras.Input((3,))
    hidden = DenseVariational(4, "tanh")(inputs)
    outputs = DenseVariational(units)(hidden)
    model = cls(inputs, outputs, likelihood=likelihood, **options)
    model.compile("adam", kl_schedule="linear_warmup", run_eagerly=True)
    return model


@pytest.fixture(scope="module")
def fitted():
    keras.utils.set_random_seed(0)
    model = untrained(likelihood=likelihoods.StudentT(standardize=True), members=2)
    model.fit(X, Y, verbose=0)
    model.recalibration = recalibration.VarianceScaling([1.5, 2.0])
    model.inference = InferenceResult("by hand", -3.0, {"curve": np.arange(3.0)})
    model.familiarity = tfbbb.Familiarity.fit(X)
    locations = model.likelihood.locations(Y)
    model.extrapolation = tfbbb.Extrapolation(
        model.familiarity, locations, [0.5, 0.2], np.ones((3, 2))
    )
    return model


def from_json(model):
    return keras.models.model_from_json(model.to_json())


def from_own_config(model):
    return type(model).from_config(model.get_config())


def nested(**options):
    def copied(model):
        outer = keras.Sequential([keras.Input((3,)), model])
        return keras.models.clone_model(outer, **options).layers[0]

    return copied


def cloned(**options):
    return lambda model: keras.models.clone_model(model, **options)


UNTRAINED = {
    "clone": cloned(),
    "clone on tensors": lambda model: cloned(input_tensors=keras.Input((3,)))(model),
    "recursive clone": cloned(recursive=True),
    "config": from_own_config,
    "json": from_json,
    "nested": nested(),
}


@pytest.mark.parametrize("copied", UNTRAINED.values(), ids=UNTRAINED)
def test_untrained_copies_have_the_config_and_nothing_fitted(fitted, copied):
    new = copied(fitted)
    assert type(new) is tfbbb.BayesianModel
    assert len(new.members) == 2
    assert new.likelihood is not fitted.likelihood
    assert new.likelihood.get_config() == fitted.likelihood.get_config()
    assert fitted.likelihood.adapted
    assert not new.likelihood.adapted
    assert new.recalibration is new.inference is new.num_rows is None
    assert new.familiarity is new.extrapolation is None
    for one, other in zip(new.layers[1:], fitted.layers[1:], strict=True):
        assert one.get_config() == other.get_config()
    assert not {id(v) for v in new.variables} & {id(v) for v in fitted.variables}
    if new.compiled:
        assert new.kl_schedule == fitted.kl_schedule


def in_file(model, path):
    model.save(path / "model.keras")
    return keras.saving.load_model(path / "model.keras")


def weights_in_file(model, path):
    model.save_weights(path / "model.weights.h5")
    new = keras.models.clone_model(model)
    new.load_weights(path / "model.weights.h5")
    return new


FITTED = {
    "file": in_file,
    "weights": weights_in_file,
    "pickle": lambda model, _: pickle.loads(pickle.dumps(model)),
    "copy": lambda model, _: copy.copy(model),
    "deepcopy": lambda model, _: copy.deepcopy(model),
    "same layers": lambda model, _: cloned(clone_function=lambda x: x)(model),
}


@pytest.mark.parametrize("copied", FITTED.values(), ids=FITTED)
def test_fitted_copies_answer_alike(fitted, copied, tmp_path):
    new = copied(fitted, tmp_path)
    assert new.recalibration == fitted.recalibration
    assert new.num_rows == 24
    assert new.log_evidence == -3.0
    np.testing.assert_array_equal(new.diagnostics["curve"], [0.0, 1.0, 2.0])
    np.testing.assert_array_equal(new.familiarity(X), fitted.familiarity(X))
    np.testing.assert_array_equal(
        new.extrapolation.stddev(4 * X), fitted.extrapolation.stddev(4 * X)
    )
    one, other = (model.predictive(X, num_samples=4) for model in (new, fitted))
    np.testing.assert_allclose(one.log_prob(Y), other.log_prob(Y), rtol=1e-5)
    np.testing.assert_allclose(one.interval(0.9), other.interval(0.9), rtol=1e-6)
    # The copy has a likelihood of its own.
    new.likelihood.target_shift.assign([0.0, 0.0])
    assert fitted.likelihood.target_shift.numpy().min() > 400


@keras.saving.register_keras_serializable(package="test_copies")
class Scaled(tfbbb.BayesianModel):
    def __init__(self, inputs, outputs, name=None, *, factor=1.0, **options):
        super().__init__(inputs, outputs, name=name, **options)
        self.factor = factor


@keras.saving.register_keras_serializable(package="test_copies")
class Told(Scaled):
    def get_config(self):
        return {**super().get_config(), "factor": self.factor}


@pytest.mark.parametrize(
    ("cls", "copied"),
    [(Scaled, cloned()), (Told, from_own_config), (Scaled, copy.deepcopy)],
)
def test_copies_of_subclasses_keep_further_arguments(cls, copied):
    new = copied(untrained(cls, factor=3.0))
    assert type(new) is cls
    assert new.factor == 3.0
    assert isinstance(new.likelihood, likelihoods.StudentT)


def test_an_argument_that_no_config_tells_is_refused():
    model = untrained(Scaled, factor=np.ones(2))
    with pytest.raises(NotImplementedError, match=r"`factor`.*Define `get_config`"):
        keras.models.clone_model(model)
    assert cloned()(untrained(Told, factor=[1, 2])).factor == [1, 2]


def test_an_average_is_copied_with_its_recalibration_or_refused():
    mixture = tfbbb.average([untrained(), untrained()], weights=[1.0, 3.0])
    mixture.recalibration = recalibration.VarianceScaling(2.0)
    new = copy.deepcopy(mixture)
    assert new.recalibration == mixture.recalibration
    np.testing.assert_array_equal(new.mixture_weights, [0.25, 0.75])
    assert from_own_config(mixture).recalibration is None
    with pytest.raises(TypeError, match=r"`ModelAverage.from_config"):
        keras.models.clone_model(mixture)


def test_models_made_with_one_likelihood_have_one_each():
    likelihood = likelihoods.Normal()
    first = untrained(likelihood=likelihood)
    assert first.likelihood is likelihood
    likelihood.adapt(Y)
    before = likelihood.raw_noise.numpy()
    second = untrained(likelihood=likelihood, members=3)
    np.testing.assert_allclose(second.likelihood.target_shift, Y.mean(axis=0))
    second.likelihood.raw_noise.assign(np.full((3, 2), 7.0))
    np.testing.assert_array_equal(likelihood.raw_noise, before)
    with pytest.raises(ValueError, match=r"parameters of another shape.*\(2,\) for"):
        untrained(units=1, likelihood=likelihood)


def test_networks_are_taken_in_place_of_inputs_and_outputs():
    network = keras.Sequential([keras.Input((3,)), DenseVariational(3)])
    model = tfbbb.BayesianModel(network, likelihood="categorical", name="of_network")
    assert model.name == "of_network"
    assert model.variational_layers == network.layers


class Subclassed(keras.Model):
    def call(self, inputs):
        return inputs


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (lambda: keras.Sequential([DenseVariational(3)]), r"Begin a `Sequential`"),
        (Subclassed, r"pass `inputs, network\(inputs\)`"),
        (untrained, r"has a likelihood already.*clone_model"),
    ],
    ids=["unbuilt", "subclassed", "Bayesian"],
)
def test_networks_without_a_graph_are_refused(network, message):
    with pytest.raises(ValueError, match=message):
        tfbbb.BayesianModel(network())


def test_unknown_arguments_are_refused():
    with pytest.raises(TypeError, match="Received: likelihod"):
        untrained(likelihod="categorical")


@pytest.mark.parametrize("act", ["save", "load_weights"])
def test_files_h5_of_models_with_a_likelihood_are_refused(fitted, act, tmp_path):
    inputs = keras.Input((3,))
    nested = keras.Model(inputs, fitted(inputs))
    for run in (getattr(fitted, act), nested.save):
        with pytest.raises(ValueError, match=r"Use `.keras` for models.*Received"):
            run(tmp_path / "model.h5")


# Exports of Keras.


def test_keras_exports_the_predictive(tmp_path):
    network = keras.Sequential([keras.Input((3,)), DenseVariational(3)])
    model = tfbbb.BayesianModel(network, likelihood="categorical")
    model.export(tmp_path / "exported")
    served = tf.saved_model.load(str(tmp_path / "exported")).signatures
    found = served["serving_default"](inputs=tf.constant(X))["probabilities"]
    expected = model.predictive(X).probabilities
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"format": "litert"}, r"'tf_saved_model', 'onnx'.*Received: format='litert'"),
        ({"input_signature": [X]}, "Leave `input_signature` out"),
    ],
)
def test_other_exports_are_refused(fitted, options, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        fitted.export(tmp_path / "exported", **options)


def export_by_keras(model, path):
    model.export(path, verbose=False)


@pytest.mark.usefixtures("compiled_functions")
@pytest.mark.parametrize("export", [export_by_keras, tf.saved_model.save])
def test_exported_draws_of_plain_models_are_warned_of(export, tmp_path):
    model = keras.Sequential([keras.Input((3,)), DenseVariational(2, name="only")])
    with pytest.warns(UserWarning, match=r"one random draw.*`export_predictive`"):
        export(model, str(tmp_path / "exported"))
    loaded = tf.saved_model.load(str(tmp_path / "exported"))
    served = loaded.signatures["serving_default"]
    (name,) = served.structured_input_signature[1]
    draws = [*served(**{name: tf.constant(X)}).values()]
    draws += [*served(**{name: tf.constant(X)}).values()]
    assert draws[0].shape == (24, 2)
    assert np.any(draws[0] != draws[1])
