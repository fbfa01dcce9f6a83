from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Self

from fastapi import Path
from pydantic import BaseModel, Field

from service.model_process.version import State, Version
from service.shared.database.tables import ModelVersion

ModelName = Annotated[
    str,
    Path(
        description="One of those that `GET /v1/models` lists.",
        openapi_examples={"of `make demo`": {"value": "diabetes"}},
    ),
]
VersionNumber = Annotated[int, Path(openapi_examples={"first": {"value": 1}})]


class Status(BaseModel):
    """Why a version is in its state."""

    error_code: str = Field(examples=["OK"])
    error_message: str = Field(examples=[""])


Labels = Annotated[
    dict[str, str],
    Field(
        description="The versions they point at; `latest` answers if none is named.",
        examples=[{"latest": "2", "champion": "1"}],
    ),
]


class VersionStatus(BaseModel):
    """One version, as TensorFlow Serving reports it."""

    version: str = Field(examples=["1"])
    state: State
    status: Status

    @classmethod
    def of(cls, version: Version) -> Self:
        """The status of `version` at this moment."""
        problem = version.problem
        return cls(
            version=str(version.number),
            state=version.state,
            status=Status(
                error_code="OK" if problem is None else "FAILED_PRECONDITION",
                error_message="" if problem is None else str(problem),
            ),
        )


class Column(BaseModel):
    """One value of each row that a model reads."""

    name: str = Field(examples=["age"])
    kind: str = Field(description="`numeric` or `categorical`.", examples=["numeric"])
    missing: bool = Field(description="Whether it may be `null`.", examples=[False])


class Description(BaseModel):
    """What a version reads and predicts."""

    version: str = Field(examples=["1"])
    created: str = Field(examples=["2030-01-01T00:00:00+00:00"])
    task: str = Field(examples=["regression"])
    target: str | None = Field(examples=["progression"])
    units: str = Field(examples=["as in the training table"])
    classes: list[str] | None = Field(examples=[None])
    features: list[Column] = Field(description="In the order of a row's values.")
    libraries: dict[str, str] = Field(
        description="Versions that trained it.", examples=[{"keras": "3.15.1"}]
    )
    recalibration: dict[str, Any] | None = Field(
        description="What the answers were recalibrated by.", examples=[None]
    )
    default_num_samples: int = Field(examples=[100])
    metrics: dict[str, float] = Field(
        description="Held-out figures.", examples=[{"rmse": 55.1}]
    )


class ModelStatus(BaseModel):
    """The state of versions, newest first, and what the newest good one is."""

    name: str = Field(examples=["diabetes"])
    model_version_status: list[VersionStatus]
    labels: Labels
    description: Description | None

    @classmethod
    def of(
        cls, name: str, versions: Sequence[Version], in_charge: Version | None
    ) -> Self:
        """The status of some versions of the model `name`."""
        return cls(
            name=name,
            labels=_latest(in_charge, versions),
            model_version_status=[VersionStatus.of(version) for version in versions],
            description=_describe(versions),
        )


class Lineage(BaseModel):
    """Where a version comes from."""

    digest: str = Field(
        description="SHA-256 of the manifest, which has those of all files."
    )
    published_at: datetime
    job_id: str | None = Field(description="None of one that was copied here.")
    source: dict[str, Any] = Field(
        description="What the training wrote down: dataset, spec, seed, code."
    )

    @classmethod
    def of(cls, row: ModelVersion) -> Self:
        """The lineage of a published version."""
        return cls(
            digest=row.digest,
            published_at=datetime.fromtimestamp(row.created_at, UTC),
            job_id=row.job_id,
            source=row.lineage,
        )


class VersionDetails(ModelStatus):
    """The state of one version, what it is and where it comes from."""

    lineage: Lineage | None = Field(
        description="None of a version that is not whole, or not yet looked through."
    )


class ModelSummary(BaseModel):
    """A model in the list of models."""

    name: str = Field(examples=["diabetes"])
    task: str | None = Field(examples=["regression"])
    target: str | None = Field(examples=["progression"])
    labels: Labels
    versions: list[VersionStatus]

    @classmethod
    def of(
        cls, name: str, versions: Sequence[Version], in_charge: Version | None
    ) -> Self:
        """The summary of the model `name` with all its versions."""
        description = _describe(versions)
        return cls(
            name=name,
            task=description and description.task,
            target=description and description.target,
            labels=_latest(in_charge, versions),
            versions=[VersionStatus.of(version) for version in versions],
        )


class ModelList(BaseModel):
    """The models under the registry's root."""

    models: list[ModelSummary]


class ModelSpec(BaseModel):
    """Which version the metadata describe."""

    name: str = Field(examples=["diabetes"])
    signature_name: str = Field(examples=[""])
    version: str = Field(examples=["1"])


class Metadata(BaseModel):
    """`signature_def` as TensorFlow Serving reports it, and the `manifest`."""

    model_spec: ModelSpec
    metadata: dict[str, Any]


def _latest(in_charge: Version | None, versions: Sequence[Version]) -> dict[str, str]:
    if in_charge is None or in_charge.number not in {v.number for v in versions}:
        return {}
    return {"latest": str(in_charge.number)}


def _describe(versions: Sequence[Version]) -> Description | None:
    for version in versions:
        if version.manifest is not None and version.problem is None:
            manifest = version.manifest
            return Description(
                version=str(version.number),
                created=manifest.created,
                task=manifest.task,
                target=manifest.target,
                units=manifest.units,
                classes=list(manifest.classes) if manifest.classes else None,
                features=[
                    Column(name=f.name, kind=f.kind, missing=f.missing)
                    for f in manifest.features
                ],
                default_num_samples=manifest.default_num_samples,
                libraries=dict(manifest.libraries),
                recalibration=manifest.recalibration and dict(manifest.recalibration),
                metrics=dict(manifest.metrics),
            )
    return None
