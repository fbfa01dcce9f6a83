"""Small SavedModels with the signatures of an export, written by hand.

Their answers are known: f(x, w) = 2 * sum(x) + 0.1 * w with w ~ N(0, 1) shared by
all rows, and y ~ N(f, 0.2^2). They need no Keras and no training.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf

from tests.exported_manifests import (
    CLASSES,
    COLUMN_FEATURES,
    HALF_PLUS_THREE_FEATURES,
    MATRIX_FEATURES,
    write_manifest,
)
from tfbbb.export.manifest import Feature

_DRAWS = (
    tf.TensorSpec([], tf.int32, name="num_samples"),
    tf.TensorSpec([], tf.int32, name="seed"),
)


def write_regression(directory: Path, bias: float = 0.0) -> Path:
    """Reads a matrix `[n, 3]`."""
    inputs = (tf.TensorSpec([None, 3], tf.float32, name="inputs"),)

    def network(inputs: Any) -> Any:
        return 2.0 * tf.reduce_sum(inputs, axis=1, keepdims=True) + bias

    return _write_regression(directory, MATRIX_FEATURES, inputs, network)


def write_half_plus_three(directory: Path) -> Path:
    """Reads a matrix `[n, 1]`; the mean is x / 2 + 3."""
    inputs = (tf.TensorSpec([None, 1], tf.float32, name="inputs"),)
    return _write_regression(
        directory, HALF_PLUS_THREE_FEATURES, inputs, lambda inputs: 0.5 * inputs + 3.0
    )


def write_columns(directory: Path) -> Path:
    """Reads four columns; a missing number counts 100, a text its length."""
    inputs = tuple(
        tf.TensorSpec(
            [None],
            tf.float32 if feature.kind == "numeric" else tf.string,
            name=feature.tensor,
        )
        for feature in COLUMN_FEATURES
    )

    def network(age: Any, blood_pressure: Any, sex: Any, region: Any) -> Any:
        pressure = tf.where(tf.math.is_nan(blood_pressure), 100.0, blood_pressure)
        lengths = tf.strings.length(sex) + 10 * tf.strings.length(region)
        total = age + pressure + tf.cast(lengths, tf.float32)
        return 2.0 * total[:, tf.newaxis]

    return _write_regression(directory, COLUMN_FEATURES, inputs, network)


def write_classification(directory: Path) -> Path:
    """Reads a matrix `[n, 3]`, the logits of three classes."""
    inputs = (tf.TensorSpec([None, 3], tf.float32, name="inputs"),)

    def predict(inputs: Any, num_samples: Any, seed: Any) -> dict[str, Any]:
        noise = _noise([num_samples, 1, 3], seed, 0)
        drawn = tf.nn.softmax(inputs + 0.1 * noise)
        probabilities = tf.reduce_mean(drawn, axis=0)
        entropy = _entropy(probabilities)
        return {
            "probabilities": probabilities,
            "entropy": entropy,
            "mutual_information": entropy - tf.reduce_mean(_entropy(drawn), axis=0),
            "mean_standard_error": tf.math.reduce_std(drawn, axis=0)
            / tf.sqrt(tf.cast(num_samples, tf.float32)),
        }

    def sample(inputs: Any, num_samples: Any, seed: Any) -> dict[str, Any]:
        logits = inputs + 0.1 * _noise([num_samples, 1, 3], seed, 0)
        uniform = tf.random.stateless_uniform(tf.shape(logits), tf.stack([seed, 1]))
        gumbel = -tf.math.log(-tf.math.log(uniform))
        return {"samples": tf.argmax(logits + gumbel, -1, tf.int32)}

    return _write(
        directory,
        MATRIX_FEATURES,
        CLASSES,
        {"predict": (predict, inputs), "sample": (sample, inputs)},
    )


def _write_regression(
    directory: Path,
    features: Sequence[Feature],
    inputs: Sequence[tf.TensorSpec],
    network: Callable[..., Any],
) -> Path:
    def drawn(num_samples: Any, seed: Any, columns: dict[str, Any]) -> Any:
        return network(**columns) + 0.1 * _noise([num_samples, 1, 1], seed, 0)

    def predict(num_samples: Any, seed: Any, **columns: Any) -> dict[str, Any]:
        values = drawn(num_samples, seed, columns)
        epistemic = tf.math.reduce_variance(values, axis=0)
        aleatoric = tf.fill(tf.shape(epistemic), 0.04)
        return {
            "mean": tf.reduce_mean(values, axis=0),
            "variance": epistemic + aleatoric,
            "epistemic": epistemic,
            "aleatoric": aleatoric,
            "mean_standard_error": tf.sqrt(
                epistemic / tf.cast(num_samples, tf.float32)
            ),
        }

    def sample(num_samples: Any, seed: Any, **columns: Any) -> dict[str, Any]:
        values = drawn(num_samples, seed, columns)
        return {"samples": values + 0.2 * _noise(tf.shape(values), seed, 1)}

    def quantiles(
        num_samples: Any, seed: Any, levels: Any, **columns: Any
    ) -> dict[str, Any]:
        ordered = tf.sort(sample(num_samples, seed, **columns)["samples"], axis=0)
        last = tf.cast(num_samples - 1, tf.float32)
        ranks = tf.cast(tf.round(levels * last), tf.int32)
        return {"quantiles": tf.transpose(tf.gather(ordered, ranks), [1, 0, 2])}

    levels = tf.TensorSpec([None], tf.float32, name="levels")
    return _write(
        directory,
        features,
        None,
        {
            "predict": (predict, inputs),
            "quantiles": (quantiles, (*inputs, levels)),
            "sample": (sample, inputs),
        },
    )


def _write(
    directory: Path,
    features: Sequence[Feature],
    classes: tuple[str, ...] | None,
    functions: dict[str, tuple[Callable[..., Any], Sequence[tf.TensorSpec]]],
) -> Path:
    module = tf.Module()
    # A captured variable, as every trained model has.
    module.one = tf.Variable(1.0)
    signatures = {}
    for name, (function, inputs) in functions.items():
        signatures[name] = _concrete(module, function, (*inputs, *_DRAWS))

    predict, inputs = functions["predict"]

    def serving_default(**columns: Any) -> dict[str, Any]:
        answer = predict(num_samples=100, seed=0, **columns)
        return {k: v for k, v in answer.items() if k != "mean_standard_error"}

    signatures["serving_default"] = _concrete(module, serving_default, inputs)
    tf.saved_model.save(module, str(directory), signatures=signatures)
    write_manifest(directory, features, classes)
    return directory


def _concrete(
    module: tf.Module, function: Callable[..., Any], specs: Sequence[tf.TensorSpec]
) -> Any:
    def scaled(**arguments: Any) -> dict[str, Any]:
        return {
            name: value * module.one if value.dtype == tf.float32 else value
            for name, value in function(**arguments).items()
        }

    keywords = {spec.name: spec for spec in specs}
    return tf.function(scaled).get_concrete_function(**keywords)


def _noise(shape: Any, seed: Any, stream: int) -> Any:
    return tf.random.stateless_normal(shape, tf.stack([seed, stream]))


def _entropy(probabilities: Any) -> Any:
    return -tf.reduce_sum(tf.math.xlogy(probabilities, probabilities), axis=-1)
