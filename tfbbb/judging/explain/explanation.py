"""All explanations of a model by one table."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from tfbbb.base.types import Config
from tfbbb.judging.explain.effects import Effect, effect
from tfbbb.judging.explain.importance import Importance, permutation_importance
from tfbbb.judging.explain.rows import Rows, predicted, sampled
from tfbbb.judging.explain.unusual_rows import UnusualRow, least_like_training
from tfbbb.judging.explain.variance_split import VarianceSplit, variance_split
from tfbbb.judging.types import Inputs, Model

# More columns make pictures that nobody reads.
_MOST_EFFECTS = 12


@dataclass(frozen=True)
class Explanation:
    """What a model has learned, by its predictions of a table.

    Attributes:
        rows: Indices of the explained rows in the table.
        classes: Names of the classes; empty for numbers.
        target: Name of the target; empty if it is not known.
        importance: The columns, the most important first; None without targets.
        effects: The effects of the most important columns; without targets of those
            with the greatest effects.
        split: The parts of the uncertainty of each row.
        unusual: The least familiar rows, or those of the greatest epistemic
            uncertainty; `row` is the index in the table.
    """

    rows: np.ndarray
    classes: tuple[str, ...]
    target: str
    importance: list[Importance] | None
    effects: list[Effect]
    split: VarianceSplit
    unusual: list[UnusualRow]

    @property
    def unusual_by(self) -> str:
        """What orders the unusual rows, for people."""
        if self.unusual and self.unusual[0].familiarity is not None:
            return "familiarity"
        return f"epistemic {_MEASURES[self.split.measure]}"

    def to_dict(self) -> Config:
        """Returns the explanation as plain JSON values; rows are counted from 1."""
        importance = self.importance
        split = self.split
        return {
            "target": self.target,
            "classes": list(self.classes),
            "num_rows": len(self.rows),
            "importance": None if importance is None else [*map(asdict, importance)],
            "effects": [found.to_dict() for found in self.effects],
            "uncertainty": split.to_dict(self.rows),
            "least_like_training": {
                "by": self.unusual_by,
                "rows": [asdict(u) | {"row": u.row + 1} for u in self.unusual],
            },
        }


_MEASURES = {"variance": "variance", "entropy": "mutual information"}


def explain(
    model: Model,
    inputs: Inputs,
    targets: np.ndarray | None = None,
    *,
    names: Sequence[str] | None = None,
    classes: Sequence[str] = (),
    target: str = "",
    places: np.ndarray | None = None,
    max_rows: int = 2000,
    num_samples: int | None = None,
    seed: int = 0,
    track: Callable[[Sequence[str]], Iterable[str]] = iter,
) -> Explanation:
    """Explains what a model has learned, by its predictions of a table.

    Args:
        model: A `tfbbb.BayesianModel`, or a model that `tfbbb.load` returned, of one
            target or of classes.
        inputs: Arrays [n] by name, or a matrix [n, d].
        targets: Targets [n, 1], or class indices [n]; None if they are not known, and
            then there is no importance.
        names: Names of the columns of a matrix; `x1`, `x2` and so on by default.
        classes: Names of the classes.
        target: Name of the target.
        places: The index of each row in its table, [n]; None if these are all rows.
        max_rows: The most rows to explain, drawn at random.
        num_samples: Draws per row; the model's own number by default.
        seed: Seed of rows, shuffles and draws.
        track: Shows the progress through the names of the columns.

    Example:

    >>> import keras, numpy as np, tfbbb
    >>> x = keras.Input((2,))
    >>> model = tfbbb.BayesianModel(x, tfbbb.layers.DenseVariational(1)(x))
    >>> rows = np.random.normal(size=(50, 2)).astype("float32")
    >>> found = explain(model, rows, rows[:, :1], names=["width", "height"])
    >>> sorted(column.name for column in found.importance)
    ['height', 'width']
    """
    whole = Rows.read(inputs, names)
    chosen = sampled(len(whole), max_rows, np.random.default_rng(seed))
    rows = whole.take(chosen)
    where = chosen if places is None else places[chosen]
    options: dict[str, Any] = {"num_samples": num_samples, "seed": seed}
    importance = None
    if targets is not None:
        importance = permutation_importance(
            model,
            rows.inputs,
            np.asarray(targets)[chosen],
            names=list(rows.columns),
            track=track,
            **options,
        )
    effects = _effects(model, rows, importance, options, track)
    prediction = predicted(model, rows, num_samples, None)
    familiarity = getattr(prediction, "familiarity", None)
    split = variance_split(prediction)
    unusual = least_like_training(split, familiarity)
    if familiarity is not None and hasattr(model, "describe_unlike"):
        described = model.describe_unlike(rows.inputs, familiarity)
        unusual = [replace(u, unlike=tuple(described[u.row])) for u in unusual]
    return Explanation(
        rows=where,
        classes=tuple(classes),
        target=target,
        importance=importance,
        effects=effects,
        split=split,
        unusual=[replace(found, row=int(where[found.row])) for found in unusual],
    )


def _effects(
    model: Model,
    rows: Rows,
    importance: list[Importance] | None,
    options: dict[str, Any],
    track: Callable[[Sequence[str]], Iterable[str]],
) -> list[Effect]:
    names = [name for name in rows.columns if rows.has_values(name)]
    if importance is not None:
        ordered = [found.name for found in importance]
        names = sorted(names, key=ordered.index)[:_MOST_EFFECTS]
    found = [
        effect(model, rows.inputs, name, names=list(rows.columns), **options)
        for name in track(names)
    ]
    if importance is None:
        found.sort(key=lambda effect: -effect.range)
    return found[:_MOST_EFFECTS]
