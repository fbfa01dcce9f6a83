"""Error of the moments method on regression tables, compared with posterior draws.

    python benchmarks/moments.py --data DIRECTORY

The directory holds `uci/SET.npz` with `data` [rows, columns], the columns
`index_features` and `index_target`, and the rows `train_idx` and `test_idx` of each
split. Errors are measured on test rows, in predictive standard deviations.
"""

import argparse
import os
import time
from pathlib import Path
from typing import Any

import keras
import numpy as np
from timing import machine, print_table, write_json

from tfbbb import BayesianModel
from tfbbb.bayes.likelihoods import Normal
from tfbbb.layers import DenseVariational
from tfbbb.prediction.moments import operations, output_moments

SETS = ("yacht", "bostonHousing", "energy")
HIDDEN = ((50,), (50, 50))
DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def main() -> None:
    """Trains, measures, prints the table and writes the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--data",
        type=Path,
        default=Path(os.environ.get("TFBBB_DATA", DATA)),
        help="directory of the tables (default: $TFBBB_DATA, else ../shared/data)",
    )
    parser.add_argument("--draws", type=int, default=100_000, help="posterior draws")
    parser.add_argument("--epochs", type=int, default=200, help="epochs of training")
    options = parser.parse_args()
    results: dict[str, Any] = {
        "machine": machine(),
        "draws": options.draws,
        "epochs": options.epochs,
        "nets": {},
    }
    rows = []
    for name in SETS:
        train, test = split(options.data / "uci" / f"{name}.npz")
        for hidden in HIDDEN:
            model = trained(*train, hidden, options.epochs)
            net = f"{name}, {'-'.join(map(str, hidden))}"
            found = results["nets"][net] = errors(model, test[0], options.draws)
            exact, *figures = found.values()
            cells = [f"{value:.4f}" for value in figures]
            rows.append([net, "exact" if exact else "approximate", *cells])
    columns = [
        "net",
        "operations",
        "mean, rms",
        "max",
        "stddev, rms",
        "max",
        "standard error of the draws' mean",
    ]
    print_table(f"Errors of the moments, {options.draws} draws", columns, rows)
    write_json(__file__, results)


def split(path: Path) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """Returns inputs and targets of the first split, in standard units."""
    table = np.load(path, allow_pickle=False)
    data, train, test = table["data"], table["train_idx"][0], table["test_idx"][0]
    spread = data[train].std(axis=0)
    data = (data - data[train].mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    x = data[:, table["index_features"].ravel().astype(int)].astype("float32")
    y = data[:, table["index_target"].ravel().astype(int)].astype("float32")
    return (x[train], y[train]), (x[test], y[test])


def trained(x: Any, y: Any, hidden: tuple[int, ...], epochs: int) -> BayesianModel:
    """Returns a network with ReLUs, trained on a table."""
    keras.utils.set_random_seed(0)
    inputs = outputs = keras.Input(x.shape[1:])
    for units in hidden:
        outputs = DenseVariational(units, "relu")(outputs)
    outputs = DenseVariational(1)(outputs)
    model = BayesianModel(inputs, outputs, likelihood=Normal(standardize=False))
    model.compile(keras.optimizers.Adam(0.01))
    model.fit(x, y, batch_size=32, epochs=epochs, verbose=0)
    return model


def errors(model: BayesianModel, x: Any, draws: int) -> dict[str, Any]:
    """Returns the errors of the moments over rows, in standard deviations."""
    begin = time.perf_counter()
    sampled = model.predictive(x, num_samples=draws, method="local")
    noise = np.asarray(sampled.aleatoric)
    mean, variance = (np.asarray(moment[0]) for moment in output_moments(model, x))
    stddev = np.sqrt(np.asarray(sampled.variance))
    mean_errors = (mean - np.asarray(sampled.mean)) / stddev
    stddev_ratio = np.sqrt(variance + noise) / stddev - 1.0
    print(f"{time.perf_counter() - begin:.1f} s for {draws} draws", flush=True)
    return {
        "exact": all(each.exact for each in operations(model)),
        "mean_rms": rms(mean_errors),
        "mean_max": float(np.max(np.abs(mean_errors))),
        "stddev_rms": rms(stddev_ratio),
        "stddev_max": float(np.max(np.abs(stddev_ratio))),
        "sampling_error": rms(np.asarray(sampled.mean_standard_error) / stddev),
    }


def rms(values: Any) -> float:
    """Returns the root of the mean square."""
    return float(np.sqrt(np.mean(np.square(values))))


if __name__ == "__main__":
    main()
