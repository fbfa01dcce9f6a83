"""LeNet on MNIST and Fashion-MNIST: scores, corrupted images, other images, time.

    python benchmarks/images.py --data DIR [--sets MNIST] [--methods A,B]

Every method trains the network of LeCun et al. (1998), with rectified units and the
largest of four pixels, for as many epochs of batches of 128 by Adam, whose rate falls
as a cosine to 0; no image is augmented. Test images are corrupted in fifteen ways at
five levels. Where a GPU is found, TensorFlow takes it.
"""

import functools
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from corruptions import CORRUPTIONS, LEVELS, corrupted
from image_sets import SIDE, Part, read_digits, read_fashion, score_classes
from program import add_names_option, argument_parser, positive_integer, run
from records import Measurement, RecordFile
from timing import interleaved_steps, markdown_table, ratio

EPOCHS, BATCH_SIZE, DRAWS = 15, 128, 50
# Noise slows learning: networks that draw train at twice the rate of the others.
LEARNING_RATE, NOISY_RATE = 1e-3, 2e-3
# Images of each set that are corrupted, and draws for them.
CORRUPTED_ROWS, CORRUPTED_DRAWS = 2000, 20
SETS = ("MNIST", "Fashion-MNIST")
POINT, ENSEMBLE, MASKS = "deterministic", "deep ensemble of 5", "MC dropout"
DEFAULTS, OURS = "tfbbb defaults", "tfbbb recipe"
# The dropout, temperature and scale of the recipe.
DROPOUT, TEMPERATURE, INITIAL_SCALE = 0.15, 0.1, 0.1
_SCORES = ("error", "nll", "ece")


def main(arguments: Sequence[str] | None = None) -> None:
    """Trains the network by each method on each set, and scores it on test images."""
    parser = argument_parser(__doc__)
    add_names_option(parser, "sets", SETS)
    add_names_option(parser, "methods", METHODS)
    parser.add_argument("--epochs", type=positive_integer, default=EPOCHS)
    parser.add_argument("--seed", type=int, default=0, help="seed (default: 0)")
    run(__file__, parser.parse_args(arguments), measure, report)


def measure(measured: RecordFile, options: Any) -> None:
    """Adds a record for each set and method, and one of the times of steps."""
    rows = 600 if options.smoke else None
    epochs = 4 if options.smoke else options.epochs
    settings = {"epochs": epochs, "batch_size": BATCH_SIZE, "draws": DRAWS}
    measured.measure_all(
        [
            Measurement(
                {"set": name, "method": method},
                functools.partial(
                    scored, options.data, name, method, epochs, rows, options.seed
                ),
                settings=settings,
                seed=options.seed,
            )
            for name in options.sets
            for method in options.methods
        ]
    )
    rounds = 2 if options.smoke else 9
    measured.measure_all(
        [
            Measurement(
                {"part": "steps"},
                functools.partial(step_figures, options.data, options.sets[0], rounds),
                settings={"batch_size": BATCH_SIZE},
            )
        ]
    )


def scored(
    data: Path, name: str, method: str, epochs: int, rows: int | None, seed: int
) -> dict[str, Any]:
    """Returns the figures of one method on one set."""
    import keras

    from tfbbb.scores.metrics import out_of_distribution_auroc

    (x, y), (x_test, y_test) = read(data, name, rows)
    keras.utils.set_random_seed(seed)
    begin = time.perf_counter()
    model = METHODS[method](x, y, epochs)
    seconds = time.perf_counter() - begin

    def predict(images: np.ndarray, draws: int) -> Any:
        return model.predictive(
            images, num_samples=draws, include_dropout=method == MASKS
        )

    predict(x_test[:BATCH_SIZE], DRAWS)
    begin = time.perf_counter()
    inside = predict(x_test, DRAWS)
    milliseconds = 1e3 * (time.perf_counter() - begin) / len(x_test)
    other = next(each for each in SETS if each != name)
    outside = predict(read(data, other, rows)[1][0], DRAWS)
    few, labels = x_test[:CORRUPTED_ROWS, :, :, 0], y_test[:CORRUPTED_ROWS]
    found = {
        corruption: [
            score_classes(
                predict(corrupted(few, corruption, level)[..., None], CORRUPTED_DRAWS),
                labels,
            )
            for level in range(1, 1 + LEVELS)
        ]
        for corruption in (list(CORRUPTIONS)[:2] if rows else CORRUPTIONS)
    }
    return {
        "seconds": seconds,
        "ms_per_image": milliseconds,
        "test": score_classes(inside, y_test),
        "auroc": float(out_of_distribution_auroc(inside, outside, by="entropy")),
        "corrupted": {
            corruption: {score: [level[score] for level in levels] for score in _SCORES}
            for corruption, levels in found.items()
        },
    }


@functools.lru_cache(maxsize=2)
def read(data: Path, name: str, rows: int | None) -> tuple[Part, Part]:
    """Returns training and test part of a set: images [n, 28, 28, 1] and labels [n]."""
    if name == "MNIST":
        digits = read_digits(data)
        both = zip(digits.train, digits.validation, strict=True)
        images, labels = (np.concatenate(pair) for pair in both)
        parts, brightest = ((images, labels), digits.test), digits.test[0].max()
    else:
        parts, brightest = read_fashion(data), 255.0

    def first(images: np.ndarray, labels: np.ndarray) -> Part:
        squares = images[:rows].reshape(-1, SIDE, SIDE, 1)
        return squares.astype("float32") / brightest, labels[:rows]

    train, test = parts
    return first(*train), first(*test)


def lenet(dropout: float = 0.0) -> Any:
    """Returns the network, with dropout before each of its dense layers if any."""
    import keras
    from keras import layers

    drop = [layers.Dropout(dropout)] if dropout else []
    return keras.Sequential(
        [
            keras.Input((SIDE, SIDE, 1)),
            layers.Conv2D(6, 5, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(16, 5, activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            *drop,
            layers.Dense(120, activation="relu"),
            *drop,
            layers.Dense(84, activation="relu"),
            *drop,
            layers.Dense(10),
        ]
    )


def _by_inference(
    name: str, dropout: float = 0.0, **options: Any
) -> Callable[..., Any]:
    """Returns the training by a method of `tfbbb.inference`."""

    def train(x: np.ndarray, y: np.ndarray, epochs: int) -> Any:
        from tfbbb import inference

        rate = NOISY_RATE if dropout else LEARNING_RATE
        given = {"learning_rate": rate, "batch_size": BATCH_SIZE, **options}
        method = getattr(inference, name)(epochs=epochs, **given)
        return method.fit(lenet(dropout), x, y, likelihood="categorical", verbose=0)

    return train


def _swag(x: np.ndarray, y: np.ndarray, epochs: int) -> Any:
    """Trains half of the epochs to a mode, and half around it."""
    from tfbbb import inference

    half = max(2, epochs // 2)
    mode = _by_inference("MAP")(x, y, epochs - half)
    method = inference.SWAG(rank=half, epochs=half, batch_size=BATCH_SIZE)
    return method.fit(mode, x, y, verbose=0)


def _by_convert(method: str) -> Callable[..., Any]:
    """Returns the training of a twin of the untrained network."""

    def train(x: np.ndarray, y: np.ndarray, epochs: int) -> Any:
        import keras

        import tfbbb

        model = twin(method)
        steps = epochs * -(-len(x) // BATCH_SIZE)
        rate = keras.optimizers.schedules.CosineDecay(NOISY_RATE, steps)
        schedule = None
        if method == OURS:
            schedule = tfbbb.kl_schedules.Tempered(TEMPERATURE)
        model.compile(tfbbb.optimizers.Adam(rate), kl_schedule=schedule)
        model.fit(x, y, epochs=epochs, batch_size=BATCH_SIZE, verbose=0)
        return model

    return train


def twin(method: str) -> Any:
    """Returns the untrained twin of the network of one of our methods."""
    import tfbbb

    options: dict[str, Any] = {
        DEFAULTS: {},
        OURS: {
            "posterior": tfbbb.posteriors.MeanFieldNormal(INITIAL_SCALE),
            "prior": "normal",
            "estimator": "weight",
        },
    }
    network = lenet(DROPOUT if method == OURS else 0.0)
    return tfbbb.convert(network, likelihood="categorical", **options[method])


# Each trains on images and labels for a number of epochs, and returns a model.
METHODS: dict[str, Callable[[np.ndarray, np.ndarray, int], Any]] = {
    POINT: _by_inference("MaximumLikelihood"),
    ENSEMBLE: _by_inference("DeepEnsemble", members=5, prior=False),
    MASKS: _by_inference("MCDropout", dropout=DROPOUT),
    "SWAG": _swag,
    "IVON": _by_inference("IVON", learning_rate=0.1),
    DEFAULTS: _by_convert(DEFAULTS),
    OURS: _by_convert(OURS),
}


def step_figures(data: Path, name: str, rounds: int) -> dict[str, Any]:
    """Returns milliseconds of training steps, interleaved, and ratios to Keras'."""
    import keras

    (x, y), _ = read(data, name, 20 * BATCH_SIZE)
    plain = lenet()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    plain.compile("adam", loss)
    models = {"Keras": plain}
    for method in (DEFAULTS, OURS):
        models[method] = twin(method)
        models[method].compile("adam")

    found = interleaved_steps(models, x, y, BATCH_SIZE, rounds)
    return {
        "milliseconds": {
            method: statistics.median(times) for method, times in found.items()
        },
        "ratios": {method: ratio(found, method, "Keras") for method in found},
    }


def mean_corrupted(record: Mapping[str, Any], score: str) -> float:
    """Returns the mean of a score over corruptions and levels."""
    by_kind = record["corrupted"].values()
    return statistics.fmean(level for of in by_kind for level in of[score])


def report(measured: RecordFile) -> str:
    """Returns the scores by set and method, and the times of steps."""
    rows = []
    for name in SETS:
        for record in measured.select(set=name):
            test = record["test"]
            rows.append(
                [
                    f"{name}, {record['method']}",
                    f"{test['error']:.2f}",
                    f"{test['nll']:.4f}",
                    f"{test['ece']:.2f}",
                    f"{record['auroc']:.3f}",
                    f"{mean_corrupted(record, 'error'):.1f}",
                    f"{mean_corrupted(record, 'nll'):.2f}",
                    f"{mean_corrupted(record, 'ece'):.1f}",
                    f"{record['seconds']:.0f}",
                    f"{record['ms_per_image']:.2f}",
                ]
            )
    columns = [
        "",
        *("error, %", "NLL, nats", "ECE, %", "AUROC of the other set"),
        *("corrupted: error, %", "NLL, nats", "ECE, %"),
        *("seconds", "ms per image"),
    ]
    parts = [markdown_table(columns, rows)]
    for record in measured.select(part="steps"):
        times = ", ".join(
            f"{method} {record['milliseconds'][method]:.1f} ms ({factor:.2f})"
            for method, factor in record["ratios"].items()
        )
        parts.append(f"A step, and the ratio to Keras': {times}.")
    return "\n\n".join(parts)


if __name__ == "__main__":
    main()
