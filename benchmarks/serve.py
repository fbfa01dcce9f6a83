"""Milliseconds per request of the service, and the share of the prediction.

    python benchmarks/serve.py

One client on one connection calls a service in another process on the same machine.
"""

import argparse
import http.client
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import orjson
from timing import interleaved, machine, print_table, write_json

from service.api.keys.credential import Credential
from service.model_process.codecs import json_rows
from service.model_process.table import from_rows
from tfbbb import BayesianModel
from tfbbb.export import load
from tfbbb.layers import DenseVariational

ROOT = Path(__file__).parent.parent
PORT = 8391
KEY = Credential.generate().text


def main() -> None:
    """Measures, prints and writes the results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=400, help="requests of one row")
    options = parser.parse_args()
    results: dict[str, Any] = {"machine": machine()}
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        export(root / "small" / "1", [13, 50, 1], "normal")
        export(root / "pixels" / "1", [784, 10], "categorical")
        with service(root) as connection:
            results["one row of 13, net 13-50-1, S = 100"] = measure(
                one_row(connection, root), options.rounds
            )
            results["1000 rows of 784, net 784-10, S = 2"] = measure(
                many_rows(connection, root), options.rounds // 10
            )
    for title, figures in results.items():
        if title != "machine":
            rows = [
                [name, f"{times['p50']:.2f}", f"{times['p95']:.2f}"]
                for name, times in figures.items()
            ]
            print_table(title, ["", "p50, ms", "p95, ms"], rows)
    write_json(__file__, results)


def export(path: Path, sizes: list[int], likelihood: str) -> None:
    """Exports an untrained network: training does not change the speed."""
    inputs = outputs = keras.Input((sizes[0],))
    for units in sizes[1:-1]:
        outputs = DenseVariational(units, activation="relu")(outputs)
    outputs = DenseVariational(sizes[-1])(outputs)
    path.parent.mkdir(parents=True)
    BayesianModel(inputs, outputs, likelihood=likelihood).export_predictive(path)


@contextmanager
def service(models: Path) -> Iterator[http.client.HTTPConnection]:
    """Runs the service in another process until the block ends."""
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "uvicorn", "--factory", "service.app:create_app"),
            *("--port", str(PORT), "--log-level", "warning"),
        ],
        cwd=ROOT,
        env=os.environ
        | {
            "TFBBB_MODELS": str(models),
            "TFBBB_DATA_DIR": str(models / ".data"),
            "TFBBB_ADMIN_KEY": KEY,
        },
    )
    connection = http.client.HTTPConnection("127.0.0.1", PORT)
    try:
        while not is_ready(connection):
            time.sleep(0.1)
        yield connection
    finally:
        process.terminate()
        process.wait()


def is_ready(connection: http.client.HTTPConnection) -> bool:
    """Returns whether the models are loaded."""
    try:
        connection.request("GET", "/health/ready")
        response = connection.getresponse()
        response.read()
        return response.status == 200
    except ConnectionError:
        connection.close()
        return False


def request(
    connection: http.client.HTTPConnection, method: str, path: str, body: bytes = b""
) -> Callable[[], object]:
    """Returns a function that sends a request and reads the response."""
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {KEY}"}

    def ask() -> None:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        answer = response.read()
        assert response.status == 200, answer

    return ask


def one_row(
    connection: http.client.HTTPConnection, root: Path
) -> dict[str, Callable[[], object]]:
    """Returns contenders with one row, whose cost is the round trip."""
    model = load(root / "small" / "1")
    row = np.random.default_rng(0).normal(size=(1, 13))
    body = orjson.dumps({"instances": row.tolist()})
    return {
        "request": request(connection, "POST", "/v1/models/small:predict", body),
        "request without a prediction": request(connection, "GET", "/health/live"),
        "prediction, in this process": lambda: model.predict(row),
    }


def many_rows(
    connection: http.client.HTTPConnection, root: Path
) -> dict[str, Callable[[], object]]:
    """Returns contenders with many rows, whose cost is the size of the body."""
    path = "/v1/models/pixels:predict"
    model = load(root / "pixels" / "1")
    rows = np.random.default_rng(0).normal(size=(1000, 784))
    pixels = (rows * 255).clip(0, 255).astype(int)
    parameters = {"num_samples": 2}
    body, pixels_body = (
        orjson.dumps({"instances": table.tolist(), "parameters": parameters})
        for table in (rows, pixels)
    )

    def read() -> None:
        from_rows(json_rows.read(body, {}).rows, model.manifest, "instances")

    return {
        f"request, {len(body) / 1e6:.0f} MB of JSON": request(
            connection, "POST", path, body
        ),
        f"request, {len(pixels_body) / 1e6:.0f} MB of whole numbers": request(
            connection, "POST", path, pixels_body
        ),
        "reading the JSON, in this process": read,
        "prediction, in this process": lambda: model.predict(rows, 2),
    }


def measure(contenders: dict[str, Callable[[], object]], rounds: int) -> Any:
    """Returns the percentiles of each contender's milliseconds."""

    def timer(run: Callable[[], object]) -> Callable[[], float]:
        def milliseconds() -> float:
            begin = time.perf_counter()
            run()
            return 1e3 * (time.perf_counter() - begin)

        # The first calls compile.
        milliseconds(), milliseconds()
        return milliseconds

    timers = {name: timer(run) for name, run in contenders.items()}
    percentiles = {
        name: statistics.quantiles(values, n=20, method="inclusive")
        for name, values in interleaved(timers, rounds, "requests").items()
    }
    return {
        name: {"p50": values[9], "p95": values[18]}
        for name, values in percentiles.items()
    }


if __name__ == "__main__":
    main()
