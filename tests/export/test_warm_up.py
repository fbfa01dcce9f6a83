"""The warm-up file holds requests as TensorFlow Serving's protocol has them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework.tensor_pb2 import TensorProto

from tfbbb.export.warm_up import WARM_UP_PATH, prediction_log, write_warm_up


def fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Gives number and contents of each field; all are length-delimited."""
    while message:
        tag, message = varint(message)
        assert tag & 7 == 2
        length, message = varint(message)
        assert length <= len(message)
        yield tag >> 3, message[:length]
        message = message[length:]


def varint(message: bytes) -> tuple[int, bytes]:
    value = 0
    for place, byte in enumerate(message):
        value |= (byte & 0x7F) << 7 * place
        if not byte & 0x80:
            return value, message[place + 1 :]
    raise AssertionError("The last byte of a number has no flag.")


def request(log: bytes) -> tuple[str, str, dict[str, np.ndarray]]:
    """Returns model, signature and inputs of a `PredictionLog`."""
    ((number, predict_log),) = fields(log)
    assert number == 6
    ((number, predict_request),) = fields(predict_log)
    assert number == 1
    (number, spec), *inputs = fields(predict_request)
    assert number == 1
    (name_number, name), (signature_number, signature) = fields(spec)
    assert (name_number, signature_number) == (1, 3)
    tensors = {}
    for number, entry in inputs:
        assert number == 2
        (key_number, key), (value_number, value) = fields(entry)
        assert (key_number, value_number) == (1, 2)
        tensor = TensorProto.FromString(value)
        tensors[key.decode()] = tf.make_ndarray(tensor)
    return name.decode(), signature.decode(), tensors


@pytest.mark.parametrize("rows", [1, 40, 5000])
def test_request_reads_back_as_it_was_whatever_its_length(rows: int) -> None:
    inputs = {
        "inputs": np.arange(2.0 * rows, dtype=np.float32).reshape(rows, 2),
        "region": np.array(["a", "größe"], dtype=object),
        "seed": np.int32(-1),
    }
    name, signature, found = request(prediction_log("houses", "predict", inputs))
    assert (name, signature) == ("houses", "predict")
    assert set(found) == set(inputs)
    np.testing.assert_array_equal(found["inputs"], inputs["inputs"])
    assert found["region"].tolist() == [b"a", "größe".encode()]
    assert (found["seed"], found["seed"].dtype) == (-1, np.int32)


def test_every_signature_is_asked_of_one_row(tmp_path: Path) -> None:
    def predict(number: Any, text: Any, levels: Any) -> dict[str, Any]:
        return {"sum": number + tf.strings.to_number(text) + tf.reduce_sum(levels)}

    specs = [
        tf.TensorSpec([None], tf.float32, name="number"),
        tf.TensorSpec([None], tf.string, name="text"),
        tf.TensorSpec([None], tf.float32, name="levels"),
    ]
    function = tf.function(predict).get_concrete_function(*specs)
    write_warm_up(tmp_path, "houses", {"b": function, "a": function})
    records = tf.data.TFRecordDataset(str(tmp_path / WARM_UP_PATH))
    requests = [request(record.numpy()) for record in records]
    assert [(name, signature) for name, signature, _ in requests] == [
        ("houses", "a"),
        ("houses", "b"),
    ]
    for _, _, inputs in requests:
        assert set(inputs) == {"number", "text", "levels"}
        assert inputs["number"].tolist() == [0.0]
        assert inputs["text"].tolist() == [b"?"]
        assert inputs["levels"].shape == (3,)
