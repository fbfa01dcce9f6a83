"""Rows of the inputs of a model, with columns by name."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tfbbb.judging.evaluation.input_encoding import as_numbers, named_columns
from tfbbb.judging.types import Inputs, Model

if TYPE_CHECKING:
    from tfbbb.prediction import Predictive


@dataclass(frozen=True)
class Rows:
    """The inputs of a model, as columns by name."""

    columns: Mapping[str, np.ndarray]
    matrix: bool

    @classmethod
    def read(cls, inputs: Inputs, names: Sequence[str] | None = None) -> "Rows":
        """Reads what a model reads."""
        columns = named_columns(inputs, names)
        if not columns or not len(next(iter(columns.values()))):
            raise ValueError(
                "An explanation needs at least one row and one column. "
                f"Received: inputs of {len(columns)} columns"
            )
        return cls(columns, not isinstance(inputs, Mapping))

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def take(self, rows: np.ndarray) -> "Rows":
        """Returns some rows."""
        found = {name: values[rows] for name, values in self.columns.items()}
        return Rows(found, self.matrix)

    def sample(self, most: int, generator: np.random.Generator) -> "Rows":
        """Returns at most some number of rows, drawn at random, in their order."""
        return self.take(sampled(len(self), most, generator))

    def with_column(self, name: str, values: np.ndarray) -> "Rows":
        """Returns the rows with other values in one column."""
        return Rows({**self.columns, name: values}, self.matrix)

    @property
    def inputs(self) -> Inputs:
        """What the model reads."""
        if self.matrix:
            return np.stack(list(self.columns.values()), axis=1)
        return dict(self.columns)

    def has_values(self, name: str) -> bool:
        """Whether a column has text, or a number that is not missing."""
        values = self.columns[name]
        return values.dtype.kind not in "fiub" or bool(
            np.isfinite(as_numbers(values)).any()
        )

    def check_column(self, name: str) -> None:
        """Raises a `ValueError` unless there is such a column."""
        if name not in self.columns:
            raise ValueError(
                f"The model reads {', '.join(map(repr, self.columns))}. "
                f"Received: name={name!r}"
            )


def sampled(number: int, most: int, generator: np.random.Generator) -> np.ndarray:
    """Returns at most some number of the indices of rows, in order."""
    if number <= most:
        return np.arange(number)
    return np.sort(generator.choice(number, most, replace=False))


class _OneTarget:
    """A model that predicts one of the several targets of another model."""

    def __init__(self, model: Model, place: int):
        self._model, self._place = model, place

    def predictive(self, *arguments: Any, **options: Any) -> "Predictive":
        return self._model.predictive(*arguments, **options).of_target(self._place)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)


def of_targets(model: Model, number: int) -> list[Any]:
    """Returns the model of each target."""
    if number == 1:
        return [model]
    return [_OneTarget(model, place) for place in range(number)]


def predicted(
    model: Model, rows: Rows, num_samples: int | None, seed: int | None
) -> "Predictive":
    """Returns the prediction of rows by a live or a loaded model."""
    draws = {"num_samples": num_samples, "seed": seed}
    given: dict[str, Any] = {
        name: value for name, value in draws.items() if value is not None
    }
    return model.predictive(rows.inputs, **given)
