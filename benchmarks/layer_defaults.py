"""Held-out scores of Keras' layers and of ours, swapped and nothing else changed.

    python benchmarks/layer_defaults.py --data DIRECTORY

Each cell is one network on one table, trained by Adam at its default learning rate in
batches of 32. `Keras` has the layers of Keras; `default` has ours with no option set,
in a `tfbbb.BayesianModel` at temperature 1. Both start at the same weights and are
scored after 10 and after 50 epochs on the same test rows: ours by the mixture over its
draws, Keras' by its softmax. On tables of numbers, ours and `Keras, same likelihood`
give mean and noise of each row, and `Keras` minimises squared errors and has the noise
of its training residuals.

The other methods are priors in place of the default. Records that the output file
already has are not measured again, so the program resumes where it stopped. Cells come
in order of cost; `--cells` takes a part of them.
"""

import argparse
import fnmatch
import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from timing import machine, print_table, rounded

import tfbbb
from tfbbb.layers import (
    Conv2DVariational,
    DenseVariational,
    LSTMVariational,
)

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
UCI = ("bostonHousing", "concrete", "energy", "wine-quality-red", "yacht")
EPOCHS = (10, 50)
# The largest loss of accuracy that a swapped layer may cost.
ACCURACY = 0.005
KERAS, SAME = "Keras", "Keras, same likelihood"
# Standard deviations that start at 0.1 / sqrt(fan_in), as the names have it.
STARTS_WIDE = {
    "posterior": "mean_field_normal",
    "bias_posterior": "mean_field_normal",
}
STARTS_NARROW = {
    "posterior": tfbbb.posteriors.MeanFieldNormal(0.01),
    "bias_posterior": tfbbb.posteriors.MeanFieldNormal(0.01),
}
METHODS: Mapping[str, dict[str, Any]] = {
    KERAS: {},
    SAME: {},
    "default": {},
    "starting at 0.1": STARTS_WIDE,
    "starting at 0.01": STARTS_NARROW,
    "normal, 1/sqrt(fan_in)": {**STARTS_WIDE, "prior": "normal"},
    "normal, 1": {
        "prior": tfbbb.priors.Normal(1.0),
        "bias_prior": tfbbb.priors.Normal(1.0),
    },
    "normal, 0.3": {**STARTS_WIDE, "prior": tfbbb.priors.Normal(0.3)},
    "normal, learned": {**STARTS_WIDE, "prior": tfbbb.priors.Normal(trainable=True)},
    "scale_mixture_normal": {**STARTS_WIDE, "prior": "scale_mixture_normal"},
    "empirical_normal": {**STARTS_WIDE, "prior": "empirical_normal"},
    "horseshoe": {**STARTS_WIDE, "prior": "horseshoe"},
    "laplace": {**STARTS_WIDE, "prior": "laplace"},
    "student_t": {**STARTS_WIDE, "prior": "student_t"},
}


@dataclass(frozen=True)
class Cell:
    """One network on one table."""

    table: str
    kind: str
    depth: int
    width: int

    def __str__(self) -> str:
        return f"{self.table} {self.kind} {self.depth}x{self.width}"


@dataclass(frozen=True)
class Split:
    """Rows to train on and rows to score."""

    x: np.ndarray
    y: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray

    @property
    def num_classes(self) -> int | None:
        """Number of classes, or None for numbers."""
        return int(self.y.max()) + 1 if self.y.ndim == 1 else None


def main() -> None:
    """Measures the cells that have no record yet, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--data",
        type=Path,
        default=Path(os.environ.get("TFBBB_DATA", DATA)),
        help="directory of the tables (default: $TFBBB_DATA, else ../shared/data)",
    )
    parser.add_argument(
        "--cells",
        default="*",
        help="pattern of the cells to measure, such as 'mnist-9000 dense *'",
    )
    parser.add_argument(
        "--methods",
        nargs="+",
        choices=list(METHODS),
        default=[KERAS, SAME, "default"],
        help="layers and priors to measure (default: those of Keras, and the default)",
    )
    parser.add_argument("--seeds", type=int, default=1, help="seeds of each cell")
    parser.add_argument(
        "--threads", type=int, default=1, help="threads of TensorFlow (default: 1)"
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path(__file__).with_suffix(".json"),
        help="file of the records (default: beside this program)",
    )
    options = parser.parse_args()
    tf.config.threading.set_intra_op_parallelism_threads(options.threads)
    tf.config.threading.set_inter_op_parallelism_threads(options.threads)
    results = read_results(options.output)
    known = {(r["cell"], r["method"], r["seed"]) for r in results["records"]}
    results["runs"].append(machine())
    for cell in cells():
        if not fnmatch.fnmatchcase(str(cell), options.cells):
            continue
        for seed in range(options.seeds):
            for method in options.methods:
                if (str(cell), method, seed) in known:
                    continue
                if method == SAME and cell.table not in UCI:
                    continue
                for record in measure(cell, method, seed, options.data):
                    record["run"] = len(results["runs"]) - 1
                    results["records"].append(record)
                    print(json.dumps(rounded(record)), flush=True)
                write_results(options.output, results)
    print_results(results["records"])


def cells() -> list[Cell]:
    """Returns every cell, the most telling of the cheap ones first."""
    shapes = [(1, 100), (2, 100), (1, 400), (3, 100), (2, 400)]
    shapes += [(1, 1200), (3, 400), (2, 1200), (3, 1200)]
    images = [
        Cell(table, "dense", *shape)
        for shape in shapes
        for table in ("mnist-9000", "fashion-8000")
    ]
    tables = [
        Cell(table, "dense", *shape)
        for shape in [(1, 50), (2, 50), (1, 400), (3, 50), (2, 400)]
        for table in UCI
    ]
    others = [Cell("mnist-9000", "cnn", 2, 16), Cell("mnist-9000", "lstm", 1, 50)]
    wide = [Cell(table, "dense", depth, 1200) for depth in range(1, 4) for table in UCI]
    large = [
        Cell("mnist-50000", kind, depth, width)
        for kind, depth, width in (
            ("dense", 1, 100),
            ("dense", 2, 400),
            ("cnn", 2, 16),
            ("dense", 1, 1200),
            ("dense", 2, 1200),
            ("dense", 3, 1200),
        )
    ]
    few = [Cell("mnist14-2000", "dense", 2, 300)]
    first, rest = [*few, *images[:2], *tables[:10], *images[2:4], *others], images[4:]
    return [*first, *tables[10:], *rest, *wide, *large]


def measure(cell: Cell, method: str, seed: int, data: Path) -> list[dict[str, Any]]:
    """Trains one network, and scores it after each number of epochs."""
    split = load(cell.table, data)
    keras.utils.set_random_seed(seed)
    model = network(cell, split, method, seed)
    records, seconds = [], 0.0
    for before, epochs in zip((0, *EPOCHS), EPOCHS, strict=False):
        start = time.perf_counter()
        history = model.fit(split.x, split.y, epochs=epochs - before, verbose=0).history
        seconds += time.perf_counter() - start
        log_likelihoods, means = scores(model, split)
        record = {"cell": str(cell), "epochs": epochs, "method": method, "seed": seed}
        record["log_likelihood"] = float(np.mean(log_likelihoods))
        if split.num_classes is None:
            record["rmse"] = float(np.sqrt(np.mean((means - split.y_test) ** 2)))
        else:
            record["accuracy"] = float(np.mean(means.argmax(-1) == split.y_test))
        for name in ("nll", "kl"):
            if name in history:
                record[name] = history[name][-1]
        records.append({**record, "seconds": seconds})
    return records


def load(table: str, data: Path) -> Split:
    """Returns the rows of a table: images in [0, 1], standardised columns."""
    name, _, count = table.partition("-")
    if table in UCI:
        archive = np.load(data / "uci" / f"{table}.npz")
        x = archive["data"][:, archive["index_features"].astype(int)]
        y = archive["data"][:, int(archive["index_target"]), np.newaxis]
        train, test = archive["train_idx"][0], archive["test_idx"][0]
        shift, scale = x[train].mean(0), x[train].std(0)
        x = (x - shift) / np.where(scale > 0, scale, 1.0)
        return Split(
            *(rows.astype("float32") for rows in (x[train], y[train], x[test], y[test]))
        )
    rows = int(count)
    if name.startswith("mnist"):
        archive = np.load(data / "mnist.npz")
        train, test = slice(rows), slice(None)
        x, y = archive["x_train"][train], archive["y_train"][train]
        x_test, y_test = archive["x_test"][test], archive["y_test"][test]
    else:
        archive = np.load(data / "fashion_mnist_test.npz")
        # The file is sorted by class.
        order = np.random.default_rng(0).permutation(len(archive["y"]))
        images, labels = archive["x"][order], archive["y"][order]
        x, y, x_test, y_test = (
            images[:rows],
            labels[:rows],
            images[rows:],
            labels[rows:],
        )
    if name == "mnist14":
        x, x_test = (
            rows.reshape(-1, 14, 2, 14, 2).mean((2, 4)) for rows in (x, x_test)
        )
    return Split(
        (x / 255.0).astype("float32"),
        y.astype("int64"),
        (x_test / 255.0).astype("float32"),
        y_test.astype("int64"),
    )


def network(cell: Cell, split: Split, method: str, seed: int) -> keras.Model:
    """Returns the compiled network of a cell."""
    is_keras = method in (KERAS, SAME)
    dense: Any = keras.layers.Dense if is_keras else DenseVariational
    convolution: Any = keras.layers.Conv2D if is_keras else Conv2DVariational
    recurrent: Any = keras.layers.LSTM if is_keras else LSTMVariational

    def options(number: int) -> dict[str, Any]:
        start = keras.initializers.GlorotUniform(seed=1000 * seed + number)
        return {"kernel_initializer": start, **METHODS[method]}

    inputs = hidden = keras.Input(split.x.shape[1:])
    if cell.kind == "dense":
        hidden = keras.layers.Flatten()(hidden)
    elif cell.kind == "cnn":
        hidden = keras.layers.Reshape((*split.x.shape[1:], 1))(hidden)
    for number in range(1, cell.depth + 1):
        if cell.kind == "dense":
            hidden = dense(cell.width, "relu", **options(number))(hidden)
        elif cell.kind == "cnn":
            layer = convolution(
                number * cell.width, 5, activation="relu", **options(number)
            )
            hidden = keras.layers.MaxPooling2D()(layer(hidden))
        else:
            more = number < cell.depth
            layer = recurrent(cell.width, return_sequences=more, **options(number))
            hidden = layer(hidden)
    if cell.kind == "cnn":
        hidden = keras.layers.Flatten()(hidden)
    classes = split.num_classes
    if method == KERAS:
        return keras_model(inputs, dense(classes or 1, **options(0))(hidden), split)
    outputs = dense(classes or 2, **options(0))(hidden)
    likelihood: Any = "categorical"
    if classes is None:
        likelihood = tfbbb.likelihoods.Normal(heteroscedastic=True)
    model = tfbbb.BayesianModel(inputs, outputs, likelihood=likelihood)
    model.compile("adam")
    return model


def keras_model(inputs: Any, outputs: Any, split: Split) -> keras.Model:
    """Returns a compiled model of logits, or of means in the units of the targets."""
    loss: Any = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    if split.num_classes is None:
        # The likelihood of ours works in standard units.
        shift, scale = float(split.y.mean()), float(split.y.std())
        outputs = keras.layers.Rescaling(scale, shift)(outputs)

        def loss(targets: Any, means: Any) -> Any:
            return keras.ops.mean(((targets - means) / scale) ** 2)

    model = keras.Model(inputs, outputs)
    model.compile("adam", loss)
    return model


def scores(model: Any, split: Split) -> tuple[Any, np.ndarray]:
    """Returns log-likelihoods and means of the test rows; logits count as means."""
    x, y = split.x_test, split.y_test
    if isinstance(model, tfbbb.BayesianModel):
        if model.variational_layers:
            prediction = model.predictive(x, num_samples=50, seed=0)
            return prediction.log_prob(y), prediction.mean
        evaluated = model.evaluate(x, y, verbose=0, return_dict=True)
        return -evaluated["nll"], model.predict(x, verbose=0)
    outputs = model.predict(x, batch_size=1000, verbose=0)
    if split.num_classes is not None:
        rows = np.arange(len(outputs))
        return tf.nn.log_softmax(outputs).numpy()[rows, y], outputs
    residuals = model.predict(split.x, batch_size=1000, verbose=0) - split.y
    noise = np.sqrt(np.mean(residuals**2))
    z = (outputs - y) / noise
    return -0.5 * z**2 - np.log(noise) - 0.5 * np.log(2.0 * np.pi), outputs


def print_results(records: list[dict[str, Any]]) -> None:
    """Prints every method beside Keras', and the share of cells that it wins."""
    keyed = {(r["method"], r["cell"], r["epochs"], r["seed"]): r for r in records}
    rows, shares = [], []
    for twin in (KERAS, SAME):
        for method in METHODS:
            if method in (KERAS, SAME):
                continue
            pairs = [
                (keyed[(twin, *key)], record)
                for (name, *key), record in keyed.items()
                if name == method and (twin, *key) in keyed
            ]
            if pairs:
                rows += [beside(*pair) for pair in pairs]
                shares.append(share(pairs))
    if rows:
        columns = ["cell", "epochs", "layers", "beside", "log-likelihood", "of Keras"]
        columns += ["accuracy or RMSE", "of Keras"]
        print_table("held-out figures", columns, rows)
        columns = ["layers", "beside", "log-likelihood at least Keras'", "share"]
        columns += ["largest loss of accuracy", "more than half a point"]
        print_table("cells", columns, shares)


def beside(twin: dict[str, Any], record: dict[str, Any]) -> list[str]:
    """Returns a row with the figures of a record and of its twin."""
    figure = "rmse" if "rmse" in record else "accuracy"
    return [
        record["cell"],
        str(record["epochs"]),
        record["method"],
        twin["method"],
        f"{record['log_likelihood']:.3f}",
        f"{twin['log_likelihood']:.3f}",
        f"{record[figure]:.4g}",
        f"{twin[figure]:.4g}",
    ]


def share(pairs: list[tuple[dict[str, Any], dict[str, Any]]]) -> list[str]:
    """Returns a row with the share of cells where a method is at least its twin."""
    won = sum(r["log_likelihood"] >= twin["log_likelihood"] for twin, r in pairs)
    losses = [twin["accuracy"] - r["accuracy"] for twin, r in pairs if "accuracy" in r]
    twin, record = pairs[0]
    return [
        record["method"],
        twin["method"],
        f"{won} of {len(pairs)}",
        f"{100 * won / len(pairs):.0f} %",
        f"{100 * max(losses):.1f} points" if losses else "",
        f"{sum(loss > ACCURACY for loss in losses)} of {len(losses)}",
    ]


def read_results(path: Path) -> dict[str, Any]:
    """Returns the records of earlier runs."""
    if not path.exists():
        return {"runs": [], "records": []}
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def write_results(path: Path, results: Mapping[str, Any]) -> None:
    """Writes all records, one per line, in place of the file."""
    lists = {
        name: ",\n".join("    " + json.dumps(rounded(value)) for value in values)
        for name, values in results.items()
    }
    text = ",\n".join(f'  "{name}": [\n{body}\n  ]' for name, body in lists.items())
    staged = path.with_suffix(".part")
    staged.write_text(f"{{\n{text}\n}}\n")
    staged.replace(path)


if __name__ == "__main__":
    main()
