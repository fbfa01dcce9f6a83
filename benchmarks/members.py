"""Milliseconds per training step of an ensemble, compared with one of its members.

python benchmarks/members.py
"""

import argparse
import functools
import time
from typing import Any

from timing import interleaved, machine, print_table, ratio, spread, write_json

MEMBERS = 5
# Inputs, hidden units, outputs and rows of a batch.
NETS = {
    "13-50-50-2": (13, (50, 50), 2, 64),
    "784-400-400-10": (784, (400, 400), 10, 128),
}


def main() -> None:
    """Measures, prints the tables and writes the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=50, help="steps of one epoch")
    parser.add_argument("--rounds", type=int, default=9, help="epochs of each model")
    options = parser.parse_args()
    results: dict[str, Any] = {"machine": machine(), "nets": {}}
    for net, (_, _, _, batch_size) in NETS.items():
        timers = {
            name: functools.partial(milliseconds, net, members, options.steps)
            for name, members in (("one", 1), (f"{MEMBERS} members", MEMBERS))
        }
        for timer in timers.values():
            timer()
        measured = interleaved(timers, options.rounds, net)
        summary = {
            name: {
                "milliseconds": spread(values),
                "times_one": ratio(measured, name, "one"),
            }
            for name, values in measured.items()
        }
        rows = [
            [name, f"{row['milliseconds']['median']:.2f}", f"{row['times_one']:.2f}"]
            for name, row in summary.items()
        ]
        title = f"{net}, batch {batch_size}"
        print_table(title, ["posteriors", "ms per step", "× one"], rows)
        results["nets"][net] = summary
    write_json(__file__, results)


def milliseconds(net: str, members: int, steps: int) -> float:
    """Returns the duration of a step, averaged over an epoch of `fit`."""
    model = compiled(net, members)
    x, y = table(net, steps)
    begin = time.perf_counter()
    model.fit(x, y, batch_size=NETS[net][-1], verbose=0)
    return 1e3 * (time.perf_counter() - begin) / steps


@functools.cache
def table(net: str, steps: int) -> tuple[Any, Any]:
    """Returns random inputs and targets for a number of steps."""
    import numpy as np

    num_inputs, _, num_outputs, batch_size = NETS[net]
    generator = np.random.default_rng(0)
    rows = steps * batch_size
    x = generator.normal(size=(rows, num_inputs)).astype("float32")
    if num_outputs == 2:
        return x, generator.normal(size=(rows, 1)).astype("float32")
    return x, generator.integers(num_outputs, size=rows, dtype=np.int32)


@functools.cache
def compiled(net: str, members: int) -> Any:
    """Returns a compiled model with this number of members."""
    import keras

    import tfbbb

    num_inputs, hidden, num_outputs, _ = NETS[net]
    inputs = outputs = keras.Input((num_inputs,))
    for units in hidden:
        outputs = tfbbb.layers.DenseVariational(units, "relu")(outputs)
    outputs = tfbbb.layers.DenseVariational(num_outputs)(outputs)
    likelihood = (
        tfbbb.likelihoods.Normal(heteroscedastic=True)
        if num_outputs == 2
        else "categorical"
    )
    model = tfbbb.BayesianModel(inputs, outputs, likelihood=likelihood, members=members)
    model.compile("adam")
    return model


if __name__ == "__main__":
    main()
