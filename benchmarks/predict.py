"""Milliseconds per prediction: tfbbb, compiled loops of model calls, and Keras.

    python benchmarks/predict.py

Every contender except Keras' own layers returns mean and variance of the class
probabilities (or of the target) over 100 posterior draws. The networks are trained
briefly, so that their posteriors differ from the initial ones. `tfp.layers` runs on
legacy Keras only, and therefore in a separate process.
"""

import argparse
import functools
import math
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from timing import interleaved, machine, print_table, ratio, spread, write_json
from train_step import process

NUM_SAMPLES = 100
# The numbers of rows to predict for each net; `forms` creates its layers.
NETS = {
    "784-400-400-10": (1, 32, 256, 4096),
    "13-50-1": (1,),
    "28x28x1, 5x5 convolutions of 8 and 16, 10": (1, 32),
    "LSTM of 32 over 20 steps of 8, 1": (1, 32),
    "GRU of 32 over 20 steps of 8, 1": (1, 32),
}
RECURRENT = ("LSTM", "GRU")
# A measurement repeats fast calls until it has taken this long.
SECONDS = 0.05
# The pass over S × rows is cut into batches that fit into memory.
MOST_ROWS = 256

METHODS = ("auto", "local", "weight")
LOOP = "loop of model(x), weight"
TFP = "loop of model(x), tfp.layers"
PASS = "Keras' layers, S × rows"
ROWS = "Keras' layers, rows"


def main() -> None:
    """Measures, prints the tables and writes the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=9, help="rounds of measurements")
    parser.add_argument("--nets", nargs="*", default=list(NETS), help="some of them")
    options = parser.parse_args()
    results: dict[str, Any] = {
        "machine": machine(),
        "num_samples": NUM_SAMPLES,
        "rounds": options.rounds,
        "nets": {},
    }
    with process(legacy=True) as legacy:
        for name in options.nets:
            net = Net(name, legacy)
            results["nets"][name] = {
                str(number): compare(
                    f"{name}, rows = {number}, S = {NUM_SAMPLES}",
                    net.contenders(number),
                    net.squared_errors(number),
                    options.rounds,
                )
                for number in NETS[name]
            }
    if options.nets == list(NETS):
        write_json(__file__, results)


class Net:
    """One network in every compared form."""

    def __init__(self, name: str, legacy: ProcessPoolExecutor):
        import keras
        import tensorflow as tf

        import tfbbb

        self.name = name
        self._legacy = legacy
        draws_weights = {"estimator": "weight", "kl_weight": 1.0}
        network = stack(keras, forms(tfbbb.layers), name, {})
        self.model = trained(network, name)
        self.by_tensorflow, self.by_numpy = exported(self.model)
        self.loops = {"weight": loop(twin(self.model, name, draws_weights))}
        if not is_recurrent(name) and "convolutions" not in name:
            draws_outputs = {"estimator": "local", "kl_weight": 1.0}
            self.loops["local"] = loop(twin(self.model, name, draws_outputs))
        self.keras = tf.function(stack(keras, forms(keras.layers), name, {}))

    def contenders(self, number: int) -> dict[str, Callable[[], float]]:
        """Returns timers of each way to predict the same rows."""
        import tensorflow as tf

        x = make_inputs(self.name, number)
        rows = tf.constant(x)
        repeated = tf.repeat(rows[:MOST_ROWS], NUM_SAMPLES, axis=0)
        passes = math.ceil(number / MOST_ROWS)

        def predictive(method: str) -> Callable[[], Any]:
            return lambda: self.model.predictive(x, NUM_SAMPLES, method)

        def every_row() -> None:
            for _ in range(passes):
                self.keras(repeated)

        timers = {
            **{
                f"loop of model(x), {estimator}": timer(lambda f=f: f(rows))
                for estimator, f in self.loops.items()
            },
            **{f"predictive, {m}": timer(predictive(m)) for m in METHODS},
            "loaded SavedModel, local": timer(
                lambda: self.by_tensorflow.predictive(x, NUM_SAMPLES)
            ),
            "loaded, by NumPy, local": timer(
                lambda: self.by_numpy.predictive(x, NUM_SAMPLES)
            ),
            PASS: timer(every_row),
            ROWS: timer(lambda: self.keras(rows)),
        }
        if not is_recurrent(self.name):
            task = functools.partial(
                self._legacy.submit, legacy_milliseconds, self.name, number
            )
            task().result()
            timers[TFP] = lambda: task().result()
        return timers

    def squared_errors(self, number: int) -> dict[str, float]:
        """Returns the variance of the mean of 100 draws, averaged over the rows."""
        import tensorflow as tf

        x = make_inputs(self.name, min(number, MOST_ROWS))
        _, variance = self.loops["weight"](tf.constant(x))
        # The loop's draws are independent.
        errors = {LOOP: float(tf.reduce_mean(variance)) / NUM_SAMPLES}
        for method in METHODS:
            error = self.model.predictive(x, NUM_SAMPLES, method).mean_standard_error
            errors[f"predictive, {method}"] = float((error**2).mean())
        return errors


def forms(layers: Any) -> Mapping[str, Any]:
    """Returns the layers of a module by their plain names."""
    suffix = "Variational" if hasattr(layers, "DenseVariational") else ""
    return {
        name: getattr(layers, name + suffix) for name in ("Dense", "Conv2D", *RECURRENT)
    }


def stack(
    keras: Any, parts: Mapping[str, Any], name: str, options: Mapping[str, Any]
) -> Any:
    """Returns a net of the given layers with linear outputs."""
    made = {kind: functools.partial(part, **options) for kind, part in parts.items()}
    dense = made["Dense"]
    if is_recurrent(name):
        layers = [
            keras.Input((160,)),
            keras.layers.Reshape((20, 8)),
            made[name.split()[0]](32),
            dense(1),
        ]
    elif "convolutions" in name:
        layers = [keras.Input((784,)), keras.layers.Reshape((28, 28, 1))]
        for filters in (8, 16):
            layers += [
                made["Conv2D"](filters, 5, padding="same", activation="relu"),
                keras.layers.MaxPooling2D(),
            ]
        layers += [keras.layers.Flatten(), dense(10)]
    else:
        first, *hidden, last = map(int, name.split("-"))
        layers = [keras.Input((first,))]
        layers += [dense(units, activation="relu") for units in hidden]
        layers.append(dense(last))
    return keras.Sequential(layers)


def make_inputs(name: str, number: int, seed: int = 0) -> np.ndarray:
    """Returns a number of rows."""
    return examples(name, number, seed)[0]


def examples(name: str, number: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns rows around ten centres, and their centres or a function of the rows."""
    width = _width(name)
    centres = np.random.default_rng(1).random((10, width), dtype=np.float32)
    generator = np.random.default_rng(seed)
    labels = generator.integers(10, size=number)
    noise = generator.normal(0.0, 0.5, (number, width)).astype(np.float32)
    if is_classification(name):
        return centres[labels] + noise, labels
    y = labels + generator.normal(0.0, 1.0, number)
    return centres[labels] + noise, y[:, np.newaxis].astype(np.float32)


def _width(name: str) -> int:
    if is_recurrent(name):
        return 160
    return 784 if "convolutions" in name else int(name.split("-")[0])


def is_recurrent(name: str) -> bool:
    """Returns whether a net begins with a recurrent layer."""
    return name.startswith(RECURRENT)


def is_classification(name: str) -> bool:
    """Returns whether a net has ten logits as outputs."""
    return name.endswith("10")


def trained(network: Any, name: str) -> Any:
    """Returns a Bayesian model after a short training."""
    import tfbbb

    likelihood = "categorical" if is_classification(name) else "normal"
    model = tfbbb.BayesianModel(network.inputs, network.outputs, likelihood=likelihood)
    model.compile(tfbbb.optimizers.Adam(1e-3))
    model.fit(*examples(name, 2000, 2), batch_size=64, epochs=10, verbose=0)
    return model


def twin(model: Any, name: str, options: Mapping[str, Any]) -> Any:
    """Returns a plain Keras model with the same posterior."""
    import keras

    import tfbbb

    plain = stack(keras, forms(tfbbb.layers), name, options)
    with_weights = [layer for layer in model.layers if layer.weights]
    for mine, theirs in zip(
        [layer for layer in plain.layers if layer.weights], with_weights, strict=True
    ):
        mine.set_weights(theirs.get_weights())
    if is_classification(name):
        plain.add(keras.layers.Softmax())
    return plain


def exported(model: Any) -> list[Any]:
    """Returns the model, exported, loaded for TensorFlow and by the usual engine."""
    import tfbbb

    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "model"
        model.export_predictive(path)
        engines = ("tensorflow", "auto")
        return [tfbbb.load(path, engine=engine) for engine in engines]


def loop(model: Any) -> Callable[[Any], Any]:
    """Returns the compiled loop of S calls of a model, one draw of the weights each.

    `tf.map_fn` takes as long as a Python loop that is unrolled in the graph, and is
    compiled in a hundredth of the time.
    """
    import tensorflow as tf

    @tf.function
    def moments(x: Any) -> Any:
        outputs = tf.map_fn(
            lambda _: model(x), tf.range(NUM_SAMPLES), fn_output_signature=tf.float32
        )
        return tf.reduce_mean(outputs, axis=0), tf.math.reduce_variance(outputs, axis=0)

    return moments


@functools.cache
def legacy_timer(name: str, number: int) -> Callable[[], float]:
    """Returns a timer of the loop over a model of `tfp.layers`, in its process."""
    import tensorflow as tf
    import tensorflow_probability as tfp
    import tf_keras

    parts = {
        "Dense": tfp.layers.DenseReparameterization,
        "Conv2D": tfp.layers.Convolution2DReparameterization,
    }
    model = stack(tf_keras, parts, name, {})
    if is_classification(name):
        model.add(tf_keras.layers.Softmax())
    moments, rows = loop(model), tf.constant(make_inputs(name, number))
    return timer(lambda: moments(rows))


def legacy_milliseconds(name: str, number: int) -> float:
    """Returns the milliseconds of the loop over a model of `tfp.layers`."""
    return legacy_timer(name, number)()


def compare(
    title: str,
    timers: dict[str, Callable[[], float]],
    squared_errors: Mapping[str, float],
    rounds: int,
) -> Any:
    """Prints and returns the time and the error of each contender."""
    measured = interleaved(timers, rounds, title)
    summary = {}
    for name, values in measured.items():
        summary[name] = {
            "milliseconds": spread(values),
            "times_faster_than_loop": ratio(measured, LOOP, name),
            "times_keras_on_all_draws": ratio(measured, name, PASS),
            "times_keras_on_rows": ratio(measured, name, ROWS),
        }
        if TFP in measured:
            faster = ratio(measured, TFP, name)
            summary[name]["times_faster_than_tfp_loop"] = faster
        if name in squared_errors:
            summary[name]["variance_of_mean"] = squared_errors[name]
            # At equal time, a faster contender can use more draws.
            summary[name]["times_less_variance_at_equal_time"] = (
                summary[name]["times_faster_than_loop"]
                * squared_errors[LOOP]
                / squared_errors[name]
            )
    columns = {
        "milliseconds": "ms",
        "times_faster_than_loop": "faster than loop",
        "times_faster_than_tfp_loop": "than tfp.layers",
        "times_keras_on_all_draws": "× Keras, S × rows",
        "times_keras_on_rows": "× Keras, rows",
        "times_less_variance_at_equal_time": "less variance",
    }

    def cell(value: Any) -> str:
        if value is None:
            return ""
        median = value["median"] if isinstance(value, dict) else value
        return f"{median:.2f}" if median < 10 else f"{median:.1f}"

    rows = [
        [name, *(cell(row.get(column)) for column in columns)]
        for name, row in sorted(
            summary.items(), key=lambda item: -item[1]["milliseconds"]["median"]
        )
    ]
    print_table(title, ["", *columns.values()], rows)
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
