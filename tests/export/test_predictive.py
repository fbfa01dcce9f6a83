"""What `tfbbb.load` gives predicts as the model that was exported."""

import itertools
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfbbb
from tfbbb import likelihoods
from tfbbb.bayes.posteriors import MeanFieldNormal
from tfbbb.layers import DenseVariational

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(12, 3)).astype("float32")
WIDE = MeanFieldNormal(initial_scale=1.0)
# Single precision; what differs is the order of its sums.
CLOSE = {"rtol": 1e-5, "atol": 1e-6}

NUMBERS = 50.0 + 10.0 * GENERATOR.normal(size=(12, 2))
LABELS = np.arange(12) % 3

ENGINES = ("numpy", "tensorflow")


def network(likelihood, units, members=1):
    keras.utils.set_random_seed(0)
    inputs = keras.Input((3,))
    hidden = DenseVariational(5, "tanh", posterior=WIDE)(inputs)
    outputs = DenseVariational(units, posterior=WIDE)(hidden)
    return tfbbb.BayesianModel(inputs, outputs, likelihood=likelihood, members=members)


def refuses(prediction, targets):
    try:
        prediction.log_prob(targets)
    except ValueError as error:
        return "The targets" in str(error)
    return False


def assert_same(found, expected, targets, ordered):
    assert set(found.to_numpy()) == set(expected.to_numpy())
    for name, values in expected.to_numpy().items():
        np.testing.assert_allclose(found.to_numpy()[name], values, **CLOSE)
    names = ["log_prob", "log_prob_of_draws"]
    for name in [*names, "cdf"] if ordered else names:
        np.testing.assert_allclose(
            getattr(found, name)(targets), getattr(expected, name)(targets), **CLOSE
        )
    if ordered:
        np.testing.assert_allclose(
            found.quantile([0.1, 0.5]), expected.quantile([0.1, 0.5]), **CLOSE
        )
    np.testing.assert_allclose(found.sample(6), expected.sample(6), **CLOSE)
    np.testing.assert_allclose(found.joint_sample(3), expected.joint_sample(3), **CLOSE)
    assert found.discrete == expected.discrete
    assert found.num_samples == expected.num_samples


def assert_same_signature(path, live):
    signatures = tf.saved_model.load(str(path)).signatures
    method = tfbbb.export.Manifest.read(path).method
    asked = {
        "inputs": tf.constant(X),
        "num_samples": tf.constant(20),
        "seed": tf.constant(5),
    }
    expected = live.predictive(X, 20, method, seed=5)
    for name, values in signatures["predict"](**asked).items():
        np.testing.assert_allclose(values, getattr(expected, name), **CLOSE)


@pytest.fixture(scope="module")
def exported_ensemble(tmp_path_factory):
    live = network(likelihoods.Normal(heteroscedastic=True), 4, members=3)
    live.likelihood.adapt(NUMBERS)
    path = tmp_path_factory.mktemp("ensemble")
    live.export_predictive(path / "1", num_samples=60, seed=4)
    shutil.copytree(path / "1", path / "2")
    return live, path


@pytest.fixture(scope="module")
def exported_classes(tmp_path_factory):
    live = network("categorical", 3)
    path = tmp_path_factory.mktemp("classes") / "1"
    live.export_predictive(path, classes=["no", "some", "all"])
    return live, path


@pytest.fixture(scope="module", params=ENGINES)
def ensemble(exported_ensemble, request):
    live, path = exported_ensemble
    loaded = tfbbb.load(path, engine=request.param)
    return SimpleNamespace(live=live, path=path, loaded=loaded)


@pytest.fixture(scope="module", params=ENGINES)
def classes(exported_classes, request):
    live, path = exported_classes
    loaded = tfbbb.load(path, engine=request.param)
    return SimpleNamespace(live=live, path=path, loaded=loaded)


def test_an_ensemble_answers_from_a_file_as_live(ensemble):
    for by in ("local", "weight"):
        found = ensemble.loaded.predictive(X, 20, by, seed=5)
        expected = ensemble.live.predictive(X, 20, by, seed=5)
        assert_same(found, expected, NUMBERS, ordered=True)
    assert_same_signature(ensemble.path / "2", ensemble.live)


@pytest.mark.slow
@pytest.mark.parametrize("structure", ["diagonal", "full"])
def test_a_linearised_network_answers_from_a_file_as_live(structure, tmp_path):
    method = tfbbb.inference.Laplace(structure, prior_precision=1.0)
    given = network(likelihoods.Normal(heteroscedastic=True), 4)
    live = method.fit(given, X, NUMBERS, verbose=0)
    live.export_predictive(tmp_path / "1")
    for by, engine in itertools.product(("linearised", "weight"), ENGINES):
        loaded = tfbbb.load(tmp_path / "1", engine=engine)
        found = loaded.predictive(X, 20, by, seed=5)
        expected = live.predictive(X, 20, by, seed=5)
        assert_same(found, expected, NUMBERS, ordered=True)


def test_classes_are_answered_from_a_file_as_live(classes):
    for by in ("local", "weight"):
        found = classes.loaded.predictive(X, 20, by, seed=5)
        expected = classes.live.predictive(X, 20, by, seed=5)
        assert_same(found, expected, LABELS, ordered=False)
    assert_same_signature(classes.path, classes.live)
    for value in (-1e19, -1.0, 0.0, 0.5, 1.0, 2.0, 1e13, 1e19):
        given = np.full(12, value)
        assert refuses(found, given) == refuses(expected, given)


def test_defaults_come_from_the_manifest(ensemble):
    expected = ensemble.live.predictive(X, 60, "local", seed=4)
    for arguments in ({}, {"method": "auto"}, {"num_samples": 60, "seed": 4}):
        found = ensemble.loaded.predictive(X, **arguments)
        np.testing.assert_allclose(found.mean, expected.mean, **CLOSE)
        np.testing.assert_allclose(
            found.between_members, expected.between_members, **CLOSE
        )
    assert repr(found) == "Predictive(rows=12, targets=2, num_samples=60)"
    batches = tf.data.Dataset.from_tensor_slices(X).batch(5)
    of_batches = ensemble.loaded.predictive(batches)
    np.testing.assert_array_equal(of_batches.mean, found.mean)


def test_blocks_change_no_draw(ensemble):
    whole = ensemble.loaded.predictive(X, 60, "weight")
    cut = ensemble.loaded.predictive(X, 60, "weight", max_memory_mb=0.01)
    for name, values in whole.to_numpy().items():
        np.testing.assert_allclose(cut.to_numpy()[name], values, **CLOSE)
    np.testing.assert_allclose(cut.quantile(0.3), whole.quantile(0.3), **CLOSE)
    np.testing.assert_allclose(cut.joint_sample(4), whole.joint_sample(4), **CLOSE)


def test_draws_serve_the_next_prediction(ensemble, monkeypatch):
    loaded = ensemble.loaded
    first = loaded.predictive(X)

    def refuse(*arguments):
        pytest.fail("It draws again.")

    monkeypatch.setattr(loaded._passes["local"], "draw", refuse)
    again = loaded.predictive(X)
    np.testing.assert_array_equal(first.mean, again.mean)
    np.testing.assert_array_equal(loaded.predictive(X[3:4]).mean.shape, (1, 2))


def test_threads_get_the_answers_one_thread_gets(ensemble):
    def ask(seed):
        prediction = ensemble.loaded.predictive(X, 12, "weight", seed % 3)
        return np.concatenate([prediction.mean, prediction.quantile(0.2)])

    alone = [ask(seed) for seed in range(24)]
    with ThreadPoolExecutor(6) as pool:
        np.testing.assert_array_equal(list(pool.map(ask, range(24))), alone)


def test_what_signatures_do_not_read_is_not_stored(ensemble):
    reader = tf.train.load_checkpoint(str(ensemble.path / "2/variables/variables"))
    shapes = list(reader.get_variable_to_shape_map().values())
    # Mean and variance of each kernel; neither log scales nor the priors', and each of
    # these once for all methods.
    assert shapes.count([3, 3, 5]) == 2
    assert shapes.count([3, 5, 4]) == 2


def test_classes_have_their_names(classes):
    prediction = classes.loaded.predictive(X, 50)
    assert repr(prediction) == (
        "Predictive(rows=12, classes=['no', 'some', 'all'], num_samples=50)"
    )
    frame = prediction.to_pandas()
    np.testing.assert_array_equal(
        frame["probabilities_some"], prediction.probabilities[:, 1]
    )
    assert "entropy" in frame
    with pytest.raises(ValueError, match="no order and hence no quantiles"):
        prediction.quantile(0.5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "flipout"}, r"no such method, but 'auto', 'local', 'weight'\."),
        ({"method": "linearised"}, "Export .* again with `method='linearised'`"),
        ({"num_samples": 1}, "`num_samples` must be at least 2"),
        ({"seed": 2**31}, r"below 2\*\*31"),
        ({"max_memory_mb": 0.0}, "max_memory_mb"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(ensemble, arguments, message):
    with pytest.raises(ValueError, match=message):
        ensemble.loaded.predictive(X, **arguments)


@pytest.fixture(scope="module")
def cubes(tmp_path_factory):
    """A model with a lookup table and a layer that is not Keras'."""

    class Cubed(keras.layers.Layer):
        def call(self, inputs):
            return inputs**3

    inputs = {"city": keras.Input((), dtype="string", name="city")}
    lookup = keras.layers.StringLookup(vocabulary=["a", "b"], output_mode="one_hot")
    hidden = Cubed(name="cubed")(DenseVariational(4)(lookup(inputs["city"])))
    live = tfbbb.BayesianModel(inputs, DenseVariational(1)(hidden))
    path = tmp_path_factory.mktemp("cubes") / "1"
    live.export_predictive(path)
    return SimpleNamespace(live=live, path=path, loaded=tfbbb.load(path))


def test_lookup_tables_are_saved_with_the_functions_that_read_them(cubes):
    rows = {"city": ["a", "b", "c"]}
    found = cubes.loaded.predictive(rows, 20)
    expected = cubes.live.predictive({"city": np.array(["a", "b", "c"])}, 20, "local")
    np.testing.assert_allclose(found.mean, expected.mean, **CLOSE)
    assert len(np.unique(found.mean)) == 3


def test_model_of_lookup_tables_says_that_it_needs_tensorflow(cubes):
    assert cubes.loaded.manifest.numpy.missing == (
        "The model reads objects such as lookup tables."
    )
    with pytest.raises(ValueError, match=r'tables. Load .* `engine="tensorflow"`'):
        tfbbb.load(cubes.path, engine="numpy")


@pytest.mark.slow
def test_everything_is_answered_where_there_is_tensorflow_alone(
    exported_ensemble, exported_classes
):
    program = """
import sys
paths = sys.argv[1:]
for name in ["keras", "tf_keras", "tensorflow_probability", "sklearn", "matplotlib"]:
    sys.modules[name] = None  # Importing it raises.
import numpy as np
import tfbbb
x = np.ones((4, 3))
for path in paths:
    loaded = tfbbb.load(path, engine="tensorflow")
    for method in loaded.manifest.passes:
        prediction = loaded.predictive(x, 30, method)
        assert isinstance(prediction, tfbbb.Predictive)
        y = prediction.mean
        if loaded.manifest.task == "classification":
            y = y.argmax(axis=1)
        else:
            prediction.interval(0.9), prediction.cdf(y)
        prediction.log_prob(y), prediction.sample(3), prediction.joint_sample(2)
        prediction.to_numpy(), prediction.stddev, prediction.between_members
"""
    paths = [str(path) for _, path in (exported_ensemble, exported_classes)]
    subprocess.run([sys.executable, "-c", program, *paths], check=True)
