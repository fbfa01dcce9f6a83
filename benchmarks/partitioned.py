"""Rows in partitions on separate machines: scores, bytes, time, stragglers and losses.

    tfbbb benchmark partitioned --data DIR [--part scores] [--sets yacht] [--splits 1]

`scores` trains networks on UCI tables in ten partitions, at random or sorted, beside
one machine and beside averages of weights. `costs` changes the number of partitions.
`rows` measures what a row and a round cost, for a plan of 10^8 rows. `stragglers`
simulates 100 workers.
"""

import argparse
import functools
import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from program import (
    add_table_options,
    argument_parser,
    markdown_table,
    names_among,
    run,
    with_error,
)
from records import RecordFile
from standard_splits import Split, find_tables
from straggler_simulation import Faults, SimulatedCluster, regression

PARTS = ("scores", "costs", "rows", "stragglers")
ONE, PARTITIONED, AVERAGED = "one machine", "partitioned VI", "averaged weights"
METHODS = (ONE, PARTITIONED, AVERAGED)
ARRANGEMENTS = ("random", "by target")
PARTITIONS = 10
ROUNDS = 30
# Steps of all partitions together; one machine takes as many.
STEPS = 30_000
BATCH = 32
HIDDEN = 50
COLUMNS = 20
FAULTS = {
    "none": Faults(),
    "a tenth of the workers is 5 × slower": Faults(slow=0.1),
    "also 5 % of the messages lost, 2 % doubled, 1 % of the tasks kill": Faults(
        slow=0.1, lost=0.05, doubled=0.02, deaths=0.01
    ),
}
SIZES = (10**6, 10**7)
REPEATS = 3


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures the parts, prints the tables and writes the records."""
    parser = argument_parser(__doc__)
    add_table_options(parser, METHODS, splits=1)
    parser.add_argument(
        "--part",
        type=names_among(PARTS),
        default=list(PARTS),
        metavar="A,B",
        help=f"parts (default: all of {', '.join(PARTS)})",
    )
    options = parser.parse_args(arguments)
    run(__file__, options, lambda measured: measure(measured, options), report)


def measure(measured: RecordFile, options: argparse.Namespace) -> None:
    """Adds the records of the parts."""
    for part in options.part:
        {
            "scores": measure_scores,
            "costs": measure_costs,
            "rows": measure_rows,
            "stragglers": measure_stragglers,
        }[part](measured, options)


def measure_scores(measured: RecordFile, options: argparse.Namespace) -> None:
    """Adds a record for each set, split, method and arrangement of the rows."""
    steps = STEPS // 500 if options.smoke else STEPS
    rounds = 3 if options.smoke else ROUNDS
    for table in find_tables(options.data, options.sets):
        splits = range(table.num_splits)[: 1 if options.smoke else options.splits]
        for index in splits:
            split = table.split(index, smoke=options.smoke)
            for method in options.methods:
                for arrangement in ARRANGEMENTS[: 1 if method == ONE else None]:
                    measured.measure(
                        {
                            "part": "scores",
                            "set": table.name,
                            "split": index,
                            "method": method,
                            "arrangement": arrangement,
                        },
                        functools.partial(
                            score, split, method, arrangement, PARTITIONS, rounds, steps
                        ),
                        settings={
                            "rounds": rounds,
                            "steps": steps,
                            "partitions": PARTITIONS,
                            "data": table.digest,
                            **({"damping": 0.25} if method == PARTITIONED else {}),
                        },
                        seed=index,
                    )


def measure_costs(measured: RecordFile, options: argparse.Namespace) -> None:
    """Adds a record for each number of partitions of one set."""
    steps = STEPS // 500 if options.smoke else STEPS
    rounds = 3 if options.smoke else ROUNDS
    table = find_tables(options.data, options.sets)[0]
    split = table.split(0, smoke=options.smoke)
    for partitions in (1, 2, 5) if options.smoke else (1, 2, 5, 10, 20, 50):
        measured.measure(
            {"part": "costs", "set": table.name, "partitions": partitions},
            functools.partial(
                score, split, PARTITIONED, "random", partitions, rounds, steps, 0.0
            ),
            settings={"rounds": rounds, "steps": steps, "data": table.digest},
        )


def score(
    split: Split,
    method: str,
    arrangement: str,
    partitions: int,
    rounds: int,
    steps: int,
    damping: float = 0.25,
) -> dict[str, Any]:
    """Trains a network on the training rows of a split and scores the test rows."""
    import keras

    from tfbbb.lab.distributed import PartitionedVI

    keras.utils.set_random_seed(split.table.num_splits)
    x, y = split.x_train, split.y_train
    shift, scale = x.mean(0), x.std(0)
    scale[scale == 0.0] = 1.0
    x, x_test = ((given - shift) / scale for given in (x, split.x_test))
    model = network(x.shape[1])
    parts = [(x[rows], y[rows]) for rows in arranged(y, arrangement, partitions)]
    epochs = max(1, round(steps * BATCH / (rounds * len(y))))
    start = time.perf_counter()
    if method == AVERAGED:
        fitted = federated_average(model, parts, rounds, epochs)
        figures = {}
    else:
        if method == ONE:
            parts, rounds, epochs, damping = [(x, y)], 1, rounds * epochs, 0.0
        vi = PartitionedVI(
            rounds=rounds, epochs=epochs, batch_size=BATCH, damping=damping
        )
        fitted = vi.fit(model, parts, verbose=0)
        found = fitted.diagnostics
        names = ("rounds", "updates", "bytes_sent", "withheld", "shortened")
        figures = {name: found[name] for name in names}
    seconds = time.perf_counter() - start
    prediction = fitted.predictive(x_test, num_samples=500)
    return {
        "log_likelihood": float(np.mean(prediction.log_prob(split.y_test))),
        "rmse": float(np.sqrt(np.mean((prediction.mean[:, 0] - split.y_test) ** 2))),
        "seconds": seconds,
        "weights": sum(w.size for w in fitted.variational_layers[0].variational_weights)
        + sum(w.size for w in fitted.variational_layers[1].variational_weights),
        **figures,
    }


def network(columns: int) -> Any:
    """Returns a network of one hidden layer, with mean-field posteriors."""
    import keras

    import tfbbb

    inputs = keras.Input((columns,))
    hidden = tfbbb.layers.DenseVariational(HIDDEN, activation="relu")(inputs)
    return tfbbb.BayesianModel(inputs, tfbbb.layers.DenseVariational(1)(hidden))


def arranged(y: np.ndarray, arrangement: str, partitions: int) -> list[np.ndarray]:
    """Returns the rows of each partition.

    Args:
        y: Targets, [rows].
        arrangement: `"random"`, or sorted `"by target"`.
        partitions: Number of partitions.
    """
    if arrangement == "random":
        order = np.random.default_rng(0).permutation(len(y))
    else:
        order = np.argsort(y, kind="stable")
    return np.array_split(order, partitions)


def federated_average(
    model: Any, parts: list[tuple[np.ndarray, np.ndarray]], rounds: int, epochs: int
) -> Any:
    """Averages the parameters of q in each round (McMahan et al. 2017).

    From the averages, each partition trains on its share of the evidence lower bound:
    the mean loss of its rows plus 1 / N of the divergence, N the rows of all. Averages
    weight the partitions by their rows. The learning rate follows half a cosine to 0
    over the rounds.
    """
    import tensorflow as tf

    import tfbbb

    sizes = np.array([len(y) for _, y in parts])
    model.likelihood.adapt(np.concatenate([y for _, y in parts]))
    steps = {size: max(1, epochs * (size // min(BATCH, size))) for size in sizes}
    data = [
        tf.data.Dataset.from_tensor_slices((x.astype("float32"), y.astype("float32")))
        .shuffle(len(y), seed=0)
        .repeat()
        .batch(min(BATCH, len(y)), drop_remainder=True)
        for x, y in parts
    ]
    model.compile(tfbbb.optimizers.Adam(0.01), steps_per_execution=min(steps.values()))
    average = model.get_weights()
    for index in range(rounds):
        rate = 0.005 * (1.0 + math.cos(math.pi * index / rounds))
        found = []
        for size, rows in zip(sizes, data, strict=True):
            model.set_weights(average)
            model.optimizer.learning_rate = rate
            model.fit(
                rows,
                steps_per_epoch=steps[size],
                dataset_size=float(sizes.sum()),
                verbose=0,
            )
            found.append(model.get_weights())
        average = [
            np.average(values, axis=0, weights=sizes).astype(values[0].dtype)
            for values in zip(*found, strict=True)
        ]
    model.set_weights(average)
    return model


def measure_rows(measured: RecordFile, options: argparse.Namespace) -> None:
    """Adds what rows cost the partitions, and what an update costs the server."""
    for size in (10**4,) if options.smoke else SIZES:
        for model in ("linear regression", "network"):
            measured.measure(
                {"part": "rows", "model": model, "rows": size},
                functools.partial(cost_of_rows, model, size),
                settings={"repeats": REPEATS},
            )
    for weights in (10**3,) if options.smoke else (10**3, 10**5, 10**6):
        measured.measure(
            {"part": "rows", "model": "server", "rows": weights},
            functools.partial(cost_of_an_update, weights),
        )


def cost_of_rows(model: str, size: int) -> dict[str, float]:
    """Returns the seconds of one pass over the rows of a partition."""
    random = np.random.default_rng(0)
    x = random.standard_normal((size, COLUMNS), dtype=np.float32)
    y = x[:, 0] + 0.1 * random.standard_normal(size, dtype=np.float32)
    from tfbbb.lab.distributed.linear_rows import LinearRows
    from tfbbb.lab.inference.natural_normal import NaturalNormal

    if model == "linear regression":
        prior = NaturalNormal.from_moments(np.zeros(COLUMNS), np.ones(COLUMNS))
        return {"seconds": least_time(lambda: LinearRows(x, y, 0.1, prior))}
    from tfbbb.lab.distributed.network_rows import (
        LocalTraining,
        NetworkRows,
        NetworkWeights,
    )

    built = network(COLUMNS)
    built.likelihood.adapt(y[:1000])
    weights = NetworkWeights(built)
    training = LocalTraining(weights, epochs=1, batch_size=1024, learning_rate=0.01)
    # Traces the function.
    NetworkRows(x[:4096], y[:4096], training, 0).optimum(
        weights.prior, weights.start, 1
    )
    rows = NetworkRows(x, y, training, 0)
    optimum = functools.partial(rows.optimum, weights.prior, weights.start, 1)
    return {"seconds": least_time(optimum)}


def least_time(function: Callable[[], Any]) -> float:
    """Returns the least time of three calls: others may share the machine."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def cost_of_an_update(weights: int) -> dict[str, float]:
    """Returns the seconds of the server for a task and its update, and their bytes."""
    from tfbbb.lab.distributed.factor_server import FactorServer, Update
    from tfbbb.lab.inference.natural_normal import NaturalNormal

    prior = NaturalNormal.from_moments(np.zeros(weights), np.ones(weights))
    server = FactorServer(prior, 10)
    change = NaturalNormal(np.ones(weights), np.ones(weights))
    server.receive(0, Update(server.task(0).number, change))
    times = []
    for _ in range(20):
        start = time.perf_counter()
        task = server.task(0)
        server.receive(0, Update(task.number, change))
        times.append(time.perf_counter() - start)
    return {"seconds": float(np.median(times)), "bytes": task.nbytes + change.nbytes}


def measure_stragglers(measured: RecordFile, options: argparse.Namespace) -> None:
    """Adds a record for each way to wait and each set of faults."""
    workers = 10 if options.smoke else 100
    problem = regression(workers, rows=200, weights=COLUMNS)
    for name, faults in FAULTS.items():
        for waiting in ("asynchronous", "synchronous"):
            for seed in range(1 if options.smoke else 5):
                measured.measure(
                    {
                        "part": "stragglers",
                        "faults": name,
                        "waiting": waiting,
                        "seed": seed,
                    },
                    functools.partial(simulate, problem, faults, waiting, seed),
                    settings={"workers": workers},
                    seed=seed,
                )


def simulate(
    problem: Any, faults: Faults, waiting: str, seed: int
) -> dict[str, float | bool]:
    """Runs a simulated cluster until q is the best q to 1e-5."""
    cluster = SimulatedCluster(
        problem, faults, synchronous=waiting == "synchronous", step=0.5, seed=seed
    )
    reached = cluster.run(tolerance=1e-5, most_updates=100_000)
    return {
        "reached": reached,
        "time": cluster.time,
        "updates": cluster.server.updates,
        "ignored": cluster.server.ignored,
        "deaths": cluster.deaths,
        "messages": cluster.messages,
    }


def report(measured: RecordFile) -> str:
    """Returns the tables of the parts that have records."""
    parts = [
        _report_scores(measured.select(part="scores")),
        _report_costs(measured.select(part="costs")),
        _report_rows(measured.select(part="rows")),
        _report_stragglers(measured.select(part="stragglers")),
    ]
    return "\n\n".join(part for part in parts if part)


def _report_scores(records: list[dict[str, Any]]) -> str:
    """Returns each set's test log-likelihood, less that of one machine."""
    if not records:
        return ""
    one = {(r["set"], r["split"]): r for r in records if r["method"] == ONE}
    ways = [(m, a) for m in METHODS[1:] for a in ARRANGEMENTS]
    rows, differences = [], {way: [] for way in ways}
    for name in dict.fromkeys(record["set"] for record in records):
        own = [r["log_likelihood"] for (other, _), r in one.items() if other == name]
        cells = [name, with_error(own)]
        for method, arrangement in ways:
            found = [
                r["log_likelihood"] - one[name, r["split"]]["log_likelihood"]
                for r in records
                if (r["set"], r["method"], r["arrangement"])
                == (name, method, arrangement)
                and (name, r["split"]) in one
            ]
            differences[method, arrangement] += found
            cells.append(with_error(found, 3))
        rows.append(cells)
    means = [with_error(differences[way], 3) for way in ways]
    rows.append(["mean of all", "", *means])
    header = ["set", "one machine", *(f"{m}, {a}" for m, a in ways)]
    title = (
        f"### {PARTITIONS} partitions: test log-likelihood per row, less that of one "
        "machine"
    )
    return f"{title}\n\n{markdown_table(header, rows)}"


def _report_costs(records: list[dict[str, Any]]) -> str:
    if not records:
        return ""
    rows = [
        [
            str(r["partitions"]),
            f"{r['bytes_sent'] / r['rounds']:,.0f}",
            f"{r['seconds'] / r['rounds']:.2f}",
            f"{r['seconds'] / r['updates']:.3f}",
            f"{r['log_likelihood']:.3f}",
        ]
        for r in records
    ]
    header = [
        "partitions",
        "bytes per round",
        "seconds per round, one process",
        "seconds per update",
        "log-likelihood",
    ]
    first = records[0]
    title = f"### {first['set']}, {first['weights']} weights: number of partitions"
    return f"{title}\n\n{markdown_table(header, rows)}"


def _report_rows(records: list[dict[str, Any]]) -> str:
    if not records:
        return ""
    rows = []
    for r in records:
        if r["model"] == "server":
            what = f"server, an update of {r['rows']:,} weights"
            rows.append([what, f"{1e3 * r['seconds']:.2f} ms", f"{r['bytes']:,} bytes"])
        else:
            per_row = f"{1e9 * r['seconds'] / r['rows']:.0f} ns per row"
            what = f"{r['model']}, one pass over {r['rows']:,} rows × {COLUMNS}"
            rows.append([what, f"{r['seconds']:.2f} s", per_row])
    return "### Costs of a row and of an update\n\n" + markdown_table(
        ["what", "time", "each"], rows
    )


def _report_stragglers(records: list[dict[str, Any]]) -> str:
    if not records:
        return ""
    rows = []
    for key in dict.fromkeys((r["faults"], r["waiting"]) for r in records):
        found = [r for r in records if (r["faults"], r["waiting"]) == key]
        rows.append(
            [
                f"{key[0]}; {key[1]}",
                f"{sum(r['reached'] for r in found)} of {len(found)}",
                *(
                    with_error([r[name] for r in found], 0)
                    for name in ("time", "updates", "messages", "ignored", "deaths")
                ),
            ]
        )
    header = [
        *("faults", "reached the best q", "time", "updates", "messages"),
        *("ignored updates", "deaths"),
    ]
    workers = records[0]["settings"]["workers"]
    title = f"### {workers} simulated workers; the unit of time is a mean update"
    return f"{title}\n\n{markdown_table(header, rows)}"


if __name__ == "__main__":
    main()
