"""The predictive distribution that the service returns."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np


@dataclass(frozen=True, repr=False)
class Prediction:
    """The predictive distribution of each row, as the service returned it.

    The first axis of most arrays is the rows: [n, k] for k targets, [n, c] for c
    classes. An attribute is None if the model does not predict it or the request did
    not ask for it.

    Attributes:
        model: Name of the model.
        version: The version that predicted.
        num_samples: Number of draws of the weights.
        mean: E[y] [n, k].
        variance: `epistemic + aleatoric` [n, k].
        epistemic: Variance that more data would remove [n, k].
        aleatoric: Variance that more data would not remove [n, k].
        probabilities: p(y = class) [n, c].
        entropy: Entropy of the probabilities, in nats [n].
        mutual_information: Mutual information of class and weights, in nats [n].
        between_members: The part of `epistemic` between members of an ensemble.
        mean_standard_error: Monte Carlo error of `mean` or `probabilities`.
        labels: The most probable class of each row [n].
        classes: The classes, in the order of `probabilities`.
        levels: The requested levels of quantiles [q].
        quantiles: Quantiles of y [n, q, k].
        samples: Draws of y [s, n, k]; for classes their indices.
        interval_levels: The requested levels of intervals [q].
        lower: Lower bounds of the intervals [n, q, k].
        upper: Upper bounds of the intervals [n, q, k].
        set_levels: The requested levels of prediction sets [q].
        prediction_sets: Names of the classes in the sets of each row, a list per level.
        log_prob: Log densities of the requested targets, in nats [n].
        warnings: Sentences on the values of each row that training did not have; None
            if there are none.
    """

    model: str
    version: int
    num_samples: int
    mean: np.ndarray | None = None
    variance: np.ndarray | None = None
    epistemic: np.ndarray | None = None
    aleatoric: np.ndarray | None = None
    probabilities: np.ndarray | None = None
    entropy: np.ndarray | None = None
    mutual_information: np.ndarray | None = None
    between_members: np.ndarray | None = None
    mean_standard_error: np.ndarray | None = None
    labels: np.ndarray | None = None
    classes: tuple[str, ...] | None = None
    levels: np.ndarray | None = None
    quantiles: np.ndarray | None = None
    samples: np.ndarray | None = None
    interval_levels: np.ndarray | None = None
    lower: np.ndarray | None = None
    upper: np.ndarray | None = None
    set_levels: np.ndarray | None = None
    prediction_sets: list[list[list[str]]] | None = None
    log_prob: np.ndarray | None = None
    warnings: list[list[str]] | None = None

    @classmethod
    def of(
        cls,
        responses: Sequence[dict[str, Any]],
        levels: Sequence[float],
        interval_levels: Sequence[float] = (),
        set_levels: Sequence[float] = (),
    ) -> Self:
        """Concatenates the responses for consecutive rows."""
        first = responses[0]
        sets: list[list[list[str]]] | None = None
        if "prediction_sets" in first["outputs"]:
            sets = [x for r in responses for x in r["outputs"]["prediction_sets"]]
        warnings: list[list[str]] = []
        for response in responses:
            given = response["outputs"]
            rows = len(next(iter(given.values())))
            warnings += given.get("warnings", [[] for _ in range(rows)])
        renamed = {"class": "labels"}
        arrays = {
            renamed.get(name, name): np.concatenate(
                [np.asarray(response["outputs"][name]) for response in responses],
                # The first axis of samples is the draws.
                axis=1 if name == "samples" else 0,
            )
            for name in first["outputs"]
            # Of different sizes by row.
            if name not in ("prediction_sets", "warnings")
        }
        known = {field.name for field in fields(cls)}
        return cls(
            model=first["model_name"],
            version=int(first["model_version"]),
            num_samples=first["num_samples"],
            classes=tuple(first["classes"]) if "classes" in first else None,
            levels=np.asarray(levels) if len(levels) else None,
            interval_levels=np.asarray(interval_levels)
            if len(interval_levels)
            else None,
            set_levels=np.asarray(set_levels) if len(set_levels) else None,
            prediction_sets=sets,
            warnings=warnings if any(warnings) else None,
            **{name: array for name, array in arrays.items() if name in known},
        )

    @property
    def stddev(self) -> np.ndarray | None:
        """Standard deviation of y [n, k]."""
        return None if self.variance is None else np.sqrt(self.variance)

    def quantile(self, level: float) -> np.ndarray:
        """Returns the quantile at one of the requested levels [n, k].

        Raises:
            ValueError: The request did not ask for this level.
        """
        levels = () if self.levels is None else self.levels
        places = np.flatnonzero(np.isclose(levels, level))
        if self.quantiles is None or not len(places):
            raise ValueError(
                "Request this quantile with `predict(..., quantiles=[...])`. "
                f"Received: level={level:.6g}"
            )
        quantile: np.ndarray = self.quantiles[:, places[0]]
        return quantile

    def interval(self, level: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """Returns the lower and upper bounds [n, k] of an interval.

        The request must have asked for this interval, or for the quantiles at both
        bounds, for instance 0.05 and 0.95 for the level 0.9.

        Raises:
            ValueError: The request asked for neither.
        """
        asked = () if self.interval_levels is None else self.interval_levels
        places = np.flatnonzero(np.isclose(asked, level))
        if len(places) and self.lower is not None and self.upper is not None:
            return self.lower[:, places[0]], self.upper[:, places[0]]
        tail = (1 - level) / 2
        try:
            return self.quantile(tail), self.quantile(1 - tail)
        except ValueError:
            raise ValueError(
                "Request this interval with `predict(..., intervals=[...])`. "
                f"Received: level={level:.6g}"
            ) from None

    def __len__(self) -> int:
        predicted = self.mean if self.mean is not None else self.probabilities
        return 0 if predicted is None else len(predicted)

    def __repr__(self) -> str:
        return (
            f"Prediction(model={self.model!r}, version={self.version}, "
            f"rows={len(self)}, num_samples={self.num_samples})"
        )
