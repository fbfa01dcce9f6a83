"""Milliseconds per prediction: tfbbb, compiled loops of model calls, and `Dense`.

    python benchmarks/predict.py

Every contender but `Dense` answers with mean and variance of the class probabilities
(or of the target) over 100 posterior draws.
"""

import argparse
import math
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from timing import interleaved, machine, print_table, ratio, spread, write_json

from tfbbb import BayesianModel
from tfbbb.export import load_exported
from tfbbb.layers import DenseVariational

NUM_SAMPLES = 100
# The likelihood of each net, and the numbers of rows to predict.
NETS = {"784-400-400-10": ("categorical", (1, 32, 256)), "13-50-1": ("normal", (1,))}
# A measurement repeats what is quick until it has taken this long.
SECONDS = 0.05

LOOP = "loop of model(x), weight"
PASS = "Dense, S × rows"


def main() -> None:
    """Measures, prints the tables and writes the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=15, help="rounds of measurements")
    options = parser.parse_args()
    results: dict[str, Any] = {
        "machine": machine(),
        "num_samples": NUM_SAMPLES,
        "rounds": options.rounds,
        "nets": {},
    }
    for name, (likelihood, numbers_of_rows) in NETS.items():
        net = Net([int(size) for size in name.split("-")], likelihood)
        results["nets"][name] = {
            str(number): compare(
                f"{name}, rows = {number}, S = {NUM_SAMPLES}",
                net.contenders(number),
                options.rounds,
            )
            for number in numbers_of_rows
        }
    write_json(__file__, results)


class Net:
    """One network in every form that is compared."""

    def __init__(self, sizes: list[int], likelihood: str):
        self.num_inputs = sizes[0]
        self.model = bayesian_model(sizes, likelihood)
        self.exported = exported(self.model)
        last = "softmax" if likelihood == "categorical" else None
        self.loops = {
            estimator: loop(
                sequential(
                    DenseVariational, sizes, last, estimator=estimator, kl_weight=1.0
                )
            )
            for estimator in ("weight", "local")
        }
        self.dense = tf.function(sequential(keras.layers.Dense, sizes, last))

    def contenders(self, number: int) -> dict[str, Callable[[], Any]]:
        """Returns what predicts the same `number` rows in different ways."""
        shape = (number, self.num_inputs)
        x = np.random.default_rng(0).random(shape, dtype=np.float32)
        rows, repeated = tf.constant(x), tf.repeat(x, NUM_SAMPLES, axis=0)

        def predictive(method: str) -> Callable[[], Any]:
            return lambda: self.model.predictive(x, NUM_SAMPLES, method)

        return {
            LOOP: lambda: self.loops["weight"](rows),
            "loop of model(x), local": lambda: self.loops["local"](rows),
            "predictive, auto": predictive("auto"),
            "predictive, local": predictive("local"),
            "predictive, weight": predictive("weight"),
            "loaded SavedModel": lambda: self.exported.predict(x, NUM_SAMPLES),
            PASS: lambda: self.dense(repeated),
            "Dense, rows": lambda: self.dense(rows),
        }


def bayesian_model(sizes: list[int], likelihood: str) -> BayesianModel:
    """Returns an untrained model; its weights do not change what it costs."""
    inputs = outputs = keras.Input((sizes[0],))
    for units in sizes[1:-1]:
        outputs = DenseVariational(units, activation="relu")(outputs)
    outputs = DenseVariational(sizes[-1])(outputs)
    return BayesianModel(inputs, outputs, likelihood=likelihood)


def sequential(
    layer: Any, sizes: list[int], last_activation: Any, **kwargs: Any
) -> keras.Sequential:
    """Returns a plain Keras net of one kind of layer."""
    hidden = [layer(units, activation="relu", **kwargs) for units in sizes[1:-1]]
    last = layer(sizes[-1], activation=last_activation, **kwargs)
    return keras.Sequential([keras.Input((sizes[0],)), *hidden, last])


def exported(model: BayesianModel) -> Any:
    """Returns the model as it comes back from a SavedModel."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "model"
        model.export_predictive(path)
        return load_exported(path)


def loop(model: keras.Model) -> Callable[[Any], Any]:
    """Returns the compiled loop of S calls of a model, one draw of the weights each.

    `tf.map_fn` takes as long as a Python loop that is unrolled in the graph, and is
    compiled in a hundredth of the time.
    """

    @tf.function
    def moments(x: Any) -> Any:
        outputs = tf.map_fn(
            lambda _: model(x), tf.range(NUM_SAMPLES), fn_output_signature=tf.float32
        )
        return tf.reduce_mean(outputs, axis=0), tf.math.reduce_variance(outputs, axis=0)

    return moments


def compare(title: str, contenders: dict[str, Callable[[], Any]], rounds: int) -> Any:
    """Prints and returns what the contenders take."""
    timers = {name: timer(predict) for name, predict in contenders.items()}
    measured = interleaved(timers, rounds, title)
    summary = {
        name: {
            "milliseconds": spread(values),
            "times_faster_than_loop": ratio(measured, LOOP, name),
            "times_dense_pass": ratio(measured, name, PASS),
        }
        for name, values in measured.items()
    }
    rows = [
        [
            name,
            f"{row['milliseconds']['median']:.2f}",
            f"{row['times_faster_than_loop']:.1f}",
            f"{row['times_dense_pass']:.2f}",
        ]
        for name, row in summary.items()
    ]
    print_table(title, ["", "ms", "times faster than loop", "× Dense, S × rows"], rows)
    return summary


def timer(predict: Callable[[], Any]) -> Callable[[], float]:
    """Returns a function that measures `predict` in milliseconds."""

    def seconds(repetitions: int) -> float:
        begin = time.perf_counter()
        for _ in range(repetitions):
            predict()
        return (time.perf_counter() - begin) / repetitions

    predict()
    repetitions = math.ceil(SECONDS / seconds(1))
    return lambda: 1e3 * seconds(repetitions)


if __name__ == "__main__":
    main()
