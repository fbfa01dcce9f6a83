"""A network of the digits 0 to 4 is adapted to 5 to 9, without and with posteriors."""

import argparse
import functools
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from image_sets import SIDE, read_digits, score_classes
from program import argument_parser, positive_integer, run
from records import Measurement, RecordFile
from results import with_error
from timing import interleaved_steps, markdown_table, ratio

ROWS = (10, 20, 50, 200, 500)
LORA, POSTERIOR = "LoRA", "adapters with a posterior"
METHODS = (LORA, POSTERIOR)
RANK, STEPS, BATCH_SIZE, LEARNING_RATE = 4, 400, 32, 1e-3
TEST_ROWS, DRAWS = 2000, 50
# With the digits of their means.
FIGURES = {"error": 1, "nll": 3, "ece": 1}
# Digits below are those of the backbone.
FIRST = 5


def main(arguments: Sequence[str] | None = None) -> None:
    """Adapts the network to few rows of new digits, and scores it on test images."""
    parser = argument_parser(__doc__)
    parser.add_argument(
        "--seeds", type=positive_integer, default=4, help="draws of the rows"
    )
    run(__file__, parser.parse_args(arguments), measure, report)


def measure(measured: RecordFile, options: argparse.Namespace) -> None:
    """Adds a record for each number of rows, seed and method, and those of steps."""
    data, smoke = options.data, options.smoke
    size, steps = (120, 1) if smoke else (None, STEPS)
    settings = {"rank": RANK, "steps": steps, "learning_rate": LEARNING_RATE}
    measured.measure_all(
        [
            Measurement(
                {"rows": rows, "seed": seed, "method": method},
                functools.partial(scored, data, size, rows, seed, method, steps),
                settings=settings,
                seed=seed,
            )
            for seed in range(1 if smoke else options.seeds)
            for rows in (ROWS[:1] if smoke else ROWS)
            for method in METHODS
        ]
    )
    measured.measure_all(
        [
            Measurement(
                {"part": "steps"},
                functools.partial(step_figures, data, size, 1 if smoke else 15),
                settings=settings,
            )
        ]
    )


def scored(
    data: Path, size: int | None, rows: int, seed: int, method: str, steps: int
) -> dict[str, float]:
    """Returns the scores of an adapted network on test images of new digits."""
    (x, y), test = new_digits(data, size)
    chosen = np.random.default_rng(seed).permutation(len(x))[:rows]
    model = adapted(data, size, method, seed)
    batch_size = min(BATCH_SIZE, rows)
    begin = time.perf_counter()
    model.fit(
        x[chosen],
        y[chosen],
        epochs=max(1, round(steps / -(-rows // batch_size))),
        batch_size=batch_size,
        verbose=0,
    )
    seconds = time.perf_counter() - begin
    images, labels = (each[:TEST_ROWS] for each in test)
    found = model.predictive(images, 2 if method == LORA else DRAWS)
    return {**score_classes(found, labels), "seconds": seconds}


def adapted(data: Path, size: int | None, method: str, seed: int) -> Any:
    """Returns the compiled network with adapters and a new last layer, untrained.

    Without posteriors its steps are those of a Keras model.
    """
    import keras

    import tfbbb

    backbone = trained_backbone(data, size)
    keras.utils.set_random_seed(seed)
    last = keras.layers.Dense(FIRST, name="last")
    network = keras.Model(backbone.input, last(backbone.output))
    network = tfbbb.adapters.add(network, rank=RANK)
    options: dict[str, Any] = {}
    if method == LORA:
        options = {"posterior": "point", "prior": None}
        options |= {"bias_posterior": "point", "bias_prior": None}
    twin = tfbbb.convert(network, where="adapters", likelihood="categorical", **options)
    twin.compile(keras.optimizers.Adam(LEARNING_RATE))
    return twin


@functools.cache
def trained_backbone(data: Path, size: int | None) -> Any:
    """Returns a convolutional network of features, trained on the digits 0 to 4."""
    import keras

    images, labels = read_digits(data, size).train
    known = labels < FIRST
    keras.utils.set_random_seed(0)
    network = keras.Sequential(
        [
            keras.Input((SIDE, SIDE, 1)),
            keras.layers.Conv2D(32, 3, activation="relu"),
            keras.layers.MaxPooling2D(),
            keras.layers.Conv2D(64, 3, activation="relu"),
            keras.layers.MaxPooling2D(),
            keras.layers.Flatten(),
            keras.layers.Dense(1024, "relu"),
            keras.layers.Dense(512, "relu"),
            keras.layers.Dense(FIRST),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    network.compile("adam", loss)
    network.fit(
        as_images(images[known]), labels[known], epochs=2, batch_size=128, verbose=0
    )
    return keras.Model(network.inputs, network.layers[-2].output)


@functools.cache
def new_digits(data: Path, size: int | None) -> tuple[Any, Any]:
    """Returns training and test images of the digits 5 to 9, and classes from 0."""
    digits = read_digits(data, size)
    found = []
    for images, labels in (digits.train, digits.test):
        rows = labels >= FIRST
        found.append((as_images(images[rows]), labels[rows] - FIRST))
    return found[0], found[1]


def as_images(pixels: np.ndarray) -> np.ndarray:
    """Returns rows of pixels as images of one channel."""
    return pixels.reshape(-1, SIDE, SIDE, 1)


def step_figures(data: Path, size: int | None, rounds: int) -> dict[str, float]:
    """Returns the time of a step over that of LoRA, and the share of weights."""
    import keras

    import tfbbb

    (x, y), _ = new_digits(data, size)
    x, y = x[: 20 * BATCH_SIZE], y[: 20 * BATCH_SIZE]
    models = {method: adapted(data, size, method, 0) for method in METHODS}
    # LoRA is a plain Keras model, whose step draws nothing.
    network = tfbbb.to_deterministic(models[POSTERIOR])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    network.compile(keras.optimizers.Adam(LEARNING_RATE), loss)
    models[LORA] = network

    found = interleaved_steps(models, x, y, BATCH_SIZE, rounds)
    trained = sum(int(np.prod(w.shape)) for w in network.trainable_weights)
    return {
        "lora_ms": statistics.median(found[LORA]),
        "posterior_ms": statistics.median(found[POSTERIOR]),
        "ratio": ratio(found, POSTERIOR, LORA),
        "share_of_weights": trained / network.count_params(),
    }


def report(measured: RecordFile) -> str:
    """Returns the scores of both methods by the number of rows, and those of a step."""
    rows = []
    for number in ROWS:
        for method in METHODS:
            records = measured.select(rows=number, method=method)
            if records:
                cells = [
                    with_error([record[figure] for record in records], digits)
                    for figure, digits in FIGURES.items()
                ]
                rows.append([f"{number}, {method}", *cells])
    steps = [
        f"A step takes {record['posterior_ms']:.1f} ms, {record['ratio']:.2f} times "
        f"that of LoRA; {100.0 * record['share_of_weights']:.2f} % of the weights are "
        "trained."
        for record in measured.select(part="steps")
    ]
    columns = ["images of new digits", "error, %", "NLL, nats", "ECE, %"]
    return "\n\n".join([markdown_table(columns, rows), *steps])


if __name__ == "__main__":
    main()
