"""Milliseconds per training step: Keras' layers, tfbbb and `tfp.layers`.

    python benchmarks/train_step.py

`tfp.layers` runs on legacy Keras only, so each generation of Keras has a separate
process; this process makes them take turns.
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

# Units of the hidden layers, or the kind of those that are not dense: two convolutions
# of 32 and 64 filters of 5x5, or one recurrent layer of 32 units over 20 steps of 8.
Hidden = tuple[int, ...] | str
NETS: dict[str, Hidden] = {
    "784-400-400-10": (400, 400),
    "784-1200-1200-10": (1200, 1200),
    "28x28x1, 5x5 convolutions of 32 and 64, 10": "Conv2D",
    "LSTM of 32 over 20 steps of 8, 10": "LSTM",
    "GRU of 32 over 20 steps of 8, 10": "GRU",
}
RECURRENT = ("LSTM", "GRU")
KINDS = ("Dense", "Conv2D", *RECURRENT)
NUM_CLASSES, BATCH_SIZE = 10, 128
# As for MNIST; time does not depend on it.
KL_WEIGHT = 1 / 60_000

KERAS = "keras.layers"
# Each trains through `BayesianModel.compile("adam")`, and through Keras' own `compile`.
ESTIMATORS = ("local", "weight", "flipout")
PLAIN = ", plain compile"
LEGACY = "tf_keras.layers"
TFP = {
    "local": "LocalReparameterization",
    "weight": "Reparameterization",
    "flipout": "Flipout",
}


def main() -> None:
    """Measures, prints the tables and writes the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=30, help="steps of one epoch")
    parser.add_argument("--rounds", type=int, default=7, help="epochs of each model")
    parser.add_argument("--nets", nargs="*", default=list(NETS), help="some of them")
    options = parser.parse_args()
    results: dict[str, Any] = {
        "machine": machine(),
        "batch_size": BATCH_SIZE,
        "steps": options.steps,
        "rounds": options.rounds,
        "nets": {},
    }
    with process(legacy=False) as modern, process(legacy=True) as legacy:
        for net in options.nets:
            timers = make_timers(NETS[net], options.steps, modern, legacy)
            results["nets"][net] = compare(net, timers, options.rounds)
    if options.nets == list(NETS):
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
    """Chooses the Keras that TensorFlow Probability imports."""
    os.environ["TF_USE_LEGACY_KERAS"] = str(int(legacy))
    # `tfp.layers` calls deprecated functions of legacy Keras.
    warnings.simplefilter("ignore")


def make_timers(
    hidden: Hidden,
    steps: int,
    modern: ProcessPoolExecutor,
    legacy: ProcessPoolExecutor,
) -> dict[str, Callable[[], float]]:
    """Returns a timer for each model, which runs in the process of its Keras."""

    def timer(pool: ProcessPoolExecutor, make_model: Any, name: str) -> Any:
        task = (milliseconds, make_model, name, hidden, steps)
        return lambda: pool.submit(*task).result()

    is_dense = not isinstance(hidden, str)
    estimators = [name for name in ESTIMATORS if is_dense or name != "local"]
    ours = [f"tfbbb {name}{how}" for name in estimators for how in ("", PLAIN)]
    theirs = [f"tfp.layers {TFP[name]}" for name in estimators]
    if is_dense:
        theirs.append("tfp.layers Variational")
    elif hidden in RECURRENT:
        # `tfp.layers` has none.
        theirs = []
    return {
        **{name: timer(modern, keras_model, name) for name in (KERAS, *ours)},
        **{name: timer(legacy, legacy_model, name) for name in (LEGACY, *theirs)},
    }


def compare(net: str, timers: Mapping[str, Callable[[], float]], rounds: int) -> Any:
    """Prints and returns the results of the timers, after an epoch to warm up."""
    for timer in timers.values():
        timer()
    measured = interleaved(timers, rounds, net)
    summary = {}
    for name, values in measured.items():
        summary[name] = {
            "milliseconds": spread(values),
            "times_keras": ratio(measured, name, KERAS),
        }
        if name.startswith("tfbbb"):
            twin = f"tfp.layers {TFP[name.split()[1].rstrip(',')]}"
            if twin in measured:
                summary[name]["faster_than_tfp"] = ratio(measured, twin, name)
    rows = [
        [
            name,
            f"{row['milliseconds']['median']:.1f}",
            f"{row['times_keras']:.2f}",
            f"{row['faster_than_tfp']:.2f}" if "faster_than_tfp" in row else "",
        ]
        for name, row in summary.items()
    ]
    columns = ["layers", "ms per step", "× Keras", "times faster than tfp.layers"]
    print_table(f"{net}, batch {BATCH_SIZE}", columns, rows)
    return summary


def milliseconds(make_model: Any, name: str, hidden: Hidden, steps: int) -> float:
    """Returns the duration of a step, averaged over an epoch of `fit`."""
    model = make_model(name, hidden)
    x, y = examples(steps * BATCH_SIZE, input_shape(hidden))
    clock = epoch_clock()
    model.fit(x, y, batch_size=BATCH_SIZE, verbose=0, callbacks=[clock])
    return 1e3 * clock.seconds / steps


def input_shape(hidden: Hidden) -> tuple[int, ...]:
    """Returns the shape of one row of a net's inputs."""
    if hidden in RECURRENT:
        return (20, 8)
    return (28, 28, 1) if hidden == "Conv2D" else (784,)


@functools.cache
def examples(number: int, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """Returns a number of random rows and labels."""
    import numpy as np

    generator = np.random.default_rng(0)
    x = generator.random((number, *shape), dtype=np.float32)
    return x, generator.integers(NUM_CLASSES, size=number, dtype=np.int32)


def epoch_clock() -> Any:
    """Returns a callback that measures an epoch without the overhead of `fit`."""
    import tensorflow as tf

    class Clock(tf.keras.callbacks.Callback):
        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            self._begin = time.perf_counter()

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            self.seconds = time.perf_counter() - self._begin

    return Clock()


@functools.cache
def keras_model(name: str, hidden: Hidden) -> Any:
    """Returns a compiled model of Keras 3."""
    import keras

    import tfbbb

    if name == KERAS:
        parts = {kind: getattr(keras.layers, kind) for kind in KINDS}
    else:
        estimator = name.removeprefix("tfbbb ").removesuffix(PLAIN)
        options = {"estimator": estimator, "kl_weight": KL_WEIGHT}
        parts = {
            kind: functools.partial(
                getattr(tfbbb.layers, f"{kind}Variational"), **options
            )
            for kind in KINDS
        }
    network = stack(keras, parts, hidden)
    if name == KERAS or name.endswith(PLAIN):
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        network.compile("adam", loss=loss)
        return network
    model = tfbbb.BayesianModel(
        network.inputs, network.outputs, likelihood="categorical"
    )
    model.compile("adam")
    return model


@functools.cache
def legacy_model(name: str, hidden: Hidden) -> Any:
    """Returns a compiled model of legacy Keras."""
    import tensorflow_probability as tfp
    import tf_keras

    kind = name.removeprefix("tfp.layers ")
    if name == LEGACY:
        parts = {kind: getattr(tf_keras.layers, kind) for kind in KINDS}
    elif kind == "Variational":
        options = {
            "make_posterior_fn": mean_field_posterior,
            "make_prior_fn": standard_normal_prior,
            "kl_weight": KL_WEIGHT,
            "kl_use_exact": True,
        }
        parts = {"Dense": functools.partial(tfp.layers.DenseVariational, **options)}
    else:
        weigh = {"kernel_divergence_fn": lambda q, p, _: KL_WEIGHT * q.kl_divergence(p)}
        dense = getattr(tfp.layers, f"Dense{kind}")
        parts = {"Dense": functools.partial(dense, **weigh)}
        convolution = getattr(tfp.layers, f"Convolution2D{kind}", None)
        if convolution is not None:
            parts["Conv2D"] = functools.partial(convolution, **weigh)
    model = stack(tf_keras, parts, hidden)
    loss = tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss=loss)
    return model


def stack(keras: Any, parts: Mapping[str, Any], hidden: Hidden) -> Any:
    """Returns a net of the given layers that ends in logits."""
    dense = parts["Dense"]
    layers = [keras.Input(input_shape(hidden))]
    if hidden in RECURRENT:
        layers.append(parts[hidden](32))
    elif hidden == "Conv2D":
        for filters in (32, 64):
            layers += [
                parts["Conv2D"](filters, 5, padding="same", activation="relu"),
                keras.layers.MaxPooling2D(),
            ]
        layers.append(keras.layers.Flatten())
    else:
        layers += [dense(units, activation="relu") for units in hidden]
    return keras.Sequential([*layers, dense(NUM_CLASSES)])


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
