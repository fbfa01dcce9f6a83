"""The inputs of a model as standardised numbers, for linear baselines."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from tfbbb.base.types import Config
from tfbbb.tables.values import MISSING_DATE

# Indicators of one text column; rarer texts count as other.
_MOST_CATEGORIES = 50
_LEAST_SCALE = 1e-30


@dataclass(frozen=True)
class EncodedColumn:
    """What the training rows hold in one input.

    Attributes:
        name: Name of the input.
        mean: Mean of the known numbers; 0 for text.
        scale: Standard deviation of the known numbers; 1 for text.
        missing: Whether numbers are missing.
        categories: The commonest texts, the commonest first; None for numbers.
    """

    name: str
    mean: float = 0.0
    scale: float = 1.0
    missing: bool = False
    categories: tuple[str, ...] | None = None

    @classmethod
    def fit(cls, name: str, values: np.ndarray) -> "EncodedColumn":
        """Describes the values of an input: texts, dates, or numbers with NaN."""
        if values.dtype.kind not in "fiub":
            counts = Counter(map(str, values.tolist()))
            commonest = counts.most_common(_MOST_CATEGORIES)
            return cls(name, categories=tuple(text for text, _ in commonest))
        numbers = as_numbers(values)
        known = numbers[np.isfinite(numbers)]
        if not len(known):
            return cls(name, missing=True)
        scale = float(known.std())
        return cls(
            name,
            mean=float(known.mean()),
            scale=scale if scale > _LEAST_SCALE else 1.0,
            missing=len(known) < len(numbers),
        )

    @property
    def width(self) -> int:
        """Number of features."""
        if self.categories is not None:
            return len(self.categories)
        return 1 + self.missing

    def transform(self, values: np.ndarray) -> np.ndarray:
        """Returns the features of some values, [n, width]."""
        if self.categories is not None:
            places = {text: place for place, text in enumerate(self.categories)}
            found = [places.get(str(text), -1) for text in values.tolist()]
            return np.array(found)[:, np.newaxis] == np.arange(self.width)
        numbers = as_numbers(values)
        known = np.isfinite(numbers)
        standardized = np.where(known, (numbers - self.mean) / self.scale, 0.0)
        return np.stack([standardized, ~known][: self.width], axis=1)


@dataclass(frozen=True)
class InputEncoding:
    """Encodes the inputs of a model for linear models, and knows the training rows.

    A number x becomes `(x - mean) / scale`, a missing one 0 with an indicator, a text
    one indicator for each of the 50 commonest texts. It reads what
    `tfbbb.tables.Schema.inputs` returns, whatever the kinds of the columns.

    Attributes:
        columns: The inputs, in order.

    Example:

    >>> import numpy as np
    >>> inputs = {"x": np.array([1.0, np.nan, 3.0]), "kind": np.array(["a", "b", "a"])}
    >>> encoding = InputEncoding.fit(inputs)
    >>> encoding.transform(inputs)
    array([[-1.,  0.,  1.,  0.],
           [ 0.,  1.,  0.,  1.],
           [ 1.,  0.,  1.,  0.]])
    """

    columns: tuple[EncodedColumn, ...]

    @classmethod
    def fit(
        cls,
        inputs: np.ndarray | Mapping[str, np.ndarray],
        names: Sequence[str] | None = None,
    ) -> "InputEncoding":
        """Describes the inputs of training rows, with names for columns of a matrix."""
        by_name = named_columns(inputs, names)
        return cls(tuple(EncodedColumn.fit(*item) for item in by_name.items()))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the inputs."""
        return tuple(column.name for column in self.columns)

    @property
    def width(self) -> int:
        """Number of features."""
        return sum(column.width for column in self.columns)

    def transform(self, inputs: np.ndarray | Mapping[str, np.ndarray]) -> np.ndarray:
        """Returns the features of rows, float64 [n, width]."""
        by_name = named_columns(inputs, self.names)
        parts = [c.transform(np.asarray(by_name[c.name])) for c in self.columns]
        return np.concatenate(parts, axis=1, dtype=np.float64)

    def to_dict(self) -> Config:
        """Returns the encoding as plain JSON values."""
        return {"columns": [asdict(column) for column in self.columns]}

    @classmethod
    def from_dict(cls, values: Config) -> "InputEncoding":
        """Creates an encoding from the result of `to_dict`, of any version."""
        columns = []
        for given in values["columns"]:
            known = {field.name: given[field.name] for field in fields(EncodedColumn)}
            texts = known["categories"]
            known["categories"] = None if texts is None else tuple(texts)
            columns.append(EncodedColumn(**known))
        return cls(tuple(columns))


def is_date(values: np.ndarray) -> bool:
    """Whether an input has dates, as `tfbbb.tables.Schema.inputs` returns them."""
    return values.dtype == np.int64


def as_numbers(values: np.ndarray) -> np.ndarray:
    """Returns numbers as float64 with NaN for missing, dates as seconds since 1970."""
    numbers = values.astype(np.float64)
    if is_date(values):
        numbers[values == MISSING_DATE] = np.nan
    return numbers


def named_columns(
    inputs: np.ndarray | Mapping[str, Any], names: Sequence[str] | None = None
) -> dict[str, np.ndarray]:
    """Returns the inputs of a model as arrays [n] by name."""
    if isinstance(inputs, Mapping):
        return {name: np.asarray(values) for name, values in inputs.items()}
    matrix = np.asarray(inputs)
    if names is None:
        names = [f"x{number}" for number in range(1, matrix.shape[1] + 1)]
    return dict(zip(names, matrix.T, strict=True))
