"""Requests that TensorFlow Serving answers before the requests of clients.

The first request of a signature takes far longer than the next. A file
`assets.extra/tf_serving_warmup_requests` of records that each hold one `PredictionLog`
is replayed when a version is loaded. The messages are defined in `tensorflow_serving`'s
`prediction_log.proto`, `predict.proto` and `model.proto`, which TensorFlow does not
bring; they hold nothing but other messages and text, so that a few lines write them.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import tensorflow as tf

from tfbbb.base.types import ArrayLike

WARM_UP_PATH = "assets.extra/tf_serving_warmup_requests"

# Numbers of the fields, by message.
_PREDICT_LOG = 6  # PredictionLog
_REQUEST = 1  # PredictLog
_MODEL_SPEC, _INPUTS = 1, 2  # PredictRequest
_NAME, _SIGNATURE_NAME = 1, 3  # ModelSpec
_KEY, _VALUE = 1, 2  # An entry of a map
_LENGTH_DELIMITED = 2

_OF_ARGUMENTS = {"num_samples": 100, "seed": 0, "levels": [0.05, 0.5, 0.95]}


def write_warm_up(
    directory: Path,
    model_name: str,
    signatures: Mapping[str, tf.types.experimental.ConcreteFunction],
) -> None:
    """Writes one request of one row for each signature."""
    path = directory / WARM_UP_PATH
    path.parent.mkdir(exist_ok=True)
    with tf.io.TFRecordWriter(str(path)) as writer:
        for name, function in sorted(signatures.items()):
            writer.write(prediction_log(model_name, name, _one_row(function)))


def prediction_log(
    model_name: str, signature_name: str, inputs: Mapping[str, ArrayLike]
) -> bytes:
    """Returns a `PredictionLog` of one request, as protocol buffers write it."""
    model_spec = _text(_NAME, model_name) + _text(_SIGNATURE_NAME, signature_name)
    request = _field(_MODEL_SPEC, model_spec)
    for name, value in sorted(inputs.items()):
        tensor = tf.make_tensor_proto(value).SerializeToString()
        request += _field(_INPUTS, _text(_KEY, name) + _field(_VALUE, tensor))
    return _field(_PREDICT_LOG, _field(_REQUEST, request))


def _one_row(
    function: tf.types.experimental.ConcreteFunction,
) -> dict[str, np.ndarray]:
    positional, named = function.structured_input_signature
    values = {}
    for spec in tf.nest.flatten((positional, named)):
        value = _OF_ARGUMENTS.get(spec.name, "?" if spec.dtype == tf.string else 0)
        if spec.name not in _OF_ARGUMENTS:
            value = tf.fill([size or 1 for size in spec.shape], value)
        values[spec.name] = tf.cast(value, spec.dtype).numpy()
    return values


def _text(number: int, text: str) -> bytes:
    return _field(number, text.encode())


def _field(number: int, contents: bytes) -> bytes:
    return _varint(number << 3 | _LENGTH_DELIMITED) + _varint(len(contents)) + contents


def _varint(value: int) -> bytes:
    """Returns seven bits to a byte, the least first; all but the last have a flag."""
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
