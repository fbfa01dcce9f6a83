"""The baselines of a model, with the encoding of its inputs."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tfbbb.base.types import Config
from tfbbb.judging.evaluation.baseline import Baseline
from tfbbb.judging.evaluation.input_encoding import InputEncoding, named_columns
from tfbbb.judging.evaluation.predicted_rows import PredictedRows
from tfbbb.judging.types import Inputs

# In `assets.extra` of a SavedModel.
BASELINES_FILE = "baselines.json"
_FORMAT = 1
_FEWEST_ROWS, MOST_ROWS = 1000, 20_000
# The time of a fit grows with these products. They keep it near one per cent of the
# time of a training, which grows with the number of rows.
_SQUARED_FEATURES_PER_ROW = 8e4
_CLASSES_TIMES_FEATURES = 1e3


@dataclass(frozen=True)
class Baselines:
    """A constant and a linear model of the same rows.

    Attributes:
        encoding: The encoding of the inputs, fitted to the training rows.
        models: The constant and the linear model, of each target.
        exposure: The name of the input that a count is proportional to; None without
            one. The models are then those of the rate per `unit` of it, and the
            variance of a count is proportional to the exposure, too.
        unit: The mean exposure of the training rows.
    """

    encoding: InputEncoding
    models: tuple[Baseline, ...]
    exposure: str | None = None
    unit: float = 1.0

    @classmethod
    def fit(
        cls,
        inputs: Inputs,
        targets: np.ndarray,
        *,
        names: Sequence[str] | None = None,
        num_classes: int = 0,
        discrete: bool = False,
        masses: tuple[float, ...] = (),
        num_rows: int | None = None,
        weights: np.ndarray | None = None,
        exposure: str | None = None,
        event: bool = False,
    ) -> "Baselines":
        """Fits the baselines to training rows.

        The linear model is fitted to at most 20 000 rows, and to fewer of many
        columns, drawn at random.

        Args:
            inputs: Arrays [n] by name, or a matrix [n, d].
            targets: Targets [n, k], or class indices [n].
            names: Names of the columns of a matrix.
            num_classes: Number of classes; 0 for numbers.
            discrete: Whether the numbers are whole.
            masses: The numbers with a probability of their own: see `Baseline`.
            num_rows: Number of training rows, if these are a sample of them.
            weights: The weight of each row, [n]; None for 1.
            exposure: Name of the input that a count is proportional to.
            event: Whether targets are times and events, [n, 2]. The curve of Kaplan and
                Meier is then the only model.

        Example:

        >>> inputs = {"x": np.arange(20.0)}
        >>> targets = 2.0 * np.arange(20.0)[:, np.newaxis]
        >>> baselines = Baselines.fit(inputs, targets)
        >>> [model.name for model in baselines.models]
        ['mean', 'linear model']
        >>> found = baselines.predict(inputs, targets)["linear model"].mean
        >>> bool(np.allclose(found, targets, atol=0.1))
        True
        """
        unit = 1.0
        if exposure is not None:
            columns = named_columns(inputs, names)
            exposures = columns.pop(exposure).astype(np.float64)
            inputs, unit = columns, float(exposures.mean())
            relative = exposures / unit
            targets = targets / relative[:, np.newaxis]
            weights = relative if weights is None else weights * relative
        encoding = InputEncoding.fit(inputs, names)
        if event:
            return cls(encoding, (Baseline.of_times(targets, weights),))
        number = 1 if num_classes else targets.shape[1]
        constants = tuple(
            Baseline.constant(y, num_classes, discrete, weights, masses)
            for y in one_by_one(targets, number)
        )
        if not encoding.width:
            return cls(encoding, constants, exposure, unit)
        rows = _rows_to_fit(
            num_rows or len(targets), len(targets), encoding.width, num_classes
        )
        if len(rows) < len(targets):
            by_name = named_columns(inputs, encoding.names)
            inputs = {name: values[rows] for name, values in by_name.items()}
            targets = targets[rows]
            weights = None if weights is None else weights[rows]
        features = encoding.transform(inputs)
        if num_classes:
            logistic = Baseline.logistic(features, targets, num_classes, weights)
            return cls(encoding, (*constants, logistic))
        linear = (
            Baseline.linear(features, y, discrete, weights, masses)
            for y in one_by_one(targets, number)
        )
        return cls(encoding, (*constants, *linear), exposure, unit)

    def predict(self, inputs: Inputs, targets: np.ndarray) -> dict[str, PredictedRows]:
        """Predicts and scores rows with each baseline, by name."""
        features = None
        if any(model.weights is not None for model in self.models):
            features = self.encoding.transform(inputs)
        relative, found = self.relative_exposures(inputs), {}
        for name in dict.fromkeys(model.name for model in self.models):
            of_targets = [model for model in self.models if model.name == name]
            columns = one_by_one(targets, len(of_targets))
            found[name] = PredictedRows.together(
                [
                    model.predict(features, y, relative)
                    for model, y in zip(of_targets, columns, strict=True)
                ]
            )
        return found

    def relative_exposures(self, inputs: Inputs) -> np.ndarray | None:
        """Returns the exposures in some inputs over their unit, [n]; None without."""
        if self.exposure is None:
            return None
        return np.asarray(named_columns(inputs)[self.exposure], np.float64) / self.unit

    def describe_far(
        self,
        targets: np.ndarray,
        names: Sequence[str],
        show: Callable[[float, int], str],
    ) -> list[str]:
        """Returns a sentence if most targets are three deviations from their mean.

        Of the training rows at most a ninth are.

        Args:
            targets: Targets [n, k], or class indices [n].
            names: Names of the targets.
            show: Writes a value of the target of a place for people.
        """
        found = []
        for place, (name, values) in enumerate(
            zip(names, one_by_one(targets, len(names)), strict=True)
        ):
            constant = self.models[place]
            is_rate_or_time = self.exposure is not None or constant.curve is not None
            if constant.scale is None or is_rate_or_time:
                continue
            mean, scale = float(constant.bias[0]), constant.scale
            if np.mean(np.abs(values - mean) > 3.0 * scale) <= 0.5:
                continue
            median, *of_training = (
                show(x, place) for x in (float(np.median(values)), mean, scale)
            )
            found.append(
                f"The target {name!r} is about {median} in these rows, and "
                f"{' ± '.join(of_training)} in training: it may be written in another "
                "way or unit, of which no figure says anything about the model."
            )
        return found

    def to_json(self) -> bytes:
        """Returns the baselines as JSON, which `read` reads."""
        values = {
            "format": _FORMAT,
            "encoding": self.encoding.to_dict(),
            "models": [model.to_dict() for model in self.models],
            "exposure": self.exposure,
            "unit": self.unit,
        }
        return json.dumps(values).encode()

    @classmethod
    def read(cls, version: Path) -> "Baselines | None":
        """Reads the baselines of an exported model; None if it has none.

        Versions that a table did not train have none, nor have those that an earlier
        or a later version of the format wrote.
        """
        path = Path(version) / "assets.extra" / BASELINES_FILE
        try:
            values: Config = json.loads(path.read_bytes())
        except FileNotFoundError:
            return None
        if values.get("format") != _FORMAT:
            return None
        return cls(
            InputEncoding.from_dict(values["encoding"]),
            tuple(Baseline.from_dict(model) for model in values["models"]),
            values.get("exposure"),
            values.get("unit", 1.0),
        )


def one_by_one(targets: np.ndarray, number: int) -> list[np.ndarray]:
    """Returns each of so many targets, [n, 1]; one as it is."""
    if number == 1:
        return [targets]
    return [targets[:, [place]] for place in range(number)]


def _rows_to_fit(
    num_rows: int, available: int, features: int, num_classes: int
) -> np.ndarray:
    """Returns the rows of a linear model, in order."""
    if num_classes:
        most = _CLASSES_TIMES_FEATURES * num_rows / (features * num_classes)
    else:
        most = _SQUARED_FEATURES_PER_ROW * num_rows / features**2
    size = int(np.clip(most, _FEWEST_ROWS, MOST_ROWS))
    if size >= available:
        return np.arange(available)
    return np.sort(np.random.default_rng(0).choice(available, size, replace=False))
