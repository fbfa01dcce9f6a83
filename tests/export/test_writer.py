"""Exported models answer as the live ones do, with TensorFlow alone."""

from types import SimpleNamespace

import keras
import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf

import tfbbb
from tests.small_disk import small_disk
from tfbbb.bayes.likelihoods import Normal
from tfbbb.bayes.posteriors import MeanFieldNormal
from tfbbb.export import Manifest, load, write_saved_model
from tfbbb.layers import DenseVariational
from tfbbb.tables import Schema, preprocessing

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(20, 3)).astype("float32")
Y = np.array([500.0, -2.0]) + np.array([30.0, 0.1]) * GENERATOR.normal(size=(20, 2))
# Single precision; what differs is the order of its sums.
CLOSE = {"rtol": 1e-5, "atol": 1e-6}

# Names that Keras, TensorFlow or Python use, and names that are no identifiers.
NUMBERS = ["mg/dl", "1st", "a b", "a_b", "A B", "seed", "Levels", "class", "größe", "x"]
TEXTS = ["num_samples", "inputs", "_hidden", "self", "args", "kwargs", "name"]


def body(features, units):
    wide = MeanFieldNormal(initial_scale=1.0)
    hidden = DenseVariational(5, "tanh", posterior=wide)(features)
    return DenseVariational(units, posterior=wide)(hidden)


def network(units, likelihood):
    keras.utils.set_random_seed(0)
    inputs = keras.Input((3,))
    model = tfbbb.BayesianModel(inputs, body(inputs, units), likelihood=likelihood)
    model.compile()
    return model


def exported(model, x, path, **description):
    model.export_predictive(path, **description)
    return SimpleNamespace(
        live=model,
        x=x,
        path=path,
        loaded=load(path),
        signatures=tf.saved_model.load(str(path)).signatures,
    )


@pytest.fixture(scope="module")
def two_targets(tmp_path_factory):
    model = network(4, Normal(heteroscedastic=True))
    model.fit(X, Y, verbose=0)
    path = tmp_path_factory.mktemp("two") / "1"
    description = {
        "feature_names": ["age", "bmi", "bp"],
        "target": "progression",
        "units": "mmol/l",
        "metrics": {"rmse": 3},
    }
    options = {"method": "weight", "num_samples": 2, "seed": -7}
    return exported(model, X, path, **description, **options)


@pytest.fixture(scope="module")
def classes(tmp_path_factory):
    path = tmp_path_factory.mktemp("classes") / "1"
    return exported(network(3, "categorical"), X, path, classes=["no", "some", "all"])


@pytest.fixture(scope="module")
def columns(tmp_path_factory):
    numbers = {name: GENERATOR.normal(size=20) for name in NUMBERS}
    numbers["x"] = [None, *numbers["x"][1:]]
    texts = {name: GENERATOR.choice(["u", "v", ""], size=20) for name in TEXTS}
    table = pa.table({**texts, **numbers, "target": GENERATOR.normal(size=20)})
    schema = Schema.infer(table, "target")
    inputs, features = preprocessing(schema)
    model = tfbbb.BayesianModel(inputs, body(features, 1))
    model.likelihood.adapt(schema.targets(table))
    path = tmp_path_factory.mktemp("columns") / "1"
    return exported(model, schema.inputs(table), path, schema=schema)


@pytest.fixture(params=["two_targets", "classes", "columns"])
def case(request):
    return request.getfixturevalue(request.param)


def live(case, num_samples, seed):
    return case.live.predictive(
        case.x, num_samples=num_samples, method=case.loaded.manifest.method, seed=seed
    )


def test_signatures_have_the_types_and_shapes_that_they_promise(case):
    manifest = case.loaded.manifest
    asked = {"num_samples": ([], "int32"), "seed": ([], "int32")}
    features = {
        feature.tensor: (
            ([None, 3], "float32")
            if manifest.inputs == "matrix"
            else ([None], "float32" if feature.kind == "numeric" else "string")
        )
        for feature in manifest.features
    }
    inputs = {
        "serving_default": features,
        "predict": features | asked,
        "draws": features | asked,
    }
    assert set(case.signatures) == set(inputs)
    width = live(case, 2, 0).mean.shape[1]
    shapes = {"entropy": [None], "mutual_information": [None]}
    for name, signature in case.signatures.items():
        _, specs = signature.structured_input_signature
        found = {key: (x.shape.as_list(), x.dtype.name) for key, x in specs.items()}
        assert found == inputs[name]
        for key, output in signature.structured_outputs.items():
            assert output.dtype == "float32"
            if name != "draws":
                assert output.shape.as_list() == shapes.get(key, [None, width])


@pytest.mark.slow
def test_moments_of_a_signature_have_gradients_by_the_inputs(two_targets):
    # Derivatives need the variables, which live as long as the model.
    saved = tf.saved_model.load(str(two_targets.path))
    signature = saved.signatures["predict"]
    given = {"num_samples": tf.constant(20), "seed": tf.constant(3)}

    def moments(x):
        found = signature(inputs=x, **given)
        return tf.stack([found[name][:, 0] for name in ("mean", "variance")])

    row, step = tf.constant(X[:1]), tf.constant([[0.0, 0.02, 0.0]])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(row)
        each = tf.unstack(moments(row))
    found = [tape.gradient(moment, row)[0, 1] for moment in each]
    expected = (moments(row + step) - moments(row - step)) / 0.04
    np.testing.assert_allclose(found, np.ravel(expected), rtol=0.02)


def test_draws_are_the_outputs_of_the_network_under_each_draw(two_targets):
    # The likelihood says what they are: here means in standard units, and noise.
    signature = two_targets.signatures["draws"]
    given = {"num_samples": tf.constant(20), "seed": tf.constant(3)}
    outputs = signature(inputs=tf.constant(X), **given)["outputs"]
    assert outputs.shape[:2] == (20, 20)
    means = two_targets.live.likelihood.mean(outputs)
    expected = live(two_targets, 20, 3)
    np.testing.assert_allclose(np.mean(means, axis=1), expected.mean, **CLOSE)
    np.testing.assert_allclose(means, expected.ask("mean"), **CLOSE)


def test_columns_keep_their_names_whatever_tensorflow_calls_them(columns):
    features = columns.loaded.manifest.features
    assert [feature.name for feature in features] == [*TEXTS, *NUMBERS]
    tensors = [feature.tensor for feature in features]
    assert len({tensor.lower() for tensor in tensors}) == len(tensors)
    assert not {"seed", "num_samples"} & {t.lower() for t in tensors}
    by_name = {feature.name: feature for feature in features}
    assert by_name["x"].missing
    assert by_name["x"].tensor == "x"
    assert not by_name["1st"].missing
    assert by_name["inputs"].kind == "categorical"


def test_manifest_says_what_the_model_is(two_targets, classes):
    manifest = Manifest.read(two_targets.path)
    assert manifest == two_targets.loaded.manifest
    assert manifest.task == "regression"
    assert manifest.inputs == "matrix"
    assert [feature.name for feature in manifest.features] == ["age", "bmi", "bp"]
    assert (manifest.target, manifest.units) == ("progression", "mmol/l")
    assert manifest.num_rows == 20
    assert manifest.kl_weight == pytest.approx(1 / 20)
    assert manifest.metrics == {"rmse": 3.0}
    assert manifest.method == "weight"
    assert (manifest.default_num_samples, manifest.default_seed) == (2, -7)
    values = two_targets.live.likelihood.to_values()["values"]
    assert manifest.likelihood == {
        "class_name": "Normal",
        "output_shape": [None, 4],
        "values": {name: value.tolist() for name, value in values.items()},
        "config": {
            "heteroscedastic": True,
            "scale": None,
            "standardize": True,
            "resolution": None,
        },
    }
    # Mean and scale of 3 x 5 + 5 and of 5 x 4 + 4 weights.
    assert [layer.num_parameters for layer in manifest.layers] == [40, 48]
    assert manifest.layers[0].class_name == "DenseVariational"
    assert manifest.libraries["tensorflow"] == tf.__version__
    manifest.verify(two_targets.path)

    untrained = classes.loaded.manifest
    assert (untrained.num_rows, untrained.kl_weight) == (None, None)
    assert [feature.name for feature in untrained.features] == ["x0", "x1", "x2"]
    assert untrained.method == "local"
    assert (untrained.default_num_samples, untrained.default_seed) == (100, 0)
    assert untrained.classes == ("no", "some", "all")


def test_full_disk_is_named(two_targets, tmp_path):
    needed = sum(p.stat().st_size for p in two_targets.path.rglob("*") if p.is_file())
    with small_disk(tmp_path, int(0.99 * needed)):
        with pytest.raises(OSError, match="No space left") as caught:
            two_targets.live.export_predictive(tmp_path / "models/1", method="weight")
        assert list(tmp_path.iterdir()) == []
    assert caught.value.filename == str(tmp_path / "models")


def test_existing_path_is_refused_before_anything_is_written(two_targets, tmp_path):
    (tmp_path / "1").mkdir()
    with pytest.raises(FileExistsError, match="choose a path that does not exist"):
        two_targets.live.export_predictive(tmp_path / "1")
    assert [path.name for path in tmp_path.rglob("*")] == ["1"]


@pytest.mark.parametrize(
    ("description", "message"),
    [
        (
            {"method": "exact"},
            r"'local', 'weight', 'linearised'\. Received: method='exact'",
        ),
        ({"num_samples": 1}, r"at least 2 .*num_samples=1"),
        ({"seed": 2**31}, r"below 2\*\*31\. Received: seed=2147483648"),
        ({"metrics": {"rmse": float("nan")}}, r"metric 'rmse' must be finite"),
        ({"feature_names": ["a", "b"]}, r"takes 3 features.*\['a', 'b'\]"),
        ({"feature_names": ["a", "b", "a"]}, r"a name of its own.*\['a', 'b', 'a'\]"),
    ],
)
def test_description_that_does_not_fit_is_refused(
    two_targets, tmp_path, description, message
):
    with pytest.raises(ValueError, match=message):
        two_targets.live.export_predictive(tmp_path / "name" / "1", **description)
    assert list(tmp_path.iterdir()) == []


def test_names_that_do_not_fit_classes_or_columns_are_refused(
    classes, columns, tmp_path
):
    with pytest.raises(ValueError, match=r"has 3 classes\. Received: 2 class names"):
        classes.live.export_predictive(tmp_path / "1", classes=["no", "yes"])
    with pytest.raises(ValueError, match=r"must be those of the model's inputs"):
        columns.live.export_predictive(tmp_path / "1", feature_names=["a"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "inputs",
    [
        lambda: keras.Input((None, 3)),
        lambda: [keras.Input((3,)), keras.Input((3,))],
        lambda: {"a": keras.Input((2,), name="a"), "b": keras.Input((), name="b")},
    ],
    ids=[
        "sequences of any length",
        "two matrices",
        "a dictionary of more than columns",
    ],
)
def test_inputs_that_no_table_gives_are_refused(inputs, tmp_path):
    given = inputs()
    flat = [
        keras.layers.GlobalMaxPooling1D()(x)
        if len(x.shape) == 3
        else keras.layers.Flatten()(x)
        for x in tf.nest.flatten(given)
    ]
    joined = keras.layers.Concatenate()(flat) if len(flat) > 1 else flat[0]
    model = tfbbb.BayesianModel(given, DenseVariational(1)(joined))
    with pytest.raises(ValueError, match=r"or a dictionary of columns"):
        model.export_predictive(tmp_path / "1")
    assert list(tmp_path.iterdir()) == []


def test_only_a_bayesian_model_is_exported(tmp_path):
    model = keras.Sequential([keras.Input((3,)), DenseVariational(1, kl_weight=0.1)])
    with pytest.raises(ValueError, match=r"Only a `tfbbb\.BayesianModel`"):
        write_saved_model(model, tmp_path / "plain")
