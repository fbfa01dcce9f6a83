"""Predictions as a table: the columns of `tfbbb predict`, of files and of CSV."""

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tfbbb.base.types import ArrayLike

# The outputs of the table, in order, and the names of their columns; a level, a class,
# a draw and a target follow after `_`. Both ends of an interval are neighbours.
_COLUMNS = {
    "class": "class",
    "probabilities": "probability",
    "entropy": "entropy",
    "mutual_information": "mutual_information",
    "mean": "mean",
    "std": "std",
    "lower": "lower",
    "joint_lower": "joint_lower",
    "epistemic": "epistemic",
    "aleatoric": "aleatoric",
    "quantiles": "quantile",
    "survival": "survival",
    "prediction_sets": "prediction_set",
    "samples": "sample",
    "log_prob": "log_prob",
    "familiarity": "familiarity",
}
# The outputs with an axis of levels, and the question that has the levels.
_LEVELS = {
    "lower": "intervals",
    "upper": "intervals",
    "joint_lower": "joint_intervals",
    "joint_upper": "joint_intervals",
    "quantiles": "quantiles",
    "survival": "survival",
    "prediction_sets": "prediction_sets",
}


def answer_table(
    outputs: Mapping[str, ArrayLike],
    levels: Mapping[str, Sequence[float]],
    classes: Sequence[str] | None = None,
    warnings: Sequence[Sequence[str]] | None = None,
    targets: Sequence[str] | None = None,
) -> pa.Table:
    """Returns the predictions of rows as a table with one row per row.

    A column is named by what its numbers are: `mean`, `std`, `lower_90` and `upper_90`
    (in units of the target), `epistemic` and `aleatoric` (variances, which add up to
    that of the target), `quantile_2.5`, `survival_365`, `probability_setosa`. Of
    several targets, their name or number follows: `lower_90_price`;
    `joint_lower_90_price` is a side of the box that holds all of them. A prediction set
    is a list in JSON, and a number that is not known is empty.

    Args:
        outputs: The answers by name, [n, ...] each: of levels [n, levels, ...], of
            draws [n, draws, ...], sets as the names of their classes. `std` follows
            from `variance`, and `class` from `probabilities`. Others than those of the
            table are left out.
        levels: The levels of `intervals`, `quantiles` and `prediction_sets`, and the
            times of `survival`.
        classes: The classes of the model; None for numbers.
        warnings: Sentences about each row; None for no column `warnings`.
        targets: The names of several targets; None for numbers from 1.

    Example:

    >>> outputs = {"mean": [[1.0]], "lower": [[[0.5]]], "upper": [[[2.0]]]}
    >>> answer_table(outputs, {"intervals": [0.9]}).to_pylist()
    [{'mean': 1.0, 'lower_90': 0.5, 'upper_90': 2.0}]
    """
    columns: dict[str, pa.Array] = {}
    if "variance" in outputs:
        outputs = {**outputs, "std": np.sqrt(outputs["variance"])}
    if "probabilities" in outputs:
        best = np.argmax(outputs["probabilities"], axis=1)
        outputs = {**outputs, "class": np.asarray(classes, dtype=object)[best]}
    labels = targets if classes is None else classes
    for output, name in _COLUMNS.items():
        if output not in outputs:
            continue
        asked = levels[_LEVELS[output]] if output in _LEVELS else None
        if output == "prediction_sets":
            columns |= _sets(name, outputs[output], asked or ())
        elif output == "class":
            columns[name] = pa.array(list(outputs[output]), pa.string())
        elif output.endswith("lower"):
            for place, level in enumerate(asked or ()):
                for end in (output, output.replace("lower", "upper")):
                    column = np.asarray(outputs[end])[:, place]
                    columns |= _numbers(f"{end}_{percent(level)}", column, [], labels)
        else:
            label = _time if output == "survival" else percent
            first = [[label(level) for level in asked]] if asked else []
            columns |= _numbers(name, np.asarray(outputs[output]), first, labels)
    if warnings is not None:
        texts = [" ".join(sentences) or None for sentences in warnings]
        columns["warnings"] = pa.array(texts, pa.string())
    return pa.table(columns)


def percent(level: float) -> str:
    """Returns a level as a percentage, for the name of a column.

    Example:

    >>> [percent(level) for level in (0.9, 0.975, 5e-05)]
    ['90', '97.5', '0.005']
    """
    return f"{100.0 * level:.10g}"


def _time(time: float) -> str:
    return f"{time:.10g}"


def _sets(
    name: str, sets: ArrayLike, levels: Sequence[float]
) -> Iterator[tuple[str, pa.Array]]:
    for place, level in enumerate(levels):
        texts = [json.dumps(list(row[place]), ensure_ascii=False) for row in sets]
        yield f"{name}_{percent(level)}", pa.array(texts, pa.string())


def _numbers(
    name: str, values: np.ndarray, axes: list[list[str]], labels: Sequence[str] | None
) -> Iterator[tuple[str, pa.Array]]:
    """Yields the columns of numbers [n, ...], each with its name.

    `axes` has the labels of the first axes after the rows, and numbers from 1 are those
    of the others; but the last axis may have the labels of classes or targets, and one
    target has no label.
    """
    sizes = values.shape[1 + len(axes) :]
    axes = [*axes, *([str(place + 1) for place in range(size)] for size in sizes)]
    if sizes and labels is not None and sizes[-1] == len(labels) > 1:
        axes[-1] = list(labels)
    elif sizes and sizes[-1] == 1:
        axes[-1] = [""]
    for places in itertools.product(*(range(len(axis)) for axis in axes)):
        parts = [axis[place] for axis, place in zip(axes, places, strict=True)]
        index: tuple[Any, ...] = (slice(None), *places)
        column = np.ascontiguousarray(values[index])
        yield (
            "_".join([name, *filter(None, parts)]),
            pa.array(column, from_pandas=True),
        )
