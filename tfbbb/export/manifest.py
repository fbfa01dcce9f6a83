"""The description of an exported model, a JSON file beside the SavedModel."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, get_args

from pydantic import Field, TypeAdapter, ValidationError

from tfbbb.base.texts import snake_case
from tfbbb.base.types import Config
from tfbbb.base.validation_errors import describe_rule
from tfbbb.bayes.families.support import Support
from tfbbb.prediction.blocks import Sizes
from tfbbb.prediction.questions import Question

if TYPE_CHECKING:
    from tfbbb.prediction.recalibration import Recalibration
    from tfbbb.tables.column import Column
    from tfbbb.tables.notations import Notation
    from tfbbb.tables.row_warnings import RowWarnings

SCHEMA_VERSION: Literal[6] = 6
MANIFEST_PATH = "assets.extra/tfbbb.json"
# Beside the manifest, if NumPy can compute the answers: the functions.
NUMPY_PATH = "assets.extra/numpy_functions.json"
# Beside the manifest, if a table trained the model: what its training measured.
REPORT_FILE = "report.json"
# The prediction methods by which signatures may draw.
DrawingMethod = Literal["local", "weight", "linearised"]
DRAWING_METHODS = get_args(DrawingMethod)
# Fields that are not written where they are None.
_RARE = (
    *("target_notation", "member_weights"),
    *("familiarity", "row_shape", "target_dtype", "event"),
)


class InputError(ValueError):
    """Inputs do not fit the model; the message names the row, counted from 1."""

    def __init__(self, message: str, column: str | None = None):
        super().__init__(message)
        self.column = column


# Not a ValueError: pydantic would treat it as its own and reword it.
class ManifestError(Exception):
    """A manifest is invalid, or a directory does not match its manifest."""


@dataclass(frozen=True)
class Feature:
    """One column a model reads, by its name in the table."""

    name: str
    # Numbers are float32, categories texts, and dates int64 seconds since 1970.
    kind: Literal["numeric", "categorical", "date"]
    # Whether training had missing values: NaN, the empty string, or the least int64.
    missing: bool
    # The signature input that carries the column.
    tensor: str
    # How the cells of the training table were written, and thus the texts of requests
    # are read: the record of a `tfbbb.tables.notations.Notation`. None for plain
    # numbers and texts, and if unknown.
    notation: Mapping[str, Any] | None = None
    # Whether the graph replaces a missing value although none was missing in training.
    imputed: bool = False
    # The least and the greatest value of the training rows, and the texts that training
    # saw; None if unknown.
    low: float | None = None
    high: float | None = None
    categories: tuple[str, ...] | None = None
    # The data type of the tensor of numbers, such as "int32"; None for float32.
    dtype: str | None = None
    # What the likelihood reads it as, in place of the network; an exposure must be
    # positive. None for a column to predict from.
    role: Literal["exposure", "event"] | None = None

    @property
    def may_miss(self) -> bool:
        """Whether a row to predict may lack a value of the column."""
        return self.missing or self.imputed

    @cached_property
    def column(self) -> "Column":
        """The description with which a table's column is read."""
        # The service reads manifests before it can afford to import NumPy.
        from tfbbb.tables.column import Column
        from tfbbb.tables.notations import notation_from_dict

        try:
            notation = notation_from_dict(self.notation)
        except (TypeError, ValueError) as error:
            raise ManifestError(
                f"The notation of {self.name!r} is wrong: {error}"
            ) from None
        return Column(
            self.name,
            self.kind,
            self.missing,
            categories=self.categories or (),
            notation=notation,
            low=self.low,
            high=self.high,
            precise=self.dtype == "float64",
            role=self.role,
        )


@dataclass(frozen=True)
class LayerSummary:
    """The parts of one layer of the exported network."""

    name: str
    class_name: str
    posterior: str | None
    prior: str | None
    estimator: str | None
    num_parameters: int


@dataclass(frozen=True)
class Targets:
    """The targets of one row."""

    # `[k]`, after places if a row has several; of classes the shape of the places, `[]`
    # of one. `None` is any size.
    shape: tuple[int | None, ...]
    # The numbers that they may be; `None` for classes.
    support: Support | None
    # Whether they have a distribution function and quantiles.
    ordered: bool
    # Whether they are integers.
    discrete: bool


@dataclass(frozen=True)
class FamiliarityInfo:
    """What the familiarity of a row compares."""

    # How many rows represent the training rows.
    num_rows: int
    # The names of the compared columns; `None` for all elements of a matrix.
    columns: tuple[str, ...] | None = None


@dataclass(frozen=True)
class NumpyInfo:
    """Whether NumPy computes the answers, without TensorFlow."""

    # The largest difference between the answers of NumPy and of TensorFlow, among some
    # rows: of numbers in predictive standard deviations, of variances as a share, of
    # probabilities and log densities as it is. `None` if NumPy computes none.
    difference: float | None = None
    # Why NumPy computes none, a sentence; `None` if it does.
    missing: str | None = None


@dataclass(frozen=True)
class Manifest:
    """The description of an exported model.

    It lies in `assets.extra/tfbbb.json` of a SavedModel, where TensorFlow Serving
    passes over it, and is read without TensorFlow.

    Args:
        created: Time of the export, ISO 8601 in UTC.
        task: `"regression"` or `"classification"`.
        inputs: `"matrix"`, one tensor of all features, or `"columns"`, one tensor of
            shape `[n]` per feature.
        features: The columns, in the model's order.
        target: Name of the predicted column, or names of several.
        units: The units of inputs and outputs.
        classes: Names of the classes in the order of the probabilities; `None`
            for regression.
        likelihood: `class_name` and `config` of p(y | f(x, w)), its `output_shape`,
            and the `values` of its variables.
        layers: The variational layers of the network.
        num_rows: N, the number (or total weight) of the training rows.
        kl_weight: The factor of the KL divergence in the loss, usually 1 / N.
        method: The prediction method of the signatures.
        default_num_samples: Draws behind an answer that asks for no number.
        default_seed: Seed of an answer that asks for none.
        metrics: Held-out figures.
        libraries: Versions that wrote the export.
        files: sha256 of every file beside the manifest, by relative path.
        targets: The description of the targets.
        passes: The sizes of the passes that `tfbbb.load` computes with, by method.
        numpy: Whether NumPy computes the answers.
        recalibration: `class_name` and `config` of the recalibration of the answers;
            `None` without one.
        lineage: The origin of the model (a training job's spec, the hash of its data,
            ...), as given to the export; `None` if not given.
        recalibration_choice: What was tried as recalibration, what was chosen and why,
            as given to the export; `None` if not given.
        target_notation: How the targets of the training table were written; `None` for
            plain numbers and texts. Of several targets there is one for each.
        member_weights: Weights of the members of an average of models, in the order
            of the draws; `None` for equal ones.
        familiarity: What the familiarity of a row compares; `None` without one.
        event: The column that says whether the event of a time happened, of targets
            that are times and events; `None` for others, and without its name.
        row_shape: The shape of a row in the tensor of all features, which are its
            elements in row-major order; `None` for `[d]`.
        target_dtype: `"float64"` for targets whose differences single precision would
            lose; answers are of this type, too. `None` for float32.
        schema_version: Version of this layout; files of another one are refused.

    Example:
    >>> from tfbbb.export import Manifest
    >>> from tfbbb.export.manifest import Feature, NumpyInfo, Targets
    >>> manifest = Manifest(
    ...     created="2030-01-01T00:00:00+00:00", task="regression", inputs="matrix",
    ...     features=(Feature("age", "numeric", missing=False, tensor="inputs"),),
    ...     target="height", units="as in the training table", classes=None,
    ...     likelihood={"class_name": "Normal", "config": {}}, layers=(),
    ...     num_rows=442, kl_weight=1 / 442, method="local",
    ...     default_num_samples=100, default_seed=0, metrics={"rmse": 3.5},
    ...     libraries={"tensorflow": "2.21.0"}, files={},
    ...     targets=Targets((1,), None, ordered=True, discrete=False),
    ...     passes={}, numpy=NumpyInfo(difference=0.0),
    ... )
    >>> Manifest.from_json(manifest.to_json()) == manifest
    True
    """

    created: str
    task: Literal["regression", "classification"]
    inputs: Literal["matrix", "columns"]
    features: tuple[Feature, ...]
    target: str | tuple[str, ...] | None
    units: str
    classes: tuple[str, ...] | None
    likelihood: Mapping[str, Any]
    layers: tuple[LayerSummary, ...]
    num_rows: float | None
    kl_weight: float | None
    method: DrawingMethod
    default_num_samples: Annotated[int, Field(ge=2)]
    default_seed: int
    metrics: Mapping[str, float]
    libraries: Mapping[str, str]
    files: Mapping[str, str]
    targets: Targets
    passes: Mapping[str, Sizes]
    numpy: NumpyInfo
    recalibration: Mapping[str, Any] | None = None
    lineage: Mapping[str, Any] | None = None
    recalibration_choice: Mapping[str, Any] | None = None
    target_notation: Mapping[str, Any] | tuple[Mapping[str, Any] | None, ...] | None = (
        None
    )
    member_weights: tuple[float, ...] | None = None
    familiarity: FamiliarityInfo | None = None
    event: Feature | None = None
    row_shape: tuple[int, ...] | None = None
    target_dtype: Literal["float64"] | None = None
    schema_version: Literal[6] = SCHEMA_VERSION

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Makes the manifest that `text` describes.

        Raises:
            ManifestError: If `text` is not JSON, its schema version is not this
                one, or a field is missing or malformed.
        """
        try:
            # `NaN` and `Infinity`, which Python reads, are not JSON.
            fields = json.loads(text, parse_constant=_refuse)
        except ValueError as error:
            raise ManifestError(f"The manifest is not JSON: {error}.") from None
        version = fields.get("schema_version") if isinstance(fields, dict) else None
        if version != SCHEMA_VERSION:
            raise ManifestError(
                "Another version of tfbbb wrote the model: export it again. Received: "
                f"schema_version={version!r} in place of {SCHEMA_VERSION}"
            )
        try:
            return TypeAdapter(cls).validate_json(text, strict=True)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))
            if first["type"] == "missing":
                raise ManifestError(f"The manifest lacks `{place}`.") from None
            raise ManifestError(
                f"The manifest's `{place}` {describe_rule(first)}. "
                f"Received: {first['input']!r:.200}"
            ) from None

    @cached_property
    def row_warnings(self) -> "RowWarnings":
        """Finds values of rows to predict that the training rows did not have."""
        from tfbbb.tables.row_warnings import RowWarnings

        return RowWarnings([feature.column for feature in self.features])

    @property
    def censored(self) -> bool:
        """Whether a target is a time and whether the event happened then."""
        return bool(self.likelihood["config"].get("censored"))

    def read_recalibration(self) -> "Recalibration | None":
        """Returns the recalibration of the answers, if there is one."""
        # Those of this package are known by name when their modules are imported.
        from tfbbb.prediction.recalibration import (  # noqa: F401
            conformal,
            factors,
            isotonic_pit,
            logit_scaling,
        )
        from tfbbb.prediction.recalibration.recalibration import described

        return None if self.recalibration is None else described(self.recalibration)

    @property
    def target_names(self) -> tuple[str, ...]:
        """The names of the targets; empty if they are not known."""
        if self.target is None:
            return ()
        return (self.target,) if isinstance(self.target, str) else self.target

    def read_target_notations(self) -> "tuple[Notation | None, ...]":
        """Returns how the cells of each target are written."""
        from tfbbb.tables.notations import notation_from_dict

        notations = self.target_notation
        if not isinstance(notations, tuple):
            width = self.targets.shape[-1] if self.targets.shape else None
            notations = (notations,) * (width or 1)
        return tuple(map(notation_from_dict, notations))

    @property
    def becomes_latest(self) -> bool:
        """Whether the version may predict by default: not if it learned nothing."""
        return becomes_latest(self.lineage)

    @property
    def needs_tensorflow(self) -> str | None:
        """Why the answers need TensorFlow, a sentence; None if NumPy computes them."""
        return self.numpy.missing

    @property
    def engine(self) -> str:
        """What computes the answers in the service, and why if it is TensorFlow."""
        missing = self.needs_tensorflow
        return f"TensorFlow, because: {missing}" if missing else "NumPy"

    def answers(self, question: Question) -> bool:
        """Whether the model answers a question."""
        if question.needs_order and not self.targets.ordered:
            return False
        return self.task == "classification" or not question.needs_classes

    def describe_calibration(self, question: Question) -> str:
        """Says what calibrates an answer at levels.

        Conformal scores calibrate intervals and prediction sets alone. Quantiles are
        those of the predictive distribution, whose density may be recalibrated.
        """
        recalibration = self.recalibration or {}
        config = recalibration.get("config", {})
        scores = config.get("scores")
        if scores is not None and question.of_summary:
            by = config.get("by")
            if isinstance(by, int):
                by = self.features[by].name
            groups = "" if by is None else f", by {by!r}"
            return f"conformal on {len(scores[0])} held-out rows{groups}"
        density = recalibration if scores is None else config.get("density") or {}
        name = density.get("class_name")
        if name is None:
            if question.needs_classes:
                return "none: probabilities of the predictive distribution"
            return "none: quantiles of the predictive distribution"
        # Of a name such as IsotonicPIT.
        method = snake_case(name).replace("_", " ").replace("pit", "PIT")
        num_rows = (self.recalibration_choice or {}).get("num_rows")
        return method if num_rows is None else f"{method} on {num_rows} held-out rows"

    def to_json(self) -> str:
        """Writes the manifest as indented JSON; `from_json` reads it back."""
        fields = {"schema_version": self.schema_version} | asdict(self)
        fields["features"] = [_without_unknown(values) for values in fields["features"]]
        for name in _RARE:
            if fields[name] is None:
                del fields[name]
        return json.dumps(fields, indent=2, ensure_ascii=False, allow_nan=False)

    @classmethod
    def read(cls, model_directory: str | Path) -> Self:
        """Reads the manifest of the SavedModel in `model_directory`.

        Raises:
            ManifestError: If there is none, or it is not a valid manifest.
        """
        path = Path(model_directory) / MANIFEST_PATH
        try:
            return cls.from_json(path.read_bytes())
        except FileNotFoundError:
            raise ManifestError(
                "There is no model written by `export_predictive` here. "
                f"Received: {str(model_directory)!r} without {MANIFEST_PATH}"
            ) from None

    def verify(self, directory: str | Path) -> None:
        """Compares the files in `directory` with their sha256 in the manifest.

        Raises:
            ManifestError: Names the first file that is missing, was not
                exported, or differs.
        """
        found = file_digests(directory)
        for path in sorted(self.files.keys() | found.keys()):
            if path not in found:
                raise ManifestError(f"{path} is missing from {directory}.")
            if path not in self.files:
                raise ManifestError(f"{path} in {directory} was not exported with it.")
            if found[path] != self.files[path]:
                raise ManifestError(
                    f"{path} in {directory} is not the file that was exported: its "
                    f"sha256 is {found[path]} and should be {self.files[path]}."
                )


def _without_unknown(feature: Config) -> Config:
    """Returns the fields of a feature without those that say nothing."""
    optional = ("notation", "imputed", "low", "high", "categories", "dtype", "role")
    return {
        name: value
        for name, value in feature.items()
        if name not in optional or not (value is None or value is False)
    }


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not a number")


def becomes_latest(lineage: Mapping[str, Any] | None) -> bool:
    """Returns whether a version of a lineage may predict by default."""
    judgement = (lineage or {}).get("judgement") or {}
    return bool(judgement.get("becomes_latest", True))


def file_digests(directory: str | Path) -> dict[str, str]:
    """Maps every file under `directory` but the manifest to its sha256."""
    directory = Path(directory)
    digests = {}
    for path in sorted(path for path in directory.rglob("*") if path.is_file()):
        name = path.relative_to(directory).as_posix()
        if name != MANIFEST_PATH:
            with path.open("rb") as file:
                digests[name] = hashlib.file_digest(file, "sha256").hexdigest()
    return digests
