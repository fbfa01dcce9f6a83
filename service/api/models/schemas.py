"""The bodies and paths of `/v1/models`."""

from datetime import UTC, datetime
from typing import Annotated, Any, Self

from fastapi import Path
from pydantic import BaseModel, Field

from service.shared.database.tables import ModelVersion
from service.shared.model_messages import ModelStatus

ModelName = Annotated[
    str,
    Path(
        description="One of those that `GET /v1/models` lists.",
        openapi_examples={"of `make demo`": {"value": "diabetes"}},
    ),
]
VersionNumber = Annotated[int, Path(openapi_examples={"first": {"value": 1}})]


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
    def from_row(cls, row: ModelVersion) -> Self:
        """The lineage of a published version."""
        return cls(
            digest=row.digest,
            published_at=datetime.fromtimestamp(row.created_at, UTC),
            job_id=row.job_id,
            source=row.lineage,
        )


class VersionDetails(ModelStatus):
    """The state, the description and the origin of one version."""

    lineage: Lineage | None = Field(
        description="None of a version that is not whole, or not yet looked through."
    )
