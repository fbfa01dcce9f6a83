"""Descriptions of models and their versions for the API."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from service.predicting.version import ServedVersion, VersionState
from tfbbb.base.types import JsonObject
from tfbbb.export.manifest import Manifest


class Status(BaseModel):
    """The error of a version, if any."""

    error_code: str = Field(examples=["OK"])
    error_message: str = Field(examples=[""])


Labels = Annotated[
    dict[str, str],
    Field(
        description="Versions by label; `latest` predicts by default.",
        examples=[{"latest": "2", "champion": "1"}],
    ),
]

Verdict = Annotated[
    str | None,
    Field(
        description="`learned nothing`, `wrong in sum`, or what the version is worse "
        "than: baselines than which it has more error by two standard errors; `null` "
        "otherwise.",
        examples=["worse than linear model"],
    ),
]


TargetNames = Annotated[
    str | list[str] | None,
    Field(description="A name, or a list of several.", examples=["progression"]),
]


class VersionStatus(BaseModel):
    """One version, as TensorFlow Serving reports it."""

    version: str = Field(examples=["1"])
    state: VersionState
    status: Status


class ModelColumn(BaseModel):
    """A feature of a model."""

    model_config = ConfigDict(from_attributes=True)

    name: str = Field(examples=["age"])
    kind: str = Field(
        description="`numeric`, `categorical` or `date`.", examples=["numeric"]
    )
    missing: bool = Field(
        description="Whether a value was missing in training.", examples=[False]
    )
    imputed: bool = Field(
        False,
        description="Whether a value may be `null` even if none was missing in "
        "training; the answer warns of it.",
        examples=[True],
    )
    role: str | None = Field(
        None,
        description="`exposure` of the column that a count is proportional to, which "
        "every row needs; `null` for a column to predict from.",
        examples=[None],
    )
    notation: JsonObject | None = Field(
        None,
        description="How texts of the column are read, such as `$1,200`; `null` for "
        "plain numbers or categories.",
        examples=[None],
    )


class Description(BaseModel):
    """The features, the target and the metrics of a version."""

    version: str = Field(examples=["1"])
    created: str = Field(examples=["2030-01-01T00:00:00+00:00"])
    task: str = Field(examples=["regression"])
    target: TargetNames
    target_notation: JsonObject | list[JsonObject | None] | None = Field(
        None,
        description="How texts of the target were read, such as `$1,200`; `null` for "
        "plain numbers or labels. A list of several targets.",
        examples=[None],
    )
    units: str = Field(examples=["as in the training table"])
    classes: list[str] | None = Field(examples=[None])
    features: list[ModelColumn] = Field(
        description="The features, in the order of a row's values."
    )
    libraries: dict[str, str] = Field(
        description="Versions of the libraries at training.",
        examples=[{"keras": "3.15.1"}],
    )
    engine: str = Field(
        description="What computes the predictions: `NumPy`, or `TensorFlow` and why.",
        examples=["NumPy"],
    )
    recalibration: JsonObject | None = Field(
        description="The recalibration of predictions, if any.", examples=[None]
    )
    recalibration_choice: JsonObject | None = Field(
        None,
        description="What was tried as recalibration, what was chosen and why.",
        examples=[None],
    )
    default_num_samples: int = Field(examples=[100])
    metrics: dict[str, float] = Field(
        description="Metrics on held-out rows.", examples=[{"rmse": 55.1}]
    )
    verdict: Verdict


class ModelStatus(BaseModel):
    """The states of versions, newest first; describes `latest` if it is one of them."""

    name: str = Field(examples=["diabetes"])
    model_version_status: list[VersionStatus]
    labels: Labels
    description: Description | None
    drifted: list[str] = Field(
        [], description="The versions whose feedback has raised an alarm of drift."
    )


class NewestVersion(BaseModel):
    """The newest usable version of a model, with its held-out figures."""

    model_config = ConfigDict(from_attributes=True)

    version: str = Field(examples=["2"])
    created: str = Field(examples=["2030-01-01T00:00:00+00:00"])
    metrics: dict[str, float] = Field(
        description="Metrics on held-out rows.", examples=[{"rmse": 55.1}]
    )
    verdict: Verdict


class ModelSummary(BaseModel):
    """A model in the list of models."""

    name: str = Field(examples=["diabetes"])
    task: str | None = Field(examples=["regression"])
    target: TargetNames
    labels: Labels
    drifted: list[str] = Field(
        [], description="The versions whose feedback has raised an alarm of drift."
    )
    newest: NewestVersion | None = Field(
        description="`null` if no version can be used."
    )
    versions: list[VersionStatus]


class ModelList(BaseModel):
    """All models."""

    models: list[ModelSummary]


class DescribedVersion(BaseModel):
    """The version that the metadata describe."""

    name: str = Field(examples=["diabetes"])
    signature_name: str = Field(examples=[""])
    version: str = Field(examples=["1"])


class Metadata(BaseModel):
    """`signature_def` as in TensorFlow Serving, and the `manifest`."""

    model_spec: DescribedVersion
    metadata: JsonObject


_OF_MANIFEST = Description.model_fields.keys() - {"version", "recalibration", "verdict"}


def model_status(
    name: str, versions: Sequence[ServedVersion], latest: ServedVersion | None
) -> ModelStatus:
    """Describes the status of some versions of a model."""
    return ModelStatus(
        name=name,
        labels=_latest(latest, versions),
        model_version_status=[_version_status(version) for version in versions],
        description=_describe([*(x for x in versions if x is latest), *versions]),
    )


def model_summary(
    name: str, versions: Sequence[ServedVersion], latest: ServedVersion | None
) -> ModelSummary:
    """Summarises a model with all its versions."""
    description = _describe(versions)
    return ModelSummary(
        name=name,
        task=description and description.task,
        target=description and description.target,
        labels=_latest(latest, versions),
        newest=description and NewestVersion.model_validate(description),
        versions=[_version_status(version) for version in versions],
    )


def _version_status(version: ServedVersion) -> VersionStatus:
    code = "FAILED_PRECONDITION" if version.is_broken else "UNAVAILABLE"
    return VersionStatus(
        version=str(version.number),
        state=version.state,
        status=Status(
            error_code="OK" if version.problem is None else code,
            error_message=version.explanation,
        ),
    )


def _latest(
    latest: ServedVersion | None, versions: Sequence[ServedVersion]
) -> dict[str, str]:
    if latest is None or latest.number not in {v.number for v in versions}:
        return {}
    return {"latest": str(latest.number)}


def _recalibration(manifest: Manifest) -> JsonObject | None:
    """Returns class and config of the recalibration, with the number of its scores."""
    if manifest.recalibration is None:
        return None
    config = dict(manifest.recalibration["config"])
    scores = config.pop("scores", None)
    if scores is not None:
        config.pop("group_scores", None)
        config["num_rows"] = len(scores[0])
    return {**manifest.recalibration, "config": config}


def _describe(versions: Sequence[ServedVersion]) -> Description | None:
    for version in versions:
        if version.manifest is not None and not version.is_broken:
            manifest = version.manifest
            return Description(
                version=str(version.number),
                recalibration=_recalibration(manifest),
                verdict=version.verdict,
                **{name: getattr(manifest, name) for name in _OF_MANIFEST},
            )
    return None
