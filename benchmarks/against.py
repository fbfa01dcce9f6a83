"""Compares the speed of this checkout with another commit, side by side in one run.

    python benchmarks/against.py COMMIT

Each tree runs in a separate process and is measured once per round: a training step,
predictions of a live and of a loaded model, and requests to its service. A ratio above
1 means that this checkout is slower.
"""

import argparse
import functools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
# A measurement repeats fast calls until it has taken this long.
SECONDS = 0.2
HERE = "this checkout"


def main() -> None:
    """Measures both trees, prints and writes the results; or runs as a worker."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("commit", help="the commit to compare with, such as HEAD~5")
    parser.add_argument("--rounds", type=int, default=21, help="rounds of measurements")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        measure_on_demand()
    else:
        compare(options.commit, options.rounds)


def compare(commit: str, rounds: int) -> None:
    """Measures both trees and prints their ratio."""
    from timing import interleaved, machine, print_table, ratio, spread, write_json

    results: dict[str, Any] = {"machine": machine(), "commit": commit, "figures": {}}
    with ExitStack() as stack:
        other = stack.enter_context(checkout(commit))
        trees = {HERE: ROOT, commit: other}
        workers = {
            name: stack.enter_context(worker(tree)) for name, tree in trees.items()
        }
        names, _ = (worker.readline() for worker in workers.values())
        rows = []
        for what in names:
            timers = {
                name: functools.partial(worker.ask, what)
                for name, worker in workers.items()
            }
            measured = interleaved(timers, rounds, what)
            ratios = [
                mine / theirs
                for mine, theirs in zip(measured[HERE], measured[commit], strict=True)
            ]
            results["figures"][what] = {
                HERE: spread(measured[HERE]),
                commit: spread(measured[commit]),
                "ratio": spread(ratios),
            }
            rows.append(
                [
                    what,
                    *(f"{spread(measured[name])['median']:.3g}" for name in trees),
                    f"{ratio(measured, HERE, commit):.3f}",
                ]
            )
    print_table("Milliseconds", ["", *trees, "ratio"], rows)
    write_json(__file__, results)


@contextmanager
def checkout(commit: str) -> Iterator[Path]:
    """Checks the commit out into a temporary directory until the block ends."""
    git = ["git", "-C", str(ROOT)]
    with tempfile.TemporaryDirectory() as directory:
        tree = Path(directory) / "tree"
        add = ["worktree", "add", "--quiet", "--detach", str(tree), commit]
        subprocess.run([*git, *add], check=True)
        try:
            yield tree
        finally:
            subprocess.run([*git, "worktree", "remove", "--force", tree], check=True)


class Worker:
    """The process that measures one tree on request, by lines of JSON."""

    def __init__(self, process: "subprocess.Popen[str]"):
        self._process = process

    def readline(self) -> Any:
        """Returns the next line of the process."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"The process ended with {self._process.wait()}.")
        return json.loads(line)

    def ask(self, what: str) -> float:
        """Returns the milliseconds of one measurement."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()
        return float(self.readline())


@contextmanager
def worker(tree: Path) -> Iterator[Worker]:
    """Runs the process of one tree until the block ends."""
    process = subprocess.Popen(
        [sys.executable, __file__, "HEAD", "--worker"],
        cwd=tree,
        env=os.environ | {"PYTHONPATH": str(tree), "TF_CPP_MIN_LOG_LEVEL": "3"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield Worker(process)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait()


def measure_on_demand() -> None:
    """Measures the contender that each line of standard input names."""
    import httpx

    from tfbbb.cli.running_service import running_service

    answers, sys.stdout = sys.stdout, sys.stderr
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        contenders = steps() | predictions(root)
        with running_service(root) as service:
            headers = {"Authorization": f"Bearer {service.key}"}
            client = httpx.Client(base_url=service.url, headers=headers, timeout=60)
            contenders |= requests(client)
            for run in contenders.values():
                run(), run()
            print(json.dumps(list(contenders)), file=answers, flush=True)
            for line in sys.stdin:
                milliseconds = timed(contenders[json.loads(line)])
                print(json.dumps(milliseconds), file=answers, flush=True)


def timed(run: Callable[[], float]) -> float:
    """Returns milliseconds per unit; `run` returns its number of units."""
    begin, calls = time.perf_counter(), 0.0
    while time.perf_counter() - begin < SECONDS:
        calls += run()
    return 1e3 * (time.perf_counter() - begin) / calls


def network(sizes: list[int], likelihood: Any) -> Any:
    """Returns a compiled network with these numbers of units."""
    import keras

    import tfbbb

    keras.utils.set_random_seed(0)
    inputs = outputs = keras.Input((sizes[0],))
    for units in sizes[1:-1]:
        outputs = tfbbb.layers.DenseVariational(units, activation="relu")(outputs)
    outputs = tfbbb.layers.DenseVariational(sizes[-1])(outputs)
    model = tfbbb.BayesianModel(inputs, outputs, likelihood=likelihood)
    model.compile("adam")
    return model


def steps() -> dict[str, Callable[[], float]]:
    """Returns timers of an epoch of `fit`, per step."""
    import numpy as np

    generator = np.random.default_rng(0)
    contenders = {}
    for sizes, likelihood, batch, count in (
        ([784, 400, 400, 10], "categorical", 128, 20),
        ([13, 50, 1], "normal", 32, 100),
    ):
        x = generator.normal(size=(batch * count, sizes[0])).astype("float32")
        y = x[:, 0] if likelihood == "normal" else generator.integers(10, size=len(x))
        model = network(sizes, likelihood)

        def fit(
            model: Any = model, x: Any = x, y: Any = y, batch: int = batch
        ) -> float:
            model.fit(x, y, batch_size=batch, epochs=1, verbose=0)
            return len(x) / batch

        contenders[f"step, {'-'.join(map(str, sizes))}, batch {batch}"] = fit
    return contenders


def predictions(root: Path) -> dict[str, Callable[[], float]]:
    """Returns timers of predictions of 100 draws, by a live and a loaded model."""
    import numpy as np

    import tfbbb

    contenders: dict[str, Callable[[], float]] = {}
    for sizes, likelihood, numbers in (
        ([784, 400, 400, 10], "categorical", (1, 32, 256)),
        ([13, 50, 1], "normal", (1, 256)),
    ):
        net = "-".join(map(str, sizes))
        model = network(sizes, likelihood)
        model.export_predictive(root / net / "1")
        loaded = tfbbb.load(root / net)
        for number in numbers:
            x = np.random.default_rng(0).normal(size=(number, sizes[0]))
            x = x.astype("float32")
            for name, kind in (("live", model), ("loaded", loaded)):

                def predict(kind: Any = kind, x: Any = x) -> float:
                    kind.predictive(x, 100)
                    return 1.0

                contenders[f"{name} predictive, {net}, {number} rows"] = predict
    return contenders


def requests(client: Any) -> dict[str, Callable[[], float]]:
    """Returns timers of requests on one connection: one row, many rows, no row."""
    import numpy as np

    def post(net: str, rows: int, num_samples: int) -> Callable[[], float]:
        columns = int(net.partition("-")[0])
        instances = np.random.default_rng(0).normal(size=(rows, columns)).tolist()
        parameters = {"num_samples": num_samples}
        body = json.dumps({"instances": instances, "parameters": parameters})
        headers = {"Content-Type": "application/json"}

        def ask() -> float:
            path = f"/v1/models/{net}:predict"
            client.post(path, content=body, headers=headers).raise_for_status()
            return 1.0

        return ask

    def get(path: str) -> Callable[[], float]:
        def ask() -> float:
            client.get(path).raise_for_status()
            return 1.0

        return ask

    return {
        "request, 13-50-1, 1 row": post("13-50-1", 1, 100),
        "request, 784-400-400-10, 500 rows": post("784-400-400-10", 500, 2),
        "request, list of jobs": get("/v1/jobs"),
        "request, /health/ready": get("/health/ready"),
    }


if __name__ == "__main__":
    main()
