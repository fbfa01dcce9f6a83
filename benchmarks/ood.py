"""Uncertainty of other images, and of rotated digits.

    tfbbb benchmark ood --data DIRECTORY

A network trained on MNIST meets the images of every other set of the directory, the
test digits rotated by 60 degrees, and a digit that is rotated step by step.
"""

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from comparisons import Comparison
from image_sets import SIDE, Digits, read_digits, read_other_images
from mnist import (
    BAYES,
    DROPOUT,
    POINT,
    SETTINGS,
    SNGP,
    add_image_options,
    image_settings,
    measure_training,
)
from program import argument_parser, run
from records import RecordFile
from timing import markdown_table

MASKS, ENSEMBLE = "Monte Carlo dropout", "deep ensemble"
# The settings of each method's training, and its number of networks.
METHODS = {
    BAYES: (SETTINGS[BAYES], 1),
    MASKS: (SETTINGS[DROPOUT], 1),
    ENSEMBLE: (SETTINGS[POINT], 5),
    SNGP: (SETTINGS[SNGP], 1),
    POINT: (SETTINGS[POINT], 1),
}
_SCORES = ("entropy", "mutual_information")
_ANGLES = tuple(range(0, 181, 10))
# The angle by which all test digits are rotated.
_ANGLE = 60
# Shares of the rows at which the risk is recorded.
_COVERAGES = tuple(np.linspace(0.02, 1.0, 50).round(2).tolist())
_BINS = 30


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures images, and prints the table of figures."""
    parser = argument_parser(__doc__)
    add_image_options(parser, METHODS, epochs=20)
    options = parser.parse_args(arguments)
    run(__file__, options, lambda found: measure(found, options), report)


def measure(measured: RecordFile, options: Any) -> None:
    """Adds the records that the file lacks."""
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
    found["test_rotated"] = score_classes(predict(rotated(images, _ANGLE)), labels)
    one = _first_one(digits)
    turned = predict(np.concatenate([rotated(one, angle) for angle in _ANGLES]))
    found["rotated"] = {
        "probabilities": turned.probabilities,
        **{score: getattr(turned, score) for score in scores},
    }
    return found


def _first_one(digits: Digits) -> np.ndarray:
    """Returns the first test image of a one, [1, 784]."""
    images, labels = digits.test
    return images[labels == 1][:1]


def rotated(images: np.ndarray, angle: float) -> np.ndarray:
    """Returns images [n, 784] rotated by an angle in degrees."""
    from scipy.ndimage import rotate

    squares = images.reshape(-1, SIDE, SIDE)
    turned = rotate(squares, angle, axes=(2, 1), reshape=False, order=1)
    return turned.reshape(images.shape)


def _histogram(entropies: np.ndarray) -> np.ndarray:
    """Returns the shares of rows in bins from 0 to log(10) nats."""
    counts = np.histogram(entropies, _BINS, range=(0.0, np.log(10.0) + 1e-6))[0]
    return counts / len(entropies)


def report(measured: RecordFile) -> str:
    """Returns the table of images."""
    records = measured.select(part="images")
    if not records:
        return ""
    names = sorted({name for record in records for name in record["sets"]})
    titles = [(name, score) for name in names for score in _SCORES]
    rows = []
    for record in records:
        sets = record["sets"]
        cells = [sets.get(name, {}).get(score) for name, score in titles]
        test, turned = record["test"], record["test_rotated"]
        rows.append(
            [
                f"{record['method']}, {record['settings']['epochs']} epochs",
                *("" if cell is None else f"{cell:.3f}" for cell in cells),
                f"{test['error']:.2f}",
                f"{test['nll']:.4f}",
                f"{test['ece']:.2f}",
                f"{100 * record['risk_coverage_area']:.3f}",
                f"{turned['error']:.1f}",
                f"{turned['ece']:.1f}",
            ]
        )
    columns = [
        "MNIST against",
        *(f"{name}, AUROC by {score.replace('_', ' ')}" for name, score in titles),
        "error, %",
        "NLL, nats",
        "ECE, %",
        "area under risk-coverage, %",
        f"digits rotated by {_ANGLE}°: error, %",
        "ECE, %",
    ]
    return markdown_table(columns, rows)


def compare(measured: RecordFile) -> list[Comparison]:
    """Compares Bayes by backprop and SNGP with the other methods."""
    images = measured.select(part="images")
    others = [x for x in images if x["method"] not in (BAYES, SNGP)]
    found = []
    for ours in (x for x in images if x["method"] in (BAYES, SNGP)):
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
    return found


if __name__ == "__main__":
    main()
