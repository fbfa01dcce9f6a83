"""What the model process answers about models; the API passes it on."""

from enum import StrEnum
from typing import Annotated, Any

from pydantic import BaseModel, Field


class VersionState(StrEnum):
    """The states of TensorFlow Serving; a version that can't be served is at its end.

    A version in `START` is loaded when it is first asked for.
    """

    START = "START"
    LOADING = "LOADING"
    AVAILABLE = "AVAILABLE"
    END = "END"


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
    state: VersionState
    status: Status


class ModelColumn(BaseModel):
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
    features: list[ModelColumn] = Field(description="In the order of a row's values.")
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


class ModelSummary(BaseModel):
    """A model in the list of models."""

    name: str = Field(examples=["diabetes"])
    task: str | None = Field(examples=["regression"])
    target: str | None = Field(examples=["progression"])
    labels: Labels
    versions: list[VersionStatus]


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
