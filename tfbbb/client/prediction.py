"""The predictive distribution that the service returns."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Self

import numpy as np

from tfbbb.base.types import JsonObject

if TYPE_CHECKING:
    import pyarrow as pa


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
        std: Its square root, in units of the targets [n, k].
        epistemic: Variance that more data would remove [n, k].
        aleatoric: Variance that more data would not remove [n, k].
        probabilities: p(y = class) [n, c].
        entropy: Entropy of the probabilities, in nats [n].
        mutual_information: Mutual information of class and weights, in nats [n].
        between_members: The part of `epistemic` between members of an ensemble.
        mean_standard_error: Monte Carlo error of `mean` or `probabilities`.
        familiarity: The percentile of each row among rows like the training rows, from
            0 to 1 [n].
        labels: The most probable class of each row [n].
        classes: The classes, in the order of `probabilities`.
        levels: The requested levels of quantiles [q].
        quantiles: Quantiles of y [n, q, k].
        samples: Draws of y [s, n, k]; for classes their indices.
        interval_levels: The requested levels of intervals [q].
        lower: Lower bounds of the intervals [n, q, k].
        upper: Upper bounds of the intervals [n, q, k].
        joint_levels: The requested levels of joint intervals [q].
        joint_lower: Lower sides of the boxes that hold all targets [n, q, k].
        joint_upper: Upper sides of these boxes [n, q, k].
        targets: The names of several targets.
        set_levels: The requested levels of prediction sets [q].
        prediction_sets: Names of the classes in the sets of each row, a list per level.
        times: The requested times [q].
        survival: The probabilities that y is beyond each of them [n, q, k].
        log_prob: Log densities of the requested targets, in nats [n].
        warnings: Sentences on the values of each row that training did not have; None
            if there are none.
        calibration: What calibrates the `quantiles`, `intervals` and `prediction_sets`
            that were requested, by these names, such as "conformal on 120 held-out
            rows" or "none: quantiles of the predictive distribution".
    """

    model: str
    version: int
    num_samples: int
    mean: np.ndarray | None = None
    variance: np.ndarray | None = None
    std: np.ndarray | None = None
    epistemic: np.ndarray | None = None
    aleatoric: np.ndarray | None = None
    probabilities: np.ndarray | None = None
    entropy: np.ndarray | None = None
    mutual_information: np.ndarray | None = None
    between_members: np.ndarray | None = None
    mean_standard_error: np.ndarray | None = None
    familiarity: np.ndarray | None = None
    labels: np.ndarray | None = None
    classes: tuple[str, ...] | None = None
    levels: np.ndarray | None = None
    quantiles: np.ndarray | None = None
    samples: np.ndarray | None = None
    interval_levels: np.ndarray | None = None
    lower: np.ndarray | None = None
    upper: np.ndarray | None = None
    joint_levels: np.ndarray | None = None
    joint_lower: np.ndarray | None = None
    joint_upper: np.ndarray | None = None
    targets: tuple[str, ...] | None = None
    set_levels: np.ndarray | None = None
    prediction_sets: list[list[list[str]]] | None = None
    times: np.ndarray | None = None
    survival: np.ndarray | None = None
    log_prob: np.ndarray | None = None
    warnings: list[list[str]] | None = None
    calibration: dict[str, str] | None = None

    @classmethod
    def of(
        cls,
        answer: "pa.Table",
        levels: Sequence[float] = (),
        interval_levels: Sequence[float] = (),
        set_levels: Sequence[float] = (),
        times: Sequence[float] = (),
        joint_levels: Sequence[float] = (),
    ) -> Self:
        """Reads the answer of the service, a table with one row per row.

        Args:
            answer: The outputs, and in the metadata of the schema the model.
            levels: The requested levels of quantiles.
            interval_levels: The requested levels of intervals.
            set_levels: The requested levels of prediction sets.
            times: The requested times.
            joint_levels: The requested levels of joint intervals.
        """
        metadata = {k.decode(): v.decode() for k, v in answer.schema.metadata.items()}
        known = {field.name for field in fields(cls)}
        values: JsonObject = {
            name: tuple(json.loads(metadata[name]))
            for name in ("classes", "targets")
            if name in metadata
        }
        for name in answer.column_names:
            column = answer.column(name)
            if name in ("prediction_sets", "warnings"):
                values[name] = column.to_pylist()  # Of different sizes by row.
            elif name == "class":
                values["labels"] = np.array(column.to_pylist())
            elif name == "samples":
                values[name] = _as_array(column).swapaxes(0, 1)
            elif name in known:
                values[name] = _as_array(column)
        if not any(values.get("warnings", ())):
            values["warnings"] = None
        return cls(
            model=metadata["model_name"],
            version=int(metadata["model_version"]),
            num_samples=int(metadata["num_samples"]),
            levels=_levels(levels),
            interval_levels=_levels(interval_levels),
            set_levels=_levels(set_levels),
            times=_levels(times),
            joint_levels=_levels(joint_levels),
            calibration=json.loads(metadata.get("calibration", "null")),
            **values,
        )

    def to_table(self) -> "pa.Table":
        """Returns the predictions as a table with one column per number.

        The columns are those of `tfbbb predict`, with an empty `warnings` where there
        is nothing to say.
        """
        from tfbbb.prediction.answer_table import answer_table

        outputs = {name: x for name, x in vars(self).items() if x is not None}
        if self.samples is not None:
            outputs["samples"] = self.samples.swapaxes(0, 1)
        levels = {
            "quantiles": _listed(self.levels),
            "intervals": _listed(self.interval_levels),
            "joint_intervals": _listed(self.joint_levels),
            "prediction_sets": _listed(self.set_levels),
            "survival": _listed(self.times),
        }
        warnings = self.warnings or [[]] * len(self)
        return answer_table(outputs, levels, self.classes, warnings, self.targets)

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

    def interval(
        self, level: float = 0.9, *, joint: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Returns the lower and upper bounds [n, k] of an interval.

        The request must have asked for this interval, or for the quantiles at both
        bounds, for instance 0.05 and 0.95 for the level 0.9. With `joint=True` it must
        have asked for `joint_intervals`, which hold all targets of a row together.

        Raises:
            ValueError: The request asked for neither.
        """
        asked, lower, upper = self.interval_levels, self.lower, self.upper
        if joint:
            asked, lower, upper = self.joint_levels, self.joint_lower, self.joint_upper
        places = np.flatnonzero(np.isclose(_listed(asked), level))
        if len(places) and lower is not None and upper is not None:
            return lower[:, places[0]], upper[:, places[0]]
        if joint:
            raise ValueError(
                "Request this box with `predict(..., joint_intervals=[...])`. "
                f"Received: level={level:.6g}"
            )
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


def _levels(levels: Sequence[float]) -> np.ndarray | None:
    return np.asarray(levels) if len(levels) else None


def _listed(levels: np.ndarray | None) -> list[float]:
    return [] if levels is None else list(levels.tolist())


def _as_array(column: "pa.ChunkedArray") -> np.ndarray:
    """Returns a column as an array, lists of fixed sizes as further axes."""
    import pyarrow as pa

    values, shape = column.combine_chunks(), [len(column)]
    while pa.types.is_fixed_size_list(values.type):
        shape.append(values.type.list_size)
        values = values.flatten()
    array: np.ndarray = values.to_numpy(zero_copy_only=False).reshape(shape)
    return array.astype(np.float64) if array.dtype.kind == "f" else array
