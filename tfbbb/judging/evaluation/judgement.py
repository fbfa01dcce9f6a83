"""What the figures of a model mean beside those of its baselines."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tfbbb.base.row_weights import effective_rows, mean_and_error
from tfbbb.base.texts import listed, shown_number, shown_share
from tfbbb.base.types import Config
from tfbbb.judging.evaluation.predicted_rows import (
    KAPLAN_MEIER,
    LEVEL,
    PredictedRows,
)
from tfbbb.judging.verdict import FEWEST_ROWS_TO_JUDGE, STANDARD_ERRORS, verdict

MODEL, PARENT = "model", "parent version"
_CONSTANTS = ("mean", "commonest class", KAPLAN_MEIER)
LEARNED_NOTHING = (
    "The model learned nothing of use: its error on rows left out is no less than that "
    "of a constant. Give it more time or rows, or columns that tell about the target."
)
# With more than this many times the error of a constant, a mean is no use, nor are
# classes. A mean that says the same in all rows is off by a little more than the
# constant, by chance.
_WORST_ERROR, _WORST_ERROR_OF_MEANS = 1.05, 1.01
# From this share of the mean size of targets on, a mean that is off is of no use.
_WORST_SUM = 0.1
# Less is a rare class, of which accuracy says little.
_RARE = 0.05
# Fewer rows do not tell whether a model has learned.
_FEWEST_ROWS_TO_TELL = 20
# A difference of this share is said although it may be chance.
_LEAST_SAID = 0.01
# Rows that carry half of a squared error, each of them a tenth. Of normal errors, it
# takes twice as many.
_MOST_DECIDING, _FEWEST_PER_DECIDING, _LEAST_SHARE = 3, 20, 0.1
_ARTICLES = {
    "mean": "the mean",
    "commonest class": "the commonest class",
    KAPLAN_MEIER: "the Kaplan-Meier curve",
    "linear model": "a linear model",
    "logistic model": "a logistic model",
    PARENT: "the version it started from",
}


def judge(
    predictions: Mapping[str, PredictedRows],
    targets: np.ndarray,
    places: np.ndarray | None = None,
    weights: np.ndarray | None = None,
    classes: Sequence[str] = (),
    target_names: Sequence[str] = (),
) -> Config:
    """Compares a model with baselines on the same rows.

    The error of a row is the squared difference from the mean, or whether the most
    probable class is wrong, or of times that may be cut off the integrated Brier score.
    The model is better than a baseline if the mean difference of their errors is more
    than two standard errors of the paired differences. If up to three of many rows
    carry half of a squared error, a sentence names them. The sum of the predicted
    numbers is compared with that of the targets, and the classes of less than 5 % of
    the rows are judged by the area under the ROC curve, because the commonest class
    errs as little as can be seen. Fewer than ten rows are not judged. Several targets
    are judged together, by their errors in units of their spread and by the
    log-likelihood of all targets of a row, and each alone.

    Args:
        predictions: The rows as `"model"` and as the baselines predict them, by name,
            and as the `"parent version"` does if the model started from one.
        targets: Targets [n, k], times and events [n, 2], or class indices [n].
        places: The index of each row in its table, [n]; None if these are all rows.
        weights: The weight of each row, [n]; None for 1. A row of weight 2 counts as
            two rows.
        classes: Names of the classes, for sentences.
        target_names: Names of several targets; by default `"target 1"` and so on.

    Returns:
        Plain JSON values: the number of `rows`; `figures` by name; `comparisons` with
        each baseline, in `error` and in `log_likelihood`; `learned`, whether the model
        has less error than a constant, or better probabilities, which differ by row,
        and about as little error (True for fewer than 20 rows); for numbers `sums`, of
        predictions and targets, with their difference in standard errors as `z`, and
        whether the predictions are `off`; `verdict`, such as
        `"worse than linear model"`, or None; `sentences` in plain
        English; `warnings`, the sentences that tell of a fault; and of several targets
        `targets`, the same of each alone, with its `name`.

    Example:

    >>> from tfbbb.judging.evaluation.baseline import Baseline
    >>> targets = np.arange(12.0)[:, np.newaxis]
    >>> constant = Baseline.constant(targets)
    >>> rows = constant.predict(None, targets)
    >>> judged = judge({"model": rows, "mean": rows}, targets)
    >>> judged["sentences"][0]
    'The model is no better than the mean.'
    """
    predictions = {
        name: replace(rows, weights=weights) for name, rows in predictions.items()
    }
    model = predictions[MODEL]
    comparisons = {
        name: compare(model, other, targets)
        for name, other in predictions.items()
        if name != MODEL
    }
    figures = {name: figures_of(rows, targets) for name, rows in predictions.items()}
    is_sum = not (model.of_classes or model.of_targets) and model.scores is None
    sums = compare_sums(model, targets) if is_sum else None
    if len(targets) < FEWEST_ROWS_TO_JUDGE:
        said = [(_few_rows_sentence(comparisons, model, len(targets)), True)]
    else:
        said = [
            describe_comparison(name, model, found, len(targets))
            for name, found in comparisons.items()
        ]
        said += _deciding_rows_sentence(predictions, targets, places)
        said += _sums_sentence(sums)
        said += _rare_class_sentence(model, targets, classes)
        said.append(_calibration_sentence(model, targets, figures[MODEL]))
    found = {
        "rows": len(targets),
        "figures": figures,
        "comparisons": comparisons,
        "learned": _has_learned(model, comparisons, targets),
        **({} if sums is None else {"sums": sums}),
    }
    found |= {
        "verdict": verdict(found),
        "sentences": [sentence for sentence, _ in said],
        "warnings": [sentence for sentence, is_fault in said if is_fault],
    }
    if not model.of_targets:
        return found
    number = len(model.of_targets)
    names = target_names or [f"target {place}" for place in range(1, number + 1)]
    alone = [
        judge(
            {name: rows.of_targets[place] for name, rows in predictions.items()},
            targets[:, [place]],
            places,
            weights,
        )
        for place in range(number)
    ]
    named = [{"name": x, **each} for x, each in zip(names, alone, strict=True)]
    return {**found, "targets": named}


def is_worse(comparison: Config) -> bool:
    """Returns whether a model has clearly more error than another, or less likelihood.

    A model with clearly less error and less likelihood is not worse as a whole.
    """
    error, likelihood = (comparison[part]["z"] for part in ("error", "log_likelihood"))
    if error < -STANDARD_ERRORS:
        return True
    return likelihood < -STANDARD_ERRORS and error <= STANDARD_ERRORS


def beats_constant(comparisons: Config, least: float = -np.inf) -> bool:
    """Returns whether a model has less error than a constant; True without one."""
    errors = [comparisons[name]["error"] for name in _CONSTANTS if name in comparisons]
    return all((x["reduction"] or 0.0) > 0.0 and x["z"] >= least for x in errors)


def _has_learned(
    model: PredictedRows, comparisons: Config, targets: np.ndarray
) -> bool:
    """Returns whether a model is better than a constant; True if nobody can tell."""
    too_few = model.num_rows < _FEWEST_ROWS_TO_TELL
    if too_few or beats_constant(comparisons):
        return True
    (found,) = (comparisons[name] for name in _CONSTANTS if name in comparisons)
    ratio = 1.0 - (found["error"]["reduction"] or 0.0)
    z = found["log_likelihood"]["z"]
    if model.of_classes:
        ranks = z >= -STANDARD_ERRORS and _ranks_classes(model, targets)
        apart = z > STANDARD_ERRORS and model.tells_rows_apart
        return (ranks or apart) and ratio <= _WORST_ERROR
    likelier = z > STANDARD_ERRORS and model.tells_rows_apart
    return likelier and ratio <= _WORST_ERROR_OF_MEANS


def _ranks_classes(model: PredictedRows, targets: np.ndarray) -> bool:
    """Returns whether the areas under ROC curves are clearly more than a half."""
    areas = _areas(model, targets)
    if not areas:
        return False
    # Classes share the rows of the others, and the rarest has the largest error.
    error = max(error for _, _, error in areas)
    mean = float(np.mean([area for _, area, _ in areas]))
    return mean - STANDARD_ERRORS * error > 0.5


def compare_sums(model: PredictedRows, targets: np.ndarray) -> Config:
    """Compares the sum of predicted means with that of the values of one target."""
    means, values = (
        np.asarray(x, np.float64).reshape(len(targets)) for x in (model.mean, targets)
    )
    total = len(values) if model.weights is None else model.weights.sum()
    size = model.average(np.abs(values))
    difference, z = model.average(means - values), _z(means - values, model.weights)
    return {
        "predicted": total * model.average(means),
        "targets": total * model.average(values),
        "z": z,
        "off": abs(z) > STANDARD_ERRORS and abs(difference) > _WORST_SUM * size,
    }


def figures_of(rows: PredictedRows, targets: np.ndarray) -> dict[str, float | None]:
    """Returns the figures of one model; None where a figure is not defined."""
    log_likelihood = rows.average(rows.log_prob)
    errors = rows.errors(targets)
    error = rows.average(errors)
    if rows.scores is not None:
        from tfbbb.prediction.survival_scores import concordance_of_times

        return {
            "concordance": concordance_of_times(rows.mean[:, 0], targets),
            "integrated_brier_score": error,
            "log_likelihood": log_likelihood,
            "coverage_90": rows.coverage,
        }
    if not rows.of_classes:
        centre = np.average(targets, axis=0, weights=rows.weights)
        centred = replace(rows, mean=np.broadcast_to(centre, targets.shape))
        spread = rows.average(centred.errors(targets))
        return {
            "r_squared": 1.0 - error / spread if spread > 0 else None,
            "rmse": float(np.sqrt(error)),
            "log_likelihood": log_likelihood,
            "coverage_90": rows.coverage,
        }
    from tfbbb.prediction.target_scores import calibration_error_of_targets

    weights = np.ones(len(targets)) if rows.weights is None else rows.weights
    recalls = [
        1.0 - np.average(errors[of_label], weights=weights[of_label])
        for of_label in (targets == label for label in np.unique(targets))
    ]
    scored: Any = rows
    areas = _areas(rows, targets)
    return {
        "accuracy": 1.0 - error,
        "balanced_accuracy": float(np.mean(recalls)),
        "log_likelihood": log_likelihood,
        "auc": float(np.mean([x for _, x, _ in areas])) if areas else None,
        "expected_calibration_error": calibration_error_of_targets(
            scored, targets, weights
        ),
    }


def _areas(model: PredictedRows, targets: np.ndarray) -> list[tuple[int, float, float]]:
    """Returns each class, the area under its ROC curve and its standard error.

    The area is the probability that a row of the class has a higher probability of it
    than another row, ties counting half; its error is that of Hanley and McNeil (1982).
    """
    known = np.unique(targets)
    if len(known) < 2:
        return []
    weights = np.ones(len(targets)) if model.weights is None else model.weights
    found = []
    for label in known:
        own, others = weights * (targets == label), weights * (targets != label)
        above = np.sum(own * _below(model.probabilities[:, label], others))
        area = float(above / (own.sum() * others.sum()))
        # Of an area of 1, that of an area that one more row would give.
        num_own, num_others = map(effective_rows, (own, others))
        at = min(area, 1.0 - 0.5 / (num_own * num_others))
        twice = at / (2.0 - at) - at**2, 2.0 * at**2 / (1.0 + at) - at**2
        variance = at * (1.0 - at)
        variance += (num_own - 1) * twice[0] + (num_others - 1) * twice[1]
        found.append((int(label), area, np.sqrt(variance / (num_own * num_others))))
    return found


def _below(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Returns the weight of the rows below each value, that of equal ones half."""
    order = np.argsort(values)
    up_to = np.concatenate([[0.0], np.cumsum(weights[order])])
    first, end = (
        np.searchsorted(values[order], values, side) for side in ("left", "right")
    )
    return (up_to[first] + up_to[end]) / 2


def compare(model: PredictedRows, other: PredictedRows, targets: np.ndarray) -> Config:
    """Compares a model with another on the same rows: see `judge`."""
    own, others = model.errors(targets), other.errors(targets)
    scale = np.sqrt if not model.of_classes else (lambda mean: mean)
    worst = float(scale(model.average(others)))
    least = float(scale(model.average(own)))
    gains = model.log_prob - other.log_prob
    return {
        "error": {
            "reduction": 1.0 - least / worst if worst > 0 else None,
            "z": _z(others - own, model.weights),
        },
        "log_likelihood": {"gain": model.average(gains), "z": _z(gains, model.weights)},
    }


def _z(differences: np.ndarray, weights: np.ndarray | None) -> float:
    """Returns a mean difference in units of its standard error."""
    mean, error = mean_and_error(differences, weights)
    if mean == 0.0 or error == np.inf:
        return 0.0
    # Equal differences in all rows: as certain as a number can say.
    return float(np.clip(mean / error if error > 0 else np.inf * mean, -1e6, 1e6))


def describe_comparison(
    name: str, model: PredictedRows, comparison: Config, num_rows: int
) -> tuple[str, bool]:
    """Returns a sentence, and whether it tells of a fault."""
    other = _ARTICLES.get(name, name)
    if name == PARENT:
        # Only the new rows are there: the old ones may tell another story.
        other += " on 1 new row" if num_rows == 1 else f" on {num_rows} new rows"
    error, likelihood = comparison["error"], comparison["log_likelihood"]
    reduction = error["reduction"]
    gain = likelihood["gain"]
    likelier = likelihood["z"] > STANDARD_ERRORS
    unlikelier = likelihood["z"] < -STANDARD_ERRORS
    better = f"but its probabilities are better by {_amount(gain)} nats per row"
    worse = f"its probabilities are worse by {_amount(-gain)} nats per row"
    much_worse = reduction is not None and 1.0 - reduction > _WORST_ERROR
    compared = f"The model {_says_error(reduction, other, model.of_classes)}"
    if error["z"] > STANDARD_ERRORS:
        return f"{compared}, but {worse}." if unlikelier else f"{compared}.", unlikelier
    if error["z"] < -STANDARD_ERRORS:
        return f"{compared}, {better}." if likelier else f"{compared}.", True
    if much_worse:
        # Such as the error of one row.
        compared += ", which may be chance"
        is_fault = name in _CONSTANTS or unlikelier or reduction <= -1.0
        if likelier:
            return f"{compared}, {better}.", is_fault
        return f"{compared}, and {worse}." if unlikelier else f"{compared}.", is_fault
    by = ""
    if reduction is not None and reduction < -_LEAST_SAID:
        by = f": it {_says_error(reduction, other, model.of_classes)}"
    if likelier:
        measure = "more accurate" if model.of_classes else "closer to the targets"
        return f"The model is no {measure} than {other}{by}, {better}.", False
    said = f"The model is no better than {other}{by}"
    if unlikelier:
        return f"{said}, and {worse}.", True
    return f"{said}.", name in _CONSTANTS


def _few_rows_sentence(comparisons: Config, model: PredictedRows, num_rows: int) -> str:
    rows = "1 row" if num_rows == 1 else f"{num_rows} rows"
    measure = "probabilities" if model.of_classes else "intervals"
    others = [_ARTICLES.get(name, name) for name in comparisons]
    better = f"the model is better than {' or '.join(others)}, or whether " * any(
        others
    )
    return f"Nobody can tell from {rows} whether {better}its {measure} are right."


def _says_error(reduction: float | None, other: str, of_classes: bool) -> str:
    """Returns by how much an error is less or more than another, as a predicate."""
    if reduction is None:
        return f"errs, and {other} never does"
    if reduction <= -1.0:
        times = f"{_amount(1.0 - reduction)} times"
        if of_classes:
            return f"errs {times} as often as {other}"
        return f"has {times} the error of {other}"
    word = "less" if reduction > 0.0 else "more"
    share = shown_share(abs(reduction))
    if of_classes:
        return f"errs {share} {word} often than {other}"
    return f"has {share} {word} error than {other}"


def _amount(value: float) -> str:
    """Returns two significant digits, and all whole ones."""
    return shown_number(value, 2)


def _deciding_rows_sentence(
    predictions: Mapping[str, PredictedRows],
    targets: np.ndarray,
    places: np.ndarray | None,
) -> list[tuple[str, bool]]:
    """Returns a sentence if a few rows carry most of a squared error."""
    model = predictions[MODEL]
    if model.of_classes or model.of_targets or model.scores is not None:
        return []
    most = min(_MOST_DECIDING, len(targets) // _FEWEST_PER_DECIDING)
    for name, rows in predictions.items():
        errors = rows.errors(targets) * (1.0 if rows.weights is None else rows.weights)
        deciding = np.argsort(-errors, kind="stable")[:most]
        shares = errors[deciding] / (errors.sum() or 1.0)
        deciding, share = deciding[shares > _LEAST_SHARE], shares[shares > _LEAST_SHARE]
        if share.sum() <= 0.5:
            continue
        named = np.sort(deciding if places is None else places[deciding]) + 1
        carry = f"Rows {listed(list(map(str, named)))} carry"
        if len(named) == 1:
            carry = f"Row {named[0]} carries"
        return [
            (
                f"{carry} {min(100 * share.sum(), 99.9):.3g} % of the squared error of "
                f"{_ARTICLES.get(name, f'the {name}')}.",
                True,
            )
        ]
    return []


def _sums_sentence(sums: Config | None) -> list[tuple[str, bool]]:
    """Returns a sentence if predictions and targets do not add up to the same."""
    if sums is None or abs(sums["z"]) <= STANDARD_ERRORS:
        return []
    predicted, targets = sums["predicted"], sums["targets"]
    share = abs(predicted / targets - 1.0) if targets else np.inf
    by = ""
    if np.isfinite(share) and predicted * targets > 0.0:
        more = "more" if abs(predicted) > abs(targets) else "less"
        by = f", {shown_share(share)} {more},"
    said = (
        f"Its predictions add up to {shown_number(predicted, 3)}{by} where the "
        f"targets add up to {shown_number(targets, 3)}."
    )
    return [(said, share > _LEAST_SAID)]


def _rare_class_sentence(
    model: PredictedRows, targets: np.ndarray, classes: Sequence[str]
) -> list[tuple[str, bool]]:
    """Returns a sentence about the rarest class, if it is rare."""
    if not model.of_classes:
        return []
    areas = _areas(model, targets)
    if not areas:
        return []
    counts = {label: int(np.sum(targets == label)) for label, _, _ in areas}
    label, area, error = min(areas, key=lambda found: counts[found[0]])
    if counts[label] >= _RARE * len(targets):
        return []
    name = repr(classes[label]) if label < len(classes) else str(label)
    rows = f"1 of {len(targets)} rows is" * (counts[label] == 1) or (
        f"{counts[label]} of {len(targets)} rows are"
    )
    tells = area - STANDARD_ERRORS * error > 0.5
    return [
        (
            f"Only {rows} of class {name}, so accuracy says little. A row of it is "
            f"ranked above another one with probability {area:.3f} (standard error "
            f"{shown_number(error, 1)}), where chance has 0.5.",
            not tells,
        )
    ]


def _calibration_sentence(
    rows: PredictedRows, targets: np.ndarray, figures: Mapping[str, float | None]
) -> tuple[str, bool]:
    if rows.of_classes:
        confidence = rows.probabilities.max(axis=1)
        right = 1.0 - rows.average(rows.errors(targets))
        gap = rows.average(confidence) - right
        spread = rows.average(confidence * (1.0 - confidence))
        error = np.sqrt(spread / rows.num_rows)
        off = shown_share(figures["expected_calibration_error"] or 0.0)
        said = f"The probability of the predicted class is off by {off} on average"
        if abs(gap) <= STANDARD_ERRORS * error:
            return f"{said}.", False
        return f"{said}: it is too {'high' if gap > 0 else 'low'}.", True
    coverage = rows.coverage or 0.0
    said = (
        f"Its intervals cover {100 * coverage:.0f} % where {100 * LEVEL:.0f} % were "
        "asked"
    )
    error = np.sqrt(LEVEL * (1.0 - LEVEL) / rows.num_rows)
    if abs(coverage - LEVEL) <= STANDARD_ERRORS * error:
        return f"{said}.", False
    if coverage > LEVEL and rows.beyond is not None:
        # Of a number with a probability, more than this may be at an end.
        tail = 0.5 * (1.0 - LEVEL)
        error = np.sqrt(tail * (1.0 - tail) / rows.num_rows)
        if min(map(rows.average, rows.beyond.T)) >= tail - STANDARD_ERRORS * error:
            return (
                f"{said}: single numbers are too probable for narrower ones.",
                False,
            )
    return f"{said}: they are too {'narrow' if coverage < LEVEL else 'wide'}.", True
