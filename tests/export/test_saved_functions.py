"""The functions of a SavedModel, without TensorFlow's loader."""

import gc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from tfbbb.export.saved_functions import SavedFunction, load_functions

X = np.array([[1.0, 2.0, 3.0], [0.5, 0.0, -0.5]], dtype=np.float32)


class Table(tf.Module):
    """A function that reads a variable and a constant, and calls other functions."""

    def __init__(self) -> None:
        self.weights = tf.Variable([[1.0], [2.0], [3.0]])
        offset = tf.constant([0.5])

        @tf.function(input_signature=[tf.TensorSpec([None, 3])])
        def predict(x: tf.Tensor) -> dict[str, tf.Tensor]:
            def step(i: tf.Tensor, total: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
                return i + 1, total + x @ self.weights + offset

            _, total = tf.while_loop(lambda i, _: i < 3, step, (0, tf.zeros([2, 1])))
            # Its `output_type` is the default, which a SavedModel omits.
            place = tf.argmax(x, axis=1)
            branches = [lambda: tf.constant("none"), lambda: tf.constant("some")]
            return {
                "total": total,
                "place": place,
                "branch": tf.switch_case(tf.cast(place[1] + 1, tf.int32), branches),
            }

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


def test_threads_predict_while_other_models_come_and_end(path: Path) -> None:
    kept = load_functions(path)
    expected = kept.predict(tf.constant(X))["total"].numpy()

    def use(_: int) -> bool:
        other = load_functions(path).predict(tf.constant(X))["total"]
        found = [kept.predict(tf.constant(X))["total"] for _ in range(20)]
        return all(np.array_equal(x, expected) for x in (other, *found))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(use, range(40)))


def test_a_function_of_several_types_is_loaded_by_tensorflow(tmp_path: Path) -> None:
    module = tf.Module()
    module.twice = tf.function(lambda x: x + x)
    module.twice(tf.constant(1)), module.twice(tf.constant(1.0))
    tf.saved_model.save(module, tmp_path)
    twice = load_functions(tmp_path).twice
    assert (int(twice(tf.constant(2))), float(twice(tf.constant(0.5)))) == (4, 1.0)


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
