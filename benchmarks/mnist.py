"""MNIST: test error, pruning and calibration of networks of two hidden layers.

    tfbbb benchmark mnist --data DIRECTORY

The protocol of Blundell et al. (2015): the last 10 000 of the 60 000 training rows are
for validation, batches of 128, pixels over 126, no augmentation. Bayes by backprop
trains with the local reparameterisation at a low temperature, and drops pixels of the
training images at random. All its choices come from the validation part. Weights are
removed after the training, or while it goes on.
"""

import argparse
import contextlib
import functools
import hashlib
import json
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from comparisons import Comparison
from image_sets import Digits, read_digits
from program import argument_parser, panels, published, run
from records import RecordFile
from timing import markdown_table

BAYES, DROPOUT, POINT = "Bayes by backprop", "dropout", "maximum likelihood"
SNGP = "SNGP"
PRUNED = "Bayes by backprop, pruned while it trains"
_COMMON = {
    "batch_size": 128,
    "learning_rate": 1e-3,
    "temperature": 1.0,
    "input_dropout": 0.0,
    "hidden_dropout": 0.0,
    "initial_scale": None,
}
SETTINGS: dict[str, dict[str, Any]] = {
    BAYES: _COMMON
    | {
        "temperature": 0.01,
        "prior_scale": "fan_in",
        "initial_scale": 0.1,
        "input_dropout": 0.2,
    },
    # The rates of Srivastava et al. 2014, appendix B.1.
    DROPOUT: _COMMON | {"input_dropout": 0.2, "hidden_dropout": 0.5},
    POINT: _COMMON,
    # The number of features of Liu et al. 2020.
    SNGP: _COMMON
    | {"norm": 4.0, "length_scale": 12.0, "features": 1024, "prior_scale": 3.0},
}
SETTINGS[PRUNED] = SETTINGS[BAYES] | {"removed_share": 0.95}
# The comparison trains the smallest network alone.
_WIDTHS = {
    BAYES: (400, 800, 1200),
    PRUNED: (400, 800, 1200),
    DROPOUT: (400,),
    POINT: (400,),
    SNGP: (400,),
}
_CURVE = (5, 10, 25, 50, 75, 100, 200, 300, 500)
_SHARES = (0.0, 0.5, 0.75, 0.9, 0.95, 0.98)


def main(arguments: Sequence[str] | None = None) -> None:
    """Trains each network, prints the tables and draws the curves."""
    parser = argument_parser(__doc__)
    add_image_options(parser, SETTINGS, epochs=60)
    parser.add_argument(
        "--widths",
        nargs="+",
        type=int,
        metavar="UNITS",
        help="units of a hidden layer (default: 400, 800 and 1200, and of the "
        "comparison 400)",
    )
    options = parser.parse_args(arguments)
    run(__file__, options, lambda found: measure(found, options), report, draw)


def measure(measured: RecordFile, options: Any) -> None:
    """Trains and scores the networks that the file lacks."""
    digits = read_digits(options.data, rows=1000 if options.smoke else None)
    for method in options.methods:
        widths = options.widths or ((64,) if options.smoke else _WIDTHS[method])
        for width in widths:
            settings = image_settings(SETTINGS[method], options, digits)
            key = {"method": method, "width": width, "epochs": settings["epochs"]}
            found = functools.partial(figures, key, settings, digits, options.seed)
            measure_training(measured, key, settings, options.seed, found)


def add_image_options(
    parser: argparse.ArgumentParser, methods: Iterable[str], epochs: int
) -> None:
    """Adds the options of benchmarks that train networks on images."""
    names = list(methods)
    parser.add_argument(
        "--methods",
        nargs="+",
        choices=names,
        default=names,
        metavar="METHOD",
        help=f"of {', '.join(map(repr, names))} (default: all)",
    )
    parser.add_argument(
        "--epochs",
        type=int,
        default=epochs,
        help=f"epochs of training on images (default: {epochs})",
    )
    parser.add_argument("--seed", type=int, default=0, help="seed (default: 0)")


def image_settings(
    method: Mapping[str, Any], options: Any, digits: Digits
) -> dict[str, Any]:
    """Returns the settings of a training by a method."""
    more = {"epochs": options.epochs, "rows": len(digits.train[0]), "draws": 100}
    if options.smoke:
        more |= {"epochs": 10, "batch_size": 32, "learning_rate": 3e-3}
    return {**method, **more}


def measure_training(
    measured: RecordFile,
    key: Mapping[str, Any],
    settings: Mapping[str, Any],
    seed: int,
    function: Callable[[Path], Mapping[str, Any]],
) -> None:
    """Measures a training, given the directory of its checkpoint beside the records.

    The checkpoint is deleted when the record is written.
    """
    what = json.dumps({**key, **settings}, sort_keys=True).encode()
    checkpoints = measured.path.with_suffix(".checkpoints")
    directory = checkpoints / hashlib.sha256(what).hexdigest()[:12]
    measure = functools.partial(function, directory)
    if measured.measure(key, measure, settings=settings, seed=seed):
        shutil.rmtree(directory, ignore_errors=True)
        with contextlib.suppress(OSError):  # other checkpoints, or none
            checkpoints.rmdir()


def figures(
    key: Mapping[str, Any],
    settings: Mapping[str, Any],
    digits: Digits,
    seed: int,
    directory: Path,
) -> dict[str, Any]:
    """Trains one network; returns its figures, errors in percent."""
    from image_networks import make_network, score_classes, train

    from tfbbb.bayes.likelihoods import Categorical
    from tfbbb.lab.compression import GradualPruning, pruning_curve

    def predict(model: Any, images: Any, draws: int, masks: bool = False) -> Any:
        return model.predictive(
            images, num_samples=draws, seed=seed, include_dropout=masks
        )

    def errors(model: Any) -> dict[str, float]:
        parts = {"validation": digits.validation, "test": digits.test}
        return {
            name: score_classes(predict(model, images, 20), labels)["error"]
            for name, (images, labels) in parts.items()
        }

    removed = settings.get("removed_share")
    model, training = train(
        lambda: make_network(key["width"], settings),
        digits.train,
        settings,
        seed=seed,
        directory=directory,
        points=[*_CURVE, settings["epochs"]],
        score=errors,
        callbacks=[] if removed is None else [GradualPruning(removed)],
    )
    images, labels = digits.test
    found = {
        "curve": training["scores"],
        "minutes_per_epoch": training["seconds_per_epoch"] / 60.0,
        "test": score_classes(predict(model, images, settings["draws"]), labels),
    }
    if settings["hidden_dropout"]:
        # Monte Carlo dropout beside the network of scaled weights.
        masked = predict(model, images, settings["draws"], masks=True)
        found["test_of_masks"] = score_classes(masked, labels)
    if key["method"] in (BAYES, PRUNED):
        curve = pruning_curve(
            model,
            images,
            labels,
            shares=_SHARES,
            metric="accuracy",
            likelihood=Categorical(),
            num_samples=20,
            seed=seed,
        )
        found["pruning"] = [
            {"share": float(share), "error": 100.0 * (1.0 - float(accuracy))}
            for share, accuracy in zip(curve.shares, curve.figures, strict=True)
        ]
    return found


def report(measured: RecordFile) -> str:
    """Returns the tables of errors, curves, pruning and calibration."""
    tables = [_errors(measured), _scores(measured), _curves(measured)]
    return "\n\n".join([*tables, _pruning(measured)])


def _errors(measured: RecordFile) -> str:
    papers = published("mnist")["errors"]
    widths = sorted({record["width"] for record in measured.records} | {400, 800, 1200})
    rows = []
    for record in _groups(measured):
        same = {
            other["width"]: other["test"]["error"]
            for other in measured.select(
                method=record["method"], epochs=record["epochs"]
            )
        }
        cells = [f"{same[width]:.2f}" if width in same else "" for width in widths]
        rows.append([_name(record), *cells])
    for name, paper in papers.items():
        cells = [f"{paper[str(w)]:.2f}" if str(w) in paper else "" for w in widths]
        rows.append([f"{name} ({paper['source']})", *cells])
    columns = ["test error, % (standard error 0.1)", *(f"2×{w}" for w in widths)]
    return markdown_table(columns, rows)


def _scores(measured: RecordFile) -> str:
    rows = []
    for record in measured.records:
        settings = record["settings"]
        for name, scores in (
            (record["method"], record["test"]),
            ("Monte Carlo dropout", record.get("test_of_masks")),
        ):
            if scores:
                cells = [f"{scores[figure]:.2f}" for figure in ("error", "ece")]
                rows.append(
                    [
                        f"{name}, 2×{record['width']}, {record['epochs']} epochs",
                        cells[0],
                        f"{scores['nll']:.4f}",
                        cells[1],
                        f"{record['minutes_per_epoch']:.2f}",
                        f"{settings['rows']}",
                    ]
                )
    columns = ["", "error, %", "NLL, nats", "ECE, %", "minutes per epoch", "rows"]
    return markdown_table(columns, rows)


def _curves(measured: RecordFile) -> str:
    paper = published("mnist")["curve"]
    curves = {
        f"{record['method']}, 2×{record['width']}, of {record['epochs']} epochs": {
            str(point["epoch"]): point["test"] for point in record["curve"]
        }
        for record in measured.records
    }
    curves[f"2×1200 ({paper['source']})"] = paper["errors"]
    epochs = sorted({int(epoch) for curve in curves.values() for epoch in curve})
    rows = [
        [name, *(f"{curve[str(e)]:.2f}" if str(e) in curve else "" for e in epochs)]
        for name, curve in curves.items()
    ]
    return markdown_table(["test error, % after epochs", *map(str, epochs)], rows)


def _pruning(measured: RecordFile) -> str:
    paper = published("mnist")["pruning"]
    rows = [
        [
            f"{record['method']}, 2×{record['width']}, {record['epochs']} epochs",
            *(f"{point['error']:.2f}" for point in record["pruning"]),
        ]
        for record in measured.records
        if "pruning" in record
    ]
    cells = [paper["errors"].get(f"{share:g}") for share in _SHARES]
    texts = ["" if cell is None else f"{cell:.2f}" for cell in cells]
    rows.append([f"2×1200 ({paper['source']})", *texts])
    shares = [f"{100 * share:g} %" for share in _SHARES]
    return markdown_table(["test error, % without", *shares], rows)


def compare(measured: RecordFile) -> list[Comparison]:
    """Compares our test errors with published ones: the best, by epoch and pruned."""
    paper = published("mnist")
    papers, rival_of_curves = paper["errors"], "Blundell et al. 2015, 2×1200"
    found = []
    for method, removed in ((BAYES, ""), (PRUNED, " removed while training")):
        records = measured.select(method=method)
        for width in sorted({record["width"] for record in records}):
            longest = max(
                (record for record in records if record["width"] == width),
                key=lambda record: record["epochs"],
            )
            size = f"2×{width}"
            theirs = {
                name: paper[str(width)]
                for name, paper in papers.items()
                if str(width) in paper
            }
            if theirs and method == BAYES:
                rival = min(theirs, key=lambda name: theirs[name])
                pair = longest["test"]["error"], theirs[rival]
                figure = "test error in percent"
                found.append(Comparison(figure, size, *pair, rival, False))
            curves = [
                (
                    f"without the share {{}} of the weights{removed}",
                    {f"{x['share']:g}": x["error"] for x in longest.get("pruning", ())},
                    paper["pruning"]["errors"],
                )
            ]
            if method == BAYES:
                by_epoch = {
                    str(point["epoch"]): point["test"]
                    for point in longest.get("curve", ())
                }
                curves.insert(
                    0, ("after {} epochs", by_epoch, paper["curve"]["errors"])
                )
            for what, ours_by, theirs_by in curves:
                for key in sorted(ours_by.keys() & theirs_by.keys(), key=float):
                    figure = f"test error in percent {what.format(key)}"
                    pair = ours_by[key], theirs_by[key]
                    found.append(
                        Comparison(figure, size, *pair, rival_of_curves, False)
                    )
    return found


def draw(measured: RecordFile) -> Any:
    """Draws the errors against epochs, and against the share of removed weights."""
    from tfbbb.scores.plots.style import CYCLE, DARK

    paper = published("mnist")
    figure, ((left, right),) = panels(1, 2, (11.0, 4.5))
    records = measured.records
    for record, color in zip(records, CYCLE * len(records), strict=False):
        label = f"{record['method']}, 2×{record['width']}"
        points = [(point["epoch"], point["test"]) for point in record["curve"]]
        left.plot(*zip(*points, strict=True), color=color, marker="o", label=label)
        if "pruning" in record:
            removed = [(100 * x["share"], x["error"]) for x in record["pruning"]]
            right.plot(
                *zip(*removed, strict=True), color=color, marker="o", label=label
            )
    dashed = {"color": DARK, "linestyle": "--", "marker": "."}
    curve = [(int(epoch), e) for epoch, e in paper["curve"]["errors"].items()]
    name = "2×1200, Blundell et al. 2015"
    left.plot(*zip(*curve, strict=True), **dashed, label=name)
    pruned = [(100 * float(x), e) for x, e in paper["pruning"]["errors"].items()]
    right.plot(*zip(*pruned, strict=True), **dashed, label=name)
    left.set_xscale("log")
    left.set_xlabel("epochs")
    right.set_xlabel("weights removed (%)")
    for axes in (left, right):
        axes.set_ylim(1.0, 3.0)
        axes.set_ylabel("test error (%)")
        axes.legend(frameon=False)
    return figure


def _groups(measured: RecordFile) -> list[dict[str, Any]]:
    """Returns the first record of each method and number of epochs."""
    first = {}
    for record in measured.records:
        first.setdefault((record["method"], record["epochs"]), record)
    return list(first.values())


def _name(record: Mapping[str, Any]) -> str:
    return f"{record['method']}, {record['epochs']} epochs"


if __name__ == "__main__":
    main()
