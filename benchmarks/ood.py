"""Uncertainty of other images, of rotated digits, and of rows in a gap of a table.

    tfbbb benchmark ood --data DIRECTORY

A network trained on MNIST meets the images of every other set of the directory, and a
digit that is rotated step by step. A default job trained on the rows outside the middle
third of a feature meets the rows in that gap.
"""

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from comparisons import Comparison
from gap_splits import GapSplit, gap_splits
from images import PIXELS, SIDE, Digits, read_digits, read_other_images
from mnist import (
    BAYES,
    DROPOUT,
    POINT,
    SETTINGS,
    add_image_options,
    image_settings,
    measure_training,
)
from program import argument_parser, mean_and_error, run, with_error
from records import RecordFile
from timing import markdown_table

MASKS, ENSEMBLE = "Monte Carlo dropout", "deep ensemble"
# The settings of each method's training, and its number of networks.
METHODS = {
    BAYES: (SETTINGS[BAYES], 1),
    MASKS: (SETTINGS[DROPOUT], 1),
    ENSEMBLE: (SETTINGS[POINT], 5),
    POINT: (SETTINGS[POINT], 1),
}
_SCORES = ("entropy", "mutual_information")
_ANGLES = tuple(range(0, 181, 10))
# Shares of the rows at which the risk is recorded.
_COVERAGES = tuple(np.linspace(0.02, 1.0, 50).round(2).tolist())
_BINS = 30
# The coverage of 90 % intervals that is aimed at in a gap.
_LEAST_IN_GAP = 0.8


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures images and tables, and prints the tables of figures."""
    parser = argument_parser(__doc__)
    parser.add_argument(
        "--parts",
        nargs="+",
        choices=["images", "tables"],
        default=["images", "tables"],
        help="what to measure (default: images tables)",
    )
    add_image_options(parser, METHODS, epochs=20)
    parser.add_argument(
        "--sets", nargs="+", metavar="SET", help="tables (default: all)"
    )
    parser.add_argument(
        "--splits", type=int, default=3, help="gaps of each table (default: 3)"
    )
    options = parser.parse_args(arguments)
    run(__file__, options, lambda found: measure(found, options), report)


def measure(measured: RecordFile, options: Any) -> None:
    """Adds the records that the file lacks."""
    if "images" in options.parts:
        _measure_images(measured, options)
    if "tables" in options.parts:
        _measure_tables(measured, options)


def _measure_images(measured: RecordFile, options: Any) -> None:
    rows = 1000 if options.smoke else None
    digits = read_digits(options.data, rows)
    others = read_other_images(options.data, rows)
    for method in options.methods:
        settings = image_settings(METHODS[method][0], options, digits) | {
            "width": 64 if options.smoke else 400,
            "sets": sorted(others),
        }
        key = {"part": "images", "method": method}
        found = functools.partial(
            image_figures, method, settings, digits, others, options.seed
        )
        measure_training(measured, key, settings, options.seed, found)


def image_figures(
    method: str,
    settings: Mapping[str, Any],
    digits: Digits,
    others: Mapping[str, np.ndarray],
    seed: int,
    directory: Path,
) -> dict[str, Any]:
    """Returns what the uncertainty of a trained network knows about images."""
    from image_networks import make_network, score_classes, train

    from tfbbb.scores.metrics import out_of_distribution_auroc, risk_coverage_curve

    model, _ = train(
        lambda: make_network(settings["width"], settings, members=METHODS[method][1]),
        digits.train,
        settings,
        seed=seed,
        directory=directory,
    )

    def predict(images: np.ndarray) -> Any:
        return model.predictive(
            images, num_samples=settings["draws"], include_dropout=method == MASKS
        )

    images, labels = digits.test
    inside = predict(images)
    curve = risk_coverage_curve(inside, labels)
    scores = _SCORES[:1] if method == POINT else _SCORES
    found: dict[str, Any] = {
        "test": score_classes(inside, labels),
        "risk_coverage_area": curve.area,
        "risk": np.interp(_COVERAGES, curve.coverage, curve.risk),
        "entropies": _histogram(inside.entropy),
        "sets": {},
    }
    for name, pictures in others.items():
        outside = predict(pictures)
        found["sets"][name] = {
            "entropies": _histogram(outside.entropy),
            **{
                score: out_of_distribution_auroc(inside, outside, by=score)
                for score in scores
            },
        }
    turned = predict(rotated(_first_one(digits)))
    found["rotated"] = {
        "probabilities": turned.probabilities,
        **{score: getattr(turned, score) for score in scores},
    }
    return found


def _first_one(digits: Digits) -> np.ndarray:
    """Returns the first test image of a one, [784]."""
    images, labels = digits.test
    return images[np.flatnonzero(labels == 1)[0]]


def rotated(image: np.ndarray) -> np.ndarray:
    """Returns an image [784] rotated by each of the angles, [angles, 784]."""
    from scipy.ndimage import rotate

    square = image.reshape(SIDE, SIDE)
    turned = [rotate(square, angle, reshape=False, order=1) for angle in _ANGLES]
    return np.stack(turned).reshape(len(_ANGLES), PIXELS)


def _histogram(entropies: np.ndarray) -> np.ndarray:
    """Returns the shares of rows in bins from 0 to log(10) nats."""
    counts = np.histogram(entropies, _BINS, range=(0.0, np.log(10.0) + 1e-6))[0]
    return counts / len(entropies)


def _measure_tables(measured: RecordFile, options: Any) -> None:
    spec: dict[str, Any] = {"target": "y"}
    if options.smoke:
        spec["training"] = {"epochs": 20}
    for name, splits in gap_splits(options.data).items():
        if options.sets and name not in options.sets:
            continue
        for number, split in enumerate(
            splits[: 1 if options.smoke else options.splits]
        ):
            measured.measure(
                {"part": "tables", "set": name, "split": number},
                lambda split=split: gap_figures(split, spec),
                settings={"spec": spec, "data": split.digest},
                seed=None,
            )


def gap_figures(split: GapSplit, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Trains a job outside the gap; returns figures of rows outside and inside."""
    import pyarrow as pa

    from tfbbb.scores.metrics import out_of_distribution_auroc
    from tfbbb.training import train_table
    from tfbbb.training.held_out import held_out_figures

    columns = {f"x{column}": split.data[:, column] for column in split.features}
    table = pa.table({**columns, "y": split.data[:, split.target]})
    trained = train_table(table.take(split.train), spec)
    found: dict[str, Any] = {}
    predictions = {}
    for part, rows in (("outside", split.outside), ("gap", split.gap)):
        taken = table.take(rows)
        inputs, targets = trained.schema.inputs(taken), trained.schema.targets(taken)
        predictions[part] = trained.model.predictive(inputs)
        figures = held_out_figures(trained.model, inputs, targets)
        found[part] = {
            "rows": len(rows),
            "epistemic_stddev": float(np.sqrt(predictions[part].epistemic.mean())),
            **{name: figures[name] for name in ("log_likelihood", "rmse")},
            "coverage_90": figures["coverage_90"],
        }
    found["auroc"] = out_of_distribution_auroc(
        predictions["outside"], predictions["gap"], by="epistemic"
    )
    return found


def report(measured: RecordFile) -> str:
    """Returns the tables of images and of gaps."""
    parts = [_report_images(measured), _report_tables(measured)]
    return "\n\n".join(part for part in parts if part)


def _report_images(measured: RecordFile) -> str:
    records = measured.select(part="images")
    if not records:
        return ""
    names = sorted({name for record in records for name in record["sets"]})
    titles = [(name, score) for name in names for score in _SCORES]
    rows = []
    for record in records:
        sets = record["sets"]
        cells = [sets.get(name, {}).get(score) for name, score in titles]
        test = record["test"]
        rows.append(
            [
                f"{record['method']}, {record['settings']['epochs']} epochs",
                *("" if cell is None else f"{cell:.3f}" for cell in cells),
                f"{test['error']:.2f}",
                f"{test['nll']:.4f}",
                f"{test['ece']:.2f}",
                f"{100 * record['risk_coverage_area']:.3f}",
            ]
        )
    columns = [
        "MNIST against",
        *(f"{name}, AUROC by {score.replace('_', ' ')}" for name, score in titles),
        "error, %",
        "NLL, nats",
        "ECE, %",
        "area under risk-coverage, %",
    ]
    return markdown_table(columns, rows)


def _report_tables(measured: RecordFile) -> str:
    records = measured.select(part="tables")
    if not records:
        return ""
    rows = []
    for name in dict.fromkeys(record["set"] for record in records):
        found = [record for record in records if record["set"] == name]
        rows.append([name, f"{len(found)}", *_gap_cells(found)])
    if len(rows) > 1:
        rows.append(["all gaps", f"{len(records)}", *_gap_cells(records)])
    columns = [
        "default job",
        "gaps",
        "AUROC of epistemic variance",
        "epistemic stddev, gap / outside",
        "90 % intervals cover in the gap, %",
        "outside, %",
        "log-likelihood in the gap",
        "outside",
    ]
    return markdown_table(columns, rows)


def _gap_cells(records: list[dict[str, Any]]) -> list[str]:
    ratios = [
        record["gap"]["epistemic_stddev"] / record["outside"]["epistemic_stddev"]
        for record in records
    ]
    return [
        with_error([record["auroc"] for record in records], 3),
        with_error(ratios),
        *(
            with_error([record[part]["coverage_90"] for record in records], 1, 100.0)
            for part in ("gap", "outside")
        ),
        *(
            with_error([record[part]["log_likelihood"] for record in records])
            for part in ("gap", "outside")
        ),
    ]


def compare(measured: RecordFile) -> list[Comparison]:
    """Compares Bayes by backprop with the other methods, and gaps with aims."""
    others = [x for x in measured.select(part="images") if x["method"] != BAYES]
    found = []
    for ours in measured.select(part="images", method=BAYES):
        for name, figures in ours["sets"].items():
            for score in _SCORES:
                theirs = {
                    record["method"]: record["sets"][name][score]
                    for record in others
                    if score in record["sets"].get(name, {})
                }
                figure = f"AUROC by {score.replace('_', ' ')}"
                found += [
                    Comparison(figure, name, figures[score], other, rival)
                    for rival, other in theirs.items()
                ]
    tables = measured.select(part="tables")
    for name in dict.fromkeys(record["set"] for record in tables):
        records = [record for record in tables if record["set"] == name]
        for what, aim, values in (
            ("AUROC of epistemic variance", 0.5, [x["auroc"] for x in records]),
            (
                "coverage in the gap",
                _LEAST_IN_GAP,
                [x["gap"]["coverage_90"] for x in records],
            ),
        ):
            mean, error = mean_and_error(values)
            found.append(Comparison(what, name, mean, aim, "the aim", error=error))
    return found


if __name__ == "__main__":
    main()
