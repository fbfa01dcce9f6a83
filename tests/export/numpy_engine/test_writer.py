"""A SavedModel gets functions for NumPy if they give the same answers."""

import shutil

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfbbb
from tfbbb.export.manifest import NUMPY_PATH
from tfbbb.export.numpy_engine import writer

layers = tfbbb.layers
GENERATOR = np.random.default_rng(0)


def test_a_network_with_a_loop_answers_by_numpy_as_by_tensorflow(tmp_path):
    inputs = keras.Input((6,), dtype="int32")
    hidden = layers.EmbeddingVariational(10, 4, mask_zero=True)(inputs)
    hidden = keras.layers.LayerNormalization()(layers.LSTMVariational(3)(hidden))
    model = tfbbb.BayesianModel(inputs, layers.DenseVariational(1)(hidden))
    x = GENERATOR.integers(0, 10, (5, 6))
    model.export_predictive(tmp_path / "1", num_samples=20)
    one, other = (
        tfbbb.load(tmp_path / "1", engine=engine) for engine in ("numpy", "tensorflow")
    )
    assert one.manifest.numpy is not None
    assert 0.0 <= one.manifest.numpy.difference < 1e-5
    assert NUMPY_PATH in one.manifest.files
    found, expected = one.predict(x), other.predict(x)
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, 1e-4, 1e-6)
    for question in ("quantiles", "intervals"):
        np.testing.assert_allclose(
            one.ask(question, x, [0.2, 0.9]), other.ask(question, x, [0.2, 0.9]), 1e-5
        )
    np.testing.assert_allclose(one.ask("sample", x), other.ask("sample", x), 1e-4, 1e-5)


class Determinant(keras.layers.Layer):
    def call(self, inputs):
        pairs = inputs[:, tf.newaxis, :] * inputs[:, :, tf.newaxis]
        return tf.linalg.det(pairs)[:, tf.newaxis]


def test_operation_without_counterpart_is_named(tmp_path):
    inputs = keras.Input((2,))
    outputs = layers.DenseVariational(1)(Determinant()(inputs))
    tfbbb.BayesianModel(inputs, outputs).export_predictive(tmp_path / "1")
    found = tfbbb.export.Manifest.read(tmp_path / "1").numpy
    assert found.missing == "NumPy lacks operations of the model: MatrixDeterminant."
    assert found.difference is None
    assert not (tmp_path / "1" / NUMPY_PATH).exists()
    # It is answered all the same.
    assert tfbbb.load(tmp_path / "1").predict([[1.0, 2.0]])["mean"].shape == (1, 1)


def test_large_weights_are_left_to_tensorflow(regression, monkeypatch):
    monkeypatch.setattr(writer, "_MOST_BYTES", 8)
    with pytest.raises(writer.NeedsTensorFlowError, match="The weights have 0 MB"):
        writer.numpy_functions(tf.saved_model.load(str(regression)), {})


def test_functions_that_differ_are_not_written(regression, tmp_path, monkeypatch):
    copy = shutil.copytree(regression, tmp_path / "1")
    (copy / NUMPY_PATH).unlink()
    monkeypatch.setattr(writer, "_LARGEST_DIFFERENCE", -1.0)
    root = tf.saved_model.load(str(copy))
    found = writer.write_numpy_functions(copy, tfbbb.export.Manifest.read(copy), root)
    assert "The answers of NumPy differ from those of TensorFlow by" in found.missing
    assert not (copy / NUMPY_PATH).exists()


def test_rows_without_a_finite_answer_leave_others_theirs(regression):
    model = tfbbb.load(regression, engine="numpy")
    rows = np.array([[1.0, 2.0, 3.0], [3e38, 3e38, 3e38]])
    found = model.predict(rows)["variance"]
    assert np.isfinite(found[0])
    assert not np.isfinite(found[1])
    with pytest.raises(ValueError, match=r"no finite answer .* row 1 of 2"):
        model.predictive(rows)


def test_unknown_engine_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"'auto', 'numpy'.* Received: engine='onnx'"):
        tfbbb.load(tmp_path, engine="onnx")
