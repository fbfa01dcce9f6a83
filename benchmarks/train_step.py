"""Milliseconds per training step: `keras.layers.Dense`, tfbbb and `tfp.layers`.

    python benchmarks/train_step.py

`tfp.layers` runs on legacy Keras only, so each generation of Keras has a process of its
own, and this one lets them take turns.
"""

import argparse
import functools
import os
import time
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

from timing import interleaved, machine, print_table, ratio, spread, write_json

NETS = {"784-400-400-10": (400, 400), "784-1200-1200-10": (1200, 1200)}
NUM_INPUTS, NUM_CLASSES, BATCH_SIZE = 784, 10, 128
# As for MNIST; time does not depend on it.
KL_WEIGHT = 1 / 60_000

DENSE = "keras.layers.Dense"
BAYESIAN_MODEL = "tfbbb local, BayesianModel"
# With what each is compared.
TFBBB = {
    "tfbbb local": "tfp.layers.DenseLocalReparameterization",
    "tfbbb weight": "tfp.layers.DenseReparameterization",
    "tfbbb flipout": "tfp.layers.DenseFlipout",
    BAYESIAN_MODEL: "tfp.layers.DenseLocalReparameterization",
}
LEGACY = (
    "tf_keras.layers.Dense",
    "tfp.layers.DenseLocalReparameterization",
    "tfp.layers.DenseReparameterization",
    "tfp.layers.DenseFlipout",
    "tfp.layers.DenseVariational",
)


def main() -> None:
    """Measures, prints the tables and writes the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=30, help="steps of one epoch")
    parser.add_argument("--rounds", type=int, default=7, help="epochs of each model")
    options = parser.parse_args()
    results: dict[str, Any] = {
        "machine": machine(),
        "batch_size": BATCH_SIZE,
        "steps": options.steps,
        "rounds": options.rounds,
        "nets": {},
    }
    with process(legacy=False) as modern, process(legacy=True) as legacy:
        for net, hidden in NETS.items():
            timers = timers_of(hidden, options.steps, modern, legacy)
            results["nets"][net] = compare(net, timers, options.rounds)
    write_json(__file__, results)


def process(legacy: bool) -> ProcessPoolExecutor:
    """Starts a process, in which TensorFlow is not yet imported."""
    return ProcessPoolExecutor(
        max_workers=1,
        mp_context=get_context("spawn"),
        initializer=choose_keras,
        initargs=(legacy,),
    )


def choose_keras(legacy: bool) -> None:
    """Settles which Keras TensorFlow Probability will take."""
    os.environ["TF_USE_LEGACY_KERAS"] = str(int(legacy))
    # `tfp.layers` calls what legacy Keras has deprecated.
    warnings.simplefilter("ignore")


def timers_of(
    hidden: tuple[int, ...],
    steps: int,
    modern: ProcessPoolExecutor,
    legacy: ProcessPoolExecutor,
) -> dict[str, Callable[[], float]]:
    """Returns a function for each model that has it timed in its process."""

    def timer(pool: ProcessPoolExecutor, model_of: Any, name: str) -> Any:
        task = (milliseconds, model_of, name, hidden, steps)
        return lambda: pool.submit(*task).result()

    return {
        **{name: timer(modern, keras_model, name) for name in (DENSE, *TFBBB)},
        **{name: timer(legacy, legacy_model, name) for name in LEGACY},
    }


def compare(net: str, timers: Mapping[str, Callable[[], float]], rounds: int) -> Any:
    """Prints and returns what `timers` measure, after an epoch to warm up."""
    for timer in timers.values():
        timer()
    measured = interleaved(timers, rounds, net)
    summary = {}
    for name, values in measured.items():
        summary[name] = {
            "milliseconds": spread(values),
            "times_dense": ratio(measured, name, DENSE),
        }
        if name in TFBBB:
            summary[name]["times_tfp"] = ratio(measured, name, TFBBB[name])
    rows = [
        [
            name,
            f"{row['milliseconds']['median']:.1f}",
            f"{row['times_dense']:.2f}",
            f"{row['times_tfp']:.2f}" if "times_tfp" in row else "",
        ]
        for name, row in summary.items()
    ]
    columns = ["layers", "ms per step", "× Dense", "× tfp.layers"]
    print_table(f"{net}, batch {BATCH_SIZE}", columns, rows)
    return summary


def milliseconds(
    model_of: Any, name: str, hidden: tuple[int, ...], steps: int
) -> float:
    """Returns the duration of a step, averaged over an epoch of `fit`."""
    model = model_of(name, hidden)
    x, y = images(steps * BATCH_SIZE)
    clock = epoch_clock()
    model.fit(x, y, batch_size=BATCH_SIZE, verbose=0, callbacks=[clock])
    return 1e3 * clock.seconds / steps


@functools.cache
def images(number: int) -> tuple[Any, Any]:
    """Returns that many random images and labels."""
    import numpy as np

    generator = np.random.default_rng(0)
    x = generator.random((number, NUM_INPUTS), dtype=np.float32)
    return x, generator.integers(NUM_CLASSES, size=number, dtype=np.int32)


def epoch_clock() -> Any:
    """Returns a callback that times the epoch, without what `fit` does around it."""
    import tensorflow as tf

    class Clock(tf.keras.callbacks.Callback):
        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            self._begin = time.perf_counter()

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            self.seconds = time.perf_counter() - self._begin

    return Clock()


@functools.cache
def keras_model(name: str, hidden: tuple[int, ...]) -> Any:
    """Returns a compiled model of Keras 3."""
    import keras

    from tfbbb import BayesianModel
    from tfbbb.layers import DenseVariational

    if name == BAYESIAN_MODEL:
        inputs = outputs = keras.Input((NUM_INPUTS,))
        for layer in stack(DenseVariational, hidden, estimator="local"):
            outputs = layer(outputs)
        model = BayesianModel(inputs, outputs, likelihood="categorical")
        model.compile("adam")
        return model
    if name == DENSE:
        layers = stack(keras.layers.Dense, hidden)
    else:
        estimator = name.removeprefix("tfbbb ")
        layers = stack(
            DenseVariational, hidden, estimator=estimator, kl_weight=KL_WEIGHT
        )
    model = keras.Sequential([keras.Input((NUM_INPUTS,)), *layers])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss=loss)
    return model


@functools.cache
def legacy_model(name: str, hidden: tuple[int, ...]) -> Any:
    """Returns a compiled model of legacy Keras."""
    import tensorflow_probability as tfp
    import tf_keras

    package, _, class_name = name.rpartition(".")
    if package == "tf_keras.layers":
        layers = stack(getattr(tf_keras.layers, class_name), hidden)
    elif class_name == "DenseVariational":
        layers = stack(
            tfp.layers.DenseVariational,
            hidden,
            make_posterior_fn=mean_field_posterior,
            make_prior_fn=standard_normal_prior,
            kl_weight=KL_WEIGHT,
            kl_use_exact=True,
        )
    else:
        layers = stack(
            getattr(tfp.layers, class_name),
            hidden,
            kernel_divergence_fn=lambda q, p, _: KL_WEIGHT * q.kl_divergence(p),
        )
    model = tf_keras.Sequential([tf_keras.Input((NUM_INPUTS,)), *layers])
    loss = tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss=loss)
    return model


def stack(layer: Any, hidden: tuple[int, ...], **kwargs: Any) -> list[Any]:
    """Returns the layers of a net that ends in logits."""
    layers = [layer(units, activation="relu", **kwargs) for units in hidden]
    return [*layers, layer(NUM_CLASSES, **kwargs)]


def mean_field_posterior(
    kernel_size: int, bias_size: int = 0, dtype: Any = None
) -> Any:
    """Returns a layer whose output is a trainable, fully factorised Gaussian."""
    import tensorflow as tf
    import tensorflow_probability as tfp
    import tf_keras

    size = kernel_size + bias_size

    def distribution(parameters: Any) -> Any:
        scale = 1e-5 + tf.nn.softplus(parameters[size:] - 3.0)
        normal = tfp.distributions.Normal(parameters[:size], scale)
        return tfp.distributions.Independent(normal, 1)

    variables = tfp.layers.VariableLayer(2 * size, dtype=dtype)
    return tf_keras.Sequential([variables, tfp.layers.DistributionLambda(distribution)])


def standard_normal_prior(
    kernel_size: int, bias_size: int = 0, dtype: Any = None
) -> Any:
    """Returns a function whose value is the prior."""
    import tensorflow as tf
    import tensorflow_probability as tfp

    zeros = tf.zeros(kernel_size + bias_size, dtype)
    normal = tfp.distributions.Normal(zeros, tf.ones_like(zeros))
    return lambda _: tfp.distributions.Independent(normal, 1)


if __name__ == "__main__":
    main()
