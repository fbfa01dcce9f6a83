"""The functions of a SavedModel, without TensorFlow's loader."""

import gc
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from tfbbb.export import saved_functions
from tfbbb.export.saved_functions import SavedFunction, load_functions

X = np.array([[1.0, 2.0, 3.0], [0.5, 0.0, -0.5]], dtype=np.float32)


class Table(tf.Module):
    """A function that reads a constant, and one that calls others in a loop."""

    def __init__(self) -> None:
        self.weights = tf.Variable([[1.0], [2.0], [3.0]])
        offset = tf.constant([0.5])

        @tf.function(input_signature=[tf.TensorSpec([None, 3])])
        def predict(x: tf.Tensor) -> dict[str, tf.Tensor]:
            def step(i: tf.Tensor, total: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
                return i + 1, total + x @ self.weights + offset

            _, total = tf.while_loop(lambda i, _: i < 3, step, (0, tf.zeros([2, 1])))
            # Its `output_type` is the default, which a SavedModel omits.
            return {"total": total, "place": tf.argmax(x, axis=1)}

        self.predict = predict.get_concrete_function()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    table = Table()
    tf.saved_model.save(table, tmp_path, signatures={"predict": table.predict})
    return tmp_path


def test_functions_are_those_that_tensorflow_loads(path: Path) -> None:
    root = load_functions(path)
    theirs = tf.saved_model.load(path)
    expected = theirs.predict(tf.constant(X))
    np.testing.assert_allclose(expected["total"], 3 * (X @ [[1], [2], [3]] + 0.5))
    for function in (root.predict, root.signatures["predict"]):
        assert isinstance(function, SavedFunction)
        found = function(tf.constant(X))
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            np.testing.assert_array_equal(found[name], value)
    ours, other = root.signatures["predict"], theirs.signatures["predict"]
    assert (
        ours.structured_input_signature[1].keys()
        == other.structured_input_signature[1].keys()
    )
    assert ours.structured_outputs.keys() == other.structured_outputs.keys()
    assert [x.dtype for x in ours.inputs] == [tf.float32]


def test_loads_of_one_file_do_not_share_functions(path: Path) -> None:
    first, second = load_functions(path), load_functions(path)
    expected = first.predict(tf.constant(X))["total"]
    name = first.predict.name
    assert name != second.predict.name
    # It ends at once, not when Python next looks for cycles.
    del first
    np.testing.assert_array_equal(second.predict(tf.constant(X))["total"], expected)
    with pytest.raises(tf.errors.InternalError, match="Can't find a function"):
        tf.raw_ops.StatefulPartitionedCall(args=[], Tout=[tf.float32], f=name)


def test_a_function_outlives_the_root(path: Path) -> None:
    predict = load_functions(path).predict
    gc.collect()
    assert predict(tf.constant(X))["place"].numpy().tolist() == [2, 0]


def test_models_go_on_when_others_end(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cleared = []
    clear = saved_functions.clear_kernels
    monkeypatch.setattr(
        saved_functions, "clear_kernels", lambda: cleared.append(clear())
    )
    kept = load_functions(path)
    expected = kept.predict(tf.constant(X))["total"]
    for _ in range(16):
        load_functions(path).predict(tf.constant(X))
        gc.collect()
        np.testing.assert_array_equal(kept.predict(tf.constant(X))["total"], expected)
    assert len(cleared) == 2


def test_a_model_with_lookup_tables_is_loaded_by_tensorflow(tmp_path: Path) -> None:
    class Lookup(tf.Module):
        def __init__(self) -> None:
            values = tf.lookup.KeyValueTensorInitializer(["a", "b"], [1.0, 2.0])
            self.table = tf.lookup.StaticHashTable(values, 0.0)

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def predict(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
            return {"found": self.table.lookup(x)}

    lookup = Lookup()
    signature = lookup.predict.get_concrete_function()
    tf.saved_model.save(lookup, tmp_path, signatures={"predict": signature})
    predict = load_functions(tmp_path).signatures["predict"]
    assert not isinstance(predict, SavedFunction)
    assert predict(x=tf.constant(["b", "c"]))["found"].numpy().tolist() == [2.0, 0.0]


def test_exported_models_need_no_other_loader(
    regression: Path, columns: Path, classification: Path, monkeypatch
) -> None:
    def refuse(path: str) -> None:
        raise AssertionError(path)

    monkeypatch.setattr(tf.saved_model, "load", refuse)
    for path in (regression, classification, columns):
        load_functions(path)
