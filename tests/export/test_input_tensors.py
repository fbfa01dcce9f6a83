"""An exported model takes the inputs that the live model takes."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfbbb
from service.predicting.table import from_columns, from_rows
from tfbbb.export.inputs import to_tensors
from tfbbb.layers import Conv2DVariational, DenseVariational, EmbeddingVariational

GENERATOR = np.random.default_rng(0)
TOKENS = GENERATOR.integers(1, 9, (4, 6))
IMAGES = GENERATOR.integers(0, 256, (4, 4, 3, 1))
TEXTS = np.array([["a b"], ["c"], ["d"], ["b z"]])
COLUMNS = {
    "age": GENERATOR.normal(size=4),
    "rooms": np.array([3, 4, 5, 3]),
    "city": np.array(["a", "b", "z", "a"]),
    "sold": np.array([True, False, True, True]),
}


def of_tokens():
    inputs = keras.Input((6,), dtype="int32")
    hidden = keras.layers.GlobalMaxPooling1D()(EmbeddingVariational(9, 2)(inputs))
    return inputs, hidden


def of_images():
    inputs = keras.Input((4, 3, 1), dtype="uint8")
    scaled = keras.layers.Rescaling(1 / 255)(inputs)
    return inputs, keras.layers.Flatten()(Conv2DVariational(1, 2)(scaled))


def of_texts():
    inputs = keras.Input((1,), dtype="string")
    words = keras.layers.TextVectorization(6, output_sequence_length=2)
    words.adapt(["a b", "c"])
    return inputs, keras.layers.Flatten()(EmbeddingVariational(6, 2)(words(inputs)))


def of_columns():
    dtypes = {"age": None, "rooms": "int32", "city": "string", "sold": "bool"}
    inputs = {
        name: keras.Input((1,), name=name, dtype=dtype)
        for name, dtype in dtypes.items()
    }
    one_hot = {"output_mode": "one_hot"}
    hidden = keras.layers.Concatenate()(
        [
            inputs["age"],
            keras.layers.IntegerLookup(vocabulary=[3, 5], **one_hot)(inputs["rooms"]),
            keras.layers.CategoryEncoding(6, **one_hot)(inputs["rooms"]),
            keras.layers.StringLookup(vocabulary=["a", "b"], **one_hot)(inputs["city"]),
            keras.layers.Hashing(3, **one_hot)(inputs["city"]),
            keras.ops.cast(inputs["sold"], "float32"),
        ]
    )
    return inputs, hidden


def of_double():
    inputs = keras.Input((2,), dtype="float64")
    return inputs, inputs


# Network, inputs, and values that are not of the type of an input.
KINDS = {
    "tokens": (of_tokens, TOKENS, [(TOKENS + 0.5, r"\d\.5"), (TOKENS + 2**32, r"\d+")]),
    "images": (of_images, IMAGES, [(IMAGES + 256, r"\d+")]),
    "texts": (of_texts, TEXTS, [(np.ones((4, 1)), r"1\.0|float32")]),
    "columns": (
        of_columns,
        COLUMNS,
        [
            (COLUMNS | {"rooms": [3.5, 4, 5, 3]}, r"3\.5"),
            (COLUMNS | {"sold": np.array([1, 0, 1, 2])}, "2"),
        ],
    ),
    "float64": (of_double, GENERATOR.normal(size=(4, 2)), []),
}
SLOW = ("tokens", "texts", "columns", "float64")


@pytest.fixture(
    scope="module",
    params=[
        # Tables have columns of the other types: see `test_columns.py`.
        pytest.param(kind, id=name, marks=[pytest.mark.slow] if name in SLOW else [])
        for name, kind in KINDS.items()
    ],
)
def case(request, tmp_path_factory):
    """Returns the model, its inputs, wrong ones, the loaded model and its file."""
    network, x, wrong = request.param
    inputs, hidden = network()
    model = tfbbb.BayesianModel(inputs, DenseVariational(1)(hidden))
    path = tmp_path_factory.mktemp("models") / "model"
    model.export_predictive(path)
    return model, x, wrong, tfbbb.load(path), path


def test_live_loaded_and_signature_answer_alike(case):
    model, x, _, loaded, path = case
    expected = model.predictive(x, method="local").mean
    np.testing.assert_allclose(loaded.predictive(x).mean, expected, rtol=1e-5)
    np.testing.assert_allclose(loaded.predict(x)["mean"], expected, rtol=1e-5)
    signature = tf.saved_model.load(path).signatures["serving_default"]
    named = x if isinstance(x, dict) else {"inputs": x}
    _, specs = signature.structured_input_signature
    assert {spec.dtype for spec in specs.values()} == {
        tf.as_dtype(tensor.dtype) for tensor in model.inputs
    }
    answer = signature(**{n: tf.cast(v, specs[n].dtype) for n, v in named.items()})
    np.testing.assert_allclose(answer["mean"], expected, rtol=1e-5)


def test_rows_of_the_service_are_those_of_python(case):
    _, x, _, loaded, _ = case
    manifest = loaded.manifest
    expected = to_tensors(x, manifest)
    if isinstance(x, dict):
        plain = {name: values.tolist() for name, values in x.items()}
        found = [from_columns(plain, manifest)]
        found.append(from_columns({n: v[:, None] for n, v in x.items()}, manifest))
    else:
        flat = x.reshape(len(x), -1)
        found = [
            from_rows(x.tolist(), manifest, "instances"),
            from_rows(flat.tolist(), manifest, "instances"),
            from_columns({"inputs": x}, manifest),
        ]
    for given in found:
        tensors = to_tensors(given, manifest)
        for name, values in expected.items():
            assert tensors[name].dtype == values.dtype
            np.testing.assert_array_equal(tensors[name], values)


def test_values_outside_the_type_of_an_input_are_refused(case):
    model, _, wrong, loaded, _ = case
    for x, received in wrong:
        ending = rf"Received: ({received})"
        with pytest.raises(ValueError, match=rf"The input '.*{ending}"):
            model.predictive(x)
        with pytest.raises(ValueError, match=rf"Row \d, column .*{ending}"):
            loaded.predictive(x)


@pytest.mark.parametrize("shape", [(None,), (None, 3), ()])
def test_input_of_unknown_size_is_refused_before_any_work(shape, tmp_path):
    inputs = keras.Input(shape)
    pooled = keras.layers.Lambda(
        lambda x: keras.ops.reshape(x, (-1, 1))[:1], output_shape=(1,)
    )(inputs)
    model = tfbbb.BayesianModel(inputs, DenseVariational(1)(pooled))
    with pytest.raises(ValueError, match=r"one length.*Received: inputs of shape"):
        model.export_predictive(tmp_path / "model")
