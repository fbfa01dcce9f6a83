"""Peak memory of training: a deterministic model and its variational twins.

    python benchmarks/memory.py

Each model runs in a separate process. The result is the highest resident set size
during training, minus that before it, which libraries and data take.
"""

import argparse
import os
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import train_step
from timing import machine, print_table, write_json


def main() -> None:
    """Measures, prints the tables and writes the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=20, help="steps of one epoch")
    options = parser.parse_args()
    results: dict[str, Any] = {"machine": machine(), "nets": {}}
    for net, hidden in train_step.NETS.items():
        estimators = [e for e in train_step.ESTIMATORS if hidden or e != "local"]
        names = [train_step.KERAS, *(f"tfbbb {name}" for name in estimators)]
        used = {name: in_a_process(name, hidden, options.steps) for name in names}
        summary = {
            name: {"megabytes": value, "times_keras": value / used[train_step.KERAS]}
            for name, value in used.items()
        }
        rows = [
            [name, f"{row['megabytes']:.0f}", f"{row['times_keras']:.2f}"]
            for name, row in summary.items()
        ]
        title = f"{net}, batch {train_step.BATCH_SIZE}"
        print_table(title, ["layers", "MB", "× Keras"], rows)
        results["nets"][net] = summary
    write_json(__file__, results)


def in_a_process(name: str, hidden: tuple[int, ...] | None, steps: int) -> float:
    """Returns the peak of a model in megabytes, measured in a new process."""
    context = get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(peak, name, hidden, steps).result()


def peak(name: str, hidden: tuple[int, ...] | None, steps: int) -> float:
    """Returns the megabytes that training takes in addition to libraries and data."""
    import keras

    import tfbbb

    x, y = train_step.images(steps * train_step.BATCH_SIZE, flat=hidden is not None)
    # The memory that TensorFlow allocates at its first step of any model.
    small = keras.Sequential([keras.Input((2,)), tfbbb.layers.DenseVariational(1)])
    small.layers[0].kl_weight.assign(1.0)
    small.compile("adam", loss="mse")
    small.fit(x.reshape(-1, 2)[:64], y[:64], verbose=0)
    before = resident()
    highest = [before]
    stop = threading.Event()

    def watch() -> None:
        while not stop.is_set():
            highest[0] = max(highest[0], resident())
            time.sleep(0.001)

    watcher = threading.Thread(target=watch)
    watcher.start()
    model = train_step.keras_model(name, hidden)
    for _ in range(2):
        model.fit(x, y, batch_size=train_step.BATCH_SIZE, verbose=0)
    stop.set()
    watcher.join()
    return highest[0] - before


def resident() -> float:
    """Returns the resident set size of this process in megabytes."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


if __name__ == "__main__":
    main()
