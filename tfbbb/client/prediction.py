from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np


@dataclass(frozen=True, repr=False)
class Prediction:
    """The predictive distribution of each row, as the service answered it.

    Arrays have the rows first: [n, k] for k targets, [n, c] for c classes. What a
    model does not answer, or was not asked for, is None.

    Attributes:
        model: Name of the model.
        version: The version that answered.
        num_samples: Draws of the weights behind the answer.
        mean: E[y] [n, k].
        variance: `epistemic + aleatoric` [n, k].
        epistemic: What more data would remove [n, k].
        aleatoric: What it would not [n, k].
        probabilities: p(y = class) [n, c].
        entropy: Of the probabilities, in nats [n].
        mutual_information: Of class and weights, in nats [n].
        between_members: The part of `epistemic` between members of an ensemble.
        mean_standard_error: Monte Carlo error of `mean` or `probabilities`.
        labels: The likeliest class of each row [n].
        classes: The classes, in the order of `probabilities`.
        levels: The levels that quantiles were asked at [q].
        quantiles: Quantiles of y [n, q, k].
        samples: Draws of y [s, n, k]; of classes their indices.
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

    @classmethod
    def of(cls, answers: Sequence[dict[str, Any]], levels: Sequence[float]) -> Self:
        """Puts the answers for consecutive rows together."""
        first = answers[0]
        named = {"class": "labels"}
        arrays = {
            named.get(name, name): np.concatenate(
                [np.asarray(answer["outputs"][name]) for answer in answers],
                # The service answers draws before rows.
                axis=1 if name == "samples" else 0,
            )
            for name in first["outputs"]
        }
        known = {field.name for field in fields(cls)}
        return cls(
            model=first["model_name"],
            version=int(first["model_version"]),
            num_samples=first["num_samples"],
            classes=tuple(first["classes"]) if "classes" in first else None,
            levels=np.asarray(levels) if len(levels) else None,
            **{name: array for name, array in arrays.items() if name in known},
        )

    @property
    def stddev(self) -> np.ndarray | None:
        """Standard deviation of y [n, k]."""
        return None if self.variance is None else np.sqrt(self.variance)

    def quantile(self, level: float) -> np.ndarray:
        """The quantile at one of the levels that were asked for [n, k].

        Raises:
            ValueError: It was not asked for.
        """
        levels = () if self.levels is None else self.levels
        places = np.flatnonzero(np.isclose(levels, level))
        if self.quantiles is None or not len(places):
            raise ValueError(
                "Ask for the quantile in `predict(..., quantiles=[...])`. "
                f"Received: level={level:.6g}"
            )
        quantile: np.ndarray = self.quantiles[:, places[0]]
        return quantile

    def interval(self, level: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """The central interval of a probability: bounds [n, k] and [n, k].

        Both of its ends must have been asked for: 0.05 and 0.95 for the level 0.9.
        """
        outside = (1 - level) / 2
        return self.quantile(outside), self.quantile(1 - outside)

    def __len__(self) -> int:
        answered = self.mean if self.mean is not None else self.probabilities
        return 0 if answered is None else len(answered)

    def __repr__(self) -> str:
        return (
            f"Prediction(model={self.model!r}, version={self.version}, "
            f"rows={len(self)}, num_samples={self.num_samples})"
        )
