"""Active learning: scores of disagreement beside random choice of rows to label."""

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from program import (
    Comparison,
    DataError,
    argument_parser,
    markdown_table,
    mean_and_error,
    names_among,
    run,
    with_error,
)
from records import RecordFile

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tfbbb import BayesianModel, Predictive

# Tables by name: the path in the data directory, and the task.
SETS = {
    "energy": ("uci/energy.npz", "regression"),
    "concrete": ("uci/concrete.npz", "regression"),
    "mushroom": ("mushroom.npz", "classification"),
}
RANDOM = "random"
METHODS = (RANDOM, "bald", "bald, batch", "epistemic variance")
FIRST, PER_ROUND, ROUNDS = 20, 15, 8
POOL = 900
HIDDEN, MEMBERS, TEMPERATURE, BATCH_SIZE, STEPS = 50, 5, 0.1, 32, 400


def main(arguments: Sequence[str] | None = None) -> None:
    """Labels rows by each method, and compares the learning curves."""
    parser = argument_parser(__doc__)
    parser.add_argument("--repeats", type=int, default=5, help="curves of each method")
    parser.add_argument(
        "--sets",
        type=names_among(list(SETS)),
        default=list(SETS),
        help=f"some of {', '.join(SETS)}, separated by commas (default: all)",
    )
    options = parser.parse_args(arguments)
    run(__file__, options, functools.partial(measure, options=options), report, draw)


def measure(measured: RecordFile, options: Any) -> None:
    """Adds a record for each set, repeat and method."""
    rounds, steps, repeats = ROUNDS, STEPS, options.repeats
    sets, methods = options.sets, METHODS
    if options.smoke:
        rounds, steps, repeats = 1, 300, 1
        sets, methods = sets[:1], (RANDOM, "bald, batch")
    settings = {
        "rounds": rounds,
        "per_round": PER_ROUND,
        "pool": POOL,
        "steps": steps,
        "members": MEMBERS,
        "temperature": TEMPERATURE,
    }
    for repeat in range(repeats):
        for name in sets:
            for method in methods:
                curve = functools.partial(
                    learning_curve, options.data, name, method, repeat, rounds, steps
                )
                measured.measure(
                    {"set": name, "method": method, "repeat": repeat},
                    curve,
                    settings=settings,
                    seed=repeat,
                )


def table(data: Path, name: str, repeat: int) -> tuple[np.ndarray, ...]:
    """Returns inputs and targets of the pool, and of the test rows.

    Inputs are in standard units of the pool, of which labels need not be known.
    """
    path, task = SETS[name]
    if not (data / path).is_file():
        raise DataError(
            f"`active` needs `{path}` of the data directory. Received: --data {data}"
        )
    file = np.load(data / path, allow_pickle=False)
    random = np.random.default_rng(repeat)
    if task == "regression":
        columns = file["data"]
        x = columns[:, file["index_features"].ravel().astype(int)]
        y = columns[:, file["index_target"].ravel().astype(int)]
        split = repeat % len(file["train_idx"])
        train = random.permutation(file["train_idx"][split].astype(int))
        test = file["test_idx"][split].astype(int)
    else:
        x, y = file["onehot"], file["poisonous"].astype(int)
        order = random.permutation(len(x))
        train, test = order[2000:], order[:2000]
    train = train[:POOL]
    shift, scale = x[train].mean(axis=0), x[train].std(axis=0)
    x = ((x - shift) / np.where(scale > 0, scale, 1.0)).astype("float32")
    return x[train], y[train], x[test], y[test]


def network(num_inputs: int, task: str) -> "BayesianModel":
    """Returns the network that is trained on the labelled rows."""
    import keras

    import tfbbb

    is_classes = task == "classification"
    inputs = keras.Input((num_inputs,))
    hidden = tfbbb.layers.DenseVariational(HIDDEN, "relu")(inputs)
    outputs = tfbbb.layers.DenseVariational(1)(hidden)
    model = tfbbb.BayesianModel(
        inputs,
        outputs,
        likelihood="bernoulli" if is_classes else "normal",
        members=MEMBERS,
    )
    model.compile(
        tfbbb.optimizers.Adam(0.005),
        kl_schedule=tfbbb.kl_schedules.Tempered(TEMPERATURE),
        steps_per_execution=50,
    )
    return model


def scores(prediction: "Predictive", method: str, seed: int) -> np.ndarray:
    """Returns rows of the pool in the order of a method, [PER_ROUND]."""
    from tfbbb.lab import acquisition

    if method == "bald, batch":
        return acquisition.select_batch(prediction, PER_ROUND, seed=seed)
    found = {
        RANDOM: functools.partial(acquisition.random, seed=seed),
        "bald": acquisition.bald,
        "epistemic variance": acquisition.epistemic_variance,
    }[method](prediction)
    return acquisition.select(found, PER_ROUND, seed)


def learning_curve(
    data: Path, name: str, method: str, repeat: int, rounds: int, steps: int
) -> dict[str, Any]:
    """Labels rows, round by round; returns the test figures after each round.

    The network goes on from its weights of the round before. The first rows are random,
    the same for all methods.
    """
    import keras
    import tensorflow as tf

    keras.utils.set_random_seed(repeat)
    x, y, x_test, y_test = table(data, name, repeat)
    task = SETS[name][1]
    model = network(x.shape[1], task)
    labelled = np.arange(FIRST)
    figures: dict[str, list[float]] = {"error": [], "log_likelihood": []}
    for number in range(rounds + 1):
        if number:
            pool = np.setdiff1d(np.arange(len(x)), labelled)
            prediction = model.predictive(x[pool], seed=number)
            chosen = scores(prediction, method, seed=1000 * repeat + number)
            labelled = np.concatenate([labelled, pool[chosen]])
        rows = tf.data.Dataset.from_tensor_slices((x[labelled], y[labelled]))
        batches = rows.shuffle(len(labelled), seed=number).repeat().batch(BATCH_SIZE)
        model.fit(
            batches.take(steps if number else 3 * steps),
            dataset_size=len(labelled),
            shuffle=False,
            verbose=0,
        )
        tested = model.predictive(x_test, seed=number)
        figures["log_likelihood"].append(float(tested.log_prob(y_test).mean()))
        if task == "classification":
            wrong = tested.probabilities.argmax(axis=1) != y_test
            figures["error"].append(float(wrong.mean()))
        else:
            squares = (tested.mean - y_test) ** 2
            figures["error"].append(float(np.sqrt(squares.mean())))
    labels = FIRST + PER_ROUND * np.arange(rounds + 1)
    return {"labels": labels, **figures}


def report(measured: RecordFile) -> str:
    """Returns figures at the end, over the curve, and labels saved, by method."""
    lines = []
    for name in SETS:
        random = measured.select(set=name, method=RANDOM)
        for method in METHODS:
            records = measured.select(set=name, method=method)
            if not records or not random:
                continue
            target = np.mean([record["error"] for record in random], axis=0)[-1]
            mean = np.mean([record["error"] for record in records], axis=0)
            reached = np.flatnonzero(mean <= target)
            labels = records[0]["labels"]
            what = "wrong %" if SETS[name][1] == "classification" else "RMSE"
            factor = 100.0 if SETS[name][1] == "classification" else 1.0
            lines.append(
                [
                    f"{name}, {method}",
                    str(len(records)),
                    what,
                    with_error([r["error"][-1] for r in records], 2, factor),
                    with_error([np.mean(r["error"]) for r in records], 2, factor),
                    with_error([r["log_likelihood"][-1] for r in records]),
                    str(labels[reached[0]]) if len(reached) else f"> {labels[-1]}",
                ]
            )
    header = [
        "set, method",
        "curves",
        "error",
        "at the end",
        "mean over the curve",
        "log-likelihood at the end",
        "labels to random's last error",
    ]
    return markdown_table(header, lines)


def compare(measured: RecordFile) -> list[Comparison]:
    """Returns the mean error of each score over its curve, beside that of random."""
    found = []
    for name in SETS:
        errors = {
            method: mean_and_error(
                [np.mean(r["error"]) for r in measured.select(set=name, method=method)]
            )[0]
            for method in METHODS
            if measured.select(set=name, method=method)
        }
        if RANDOM in errors:
            found += [
                Comparison(
                    f"{name} error over the curve, {method}",
                    ours=error,
                    theirs=errors[RANDOM],
                    rival="random choice",
                    larger_is_better=False,
                )
                for method, error in errors.items()
                if method != RANDOM
            ]
    return found


def draw(measured: RecordFile) -> dict[str, "Figure"]:
    """Returns the learning curves: means over repeats and their standard errors."""
    from matplotlib.figure import Figure

    from tfbbb.scores.plots.style import CYCLE, DARK

    names = [name for name in SETS if measured.select(set=name)]
    figure = Figure(figsize=(4.2 * len(names), 3.6), layout="constrained")
    panels = figure.subplots(1, len(names), squeeze=False)[0]
    for name, axes in zip(names, panels, strict=True):
        for method, colour in zip(METHODS, (DARK, *CYCLE), strict=False):
            records = measured.select(set=name, method=method)
            if not records:
                continue
            errors = np.array([record["error"] for record in records])
            mean, labels = errors.mean(axis=0), records[0]["labels"]
            axes.plot(labels, mean, color=colour, label=method)
            if len(errors) > 1:
                spread = errors.std(axis=0, ddof=1) / len(errors) ** 0.5
                axes.fill_between(
                    labels, mean - spread, mean + spread, color=colour, alpha=0.15, lw=0
                )
        is_classes = SETS[name][1] == "classification"
        axes.set_ylabel("share of wrong classes" if is_classes else "RMSE")
        axes.set_xlabel("labelled rows")
        axes.set_title(name)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].legend(frameon=False)
    return {"": figure}


if __name__ == "__main__":
    main()
