"""The bodies and paths of `/v1/models`."""

from datetime import UTC, datetime
from typing import Annotated, Self

from fastapi import Path
from pydantic import BaseModel, Field

from service.predicting.descriptions import ModelStatus
from service.shared.database.tables import ModelVersion
from tfbbb.base.texts import MOST_VERSIONS
from tfbbb.base.types import JsonObject

ModelName = Annotated[
    str,
    Path(
        description="Name of a model; `GET /v1/models` lists the names.",
        openapi_examples={"of `make demo`": {"value": "diabetes"}},
    ),
]
VersionNumber = Annotated[
    int,
    Path(
        ge=0,
        le=MOST_VERSIONS,
        description="Number of a version.",
        openapi_examples={"first": {"value": 1}},
    ),
]


class Lineage(BaseModel):
    """The origin of a version."""

    digest: str = Field(
        description="SHA-256 of the manifest, which contains those of all files."
    )
    published_at: datetime
    job_id: str | None = Field(
        description="`null` if the version was copied into the models directory."
    )
    source: JsonObject = Field(
        description="Dataset, spec, seed and code of the training."
    )

    @classmethod
    def from_row(cls, row: ModelVersion) -> Self:
        """Creates the lineage from a row of the database."""
        return cls(
            digest=row.digest,
            published_at=datetime.fromtimestamp(row.created_at, UTC),
            job_id=row.job_id,
            source=row.lineage,
        )


class VersionDetails(ModelStatus):
    """The state, the description and the lineage of one version."""

    lineage: Lineage | None = Field(
        description="`null` if the version is incomplete or not recorded yet."
    )
