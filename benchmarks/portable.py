"""One row through an ONNX file, through the SavedModel, and their differences.

    python benchmarks/portable.py [--rounds 30]

The network has layers of 13, 50 and 1 units, and the likelihood a learned noise. Each
figure is milliseconds of a call with one row, the median of the rounds, in one process
and one thread of ONNX Runtime.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import onnxruntime
from timing import interleaved, machine, print_table, ratio, spread, write_json

import tfbbb

_CALLS = 200
_DRAWS = 100


def main() -> None:
    """Exports, measures, prints the table and writes the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=30, help="rounds of the timing")
    options = parser.parse_args()
    x = np.random.default_rng(0).normal(size=(500, 13)).astype("float32")
    model = trained(x)
    contenders: dict[str, Callable[[], float]] = {}
    differences: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        model.export_predictive(Path(folder) / "saved_model", num_samples=_DRAWS)
        loaded = tfbbb.load(Path(folder) / "saved_model")
        for method in ("weight", "moments"):
            path = Path(folder) / f"{method}.onnx"
            model.export_predictive(
                path, format="onnx", method=method, num_samples=_DRAWS
            )
            name = f"ONNX, {method}"
            session = one_thread(path)
            contenders[name] = timed(lambda s=session: s.run(None, {"inputs": x[:1]}))
            differences[name] = difference(session, model, x, method)
            contenders[f"loaded, {method}"] = timed(
                lambda m=method: loaded.predictive(x[:1], _DRAWS, m).variance
            )
        measured = interleaved(contenders, options.rounds, "one row")
    results: dict[str, Any] = {
        "machine": machine(),
        "onnxruntime": onnxruntime.__version__,
        "draws": _DRAWS,
        "milliseconds": {name: spread(times) for name, times in measured.items()},
        "largest_relative_difference": differences,
    }
    rows = []
    for method in ("weight", "moments"):
        names = f"ONNX, {method}", f"loaded, {method}"
        medians = [results["milliseconds"][name]["median"] for name in names]
        rows.append(
            [
                f"{_DRAWS} draws of the weights" if method == "weight" else method,
                *(f"{median:.3f}" for median in medians),
                f"{ratio(measured, *names):.2f}",
                f"{differences[names[0]]:.1e}",
            ]
        )
    columns = ["answers by", "ONNX, ms", "loaded, ms", "ratio", "largest difference"]
    print_table("One row of 13-50-1", columns, rows)
    write_json(__file__, results)


def trained(x: np.ndarray) -> tfbbb.BayesianModel:
    """Returns a network that was trained for a moment."""
    keras.utils.set_random_seed(0)
    inputs = keras.Input((13,))
    hidden = tfbbb.layers.DenseVariational(50, activation="relu")(inputs)
    outputs = tfbbb.layers.DenseVariational(1)(hidden)
    model = tfbbb.BayesianModel(inputs, outputs)
    model.compile(tfbbb.optimizers.Adam(0.01))
    model.fit(x, np.sin(x[:, :1]), epochs=20, verbose=0)
    return model


def one_thread(path: Path) -> onnxruntime.InferenceSession:
    """Returns a session of one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(path, options)


def timed(call: Callable[[], object]) -> Callable[[], float]:
    """Returns a function that returns the milliseconds of a call, of many in a row."""
    call()

    def measure() -> float:
        begin = time.perf_counter()
        for _ in range(_CALLS):
            call()
        return 1e3 * (time.perf_counter() - begin) / _CALLS

    return measure


def difference(
    session: onnxruntime.InferenceSession,
    model: tfbbb.BayesianModel,
    x: np.ndarray,
    method: str,
) -> float:
    """Returns the largest difference from the live model, relative to its largest."""
    live = model.predictive(x, _DRAWS, method)
    names = [output.name for output in session.get_outputs()]
    found = zip(names, session.run(names, {"inputs": x}), strict=True)
    return max(
        float(np.abs(values - getattr(live, name)).max() / np.abs(values).max())
        for name, values in found
    )


if __name__ == "__main__":
    main()
