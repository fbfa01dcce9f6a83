"""The bodies of `/v1/models/NAME/labels`."""

from datetime import UTC, datetime
from typing import Annotated, Self

from fastapi import Path
from pydantic import BaseModel, ConfigDict, Field

from service.api.labels.gate import Gate
from service.shared.database.tables import Label
from service.shared.model_name import MOST_VERSIONS
from tfbbb.known_fields import KnownFields

LATEST = "latest"

LabelName = Annotated[
    str,
    Path(
        description="`champion`, say. `latest` is the version that answers when none "
        "is named.",
        openapi_examples={"automatic": {"value": LATEST}},
    ),
]


class LabelTarget(KnownFields):
    """Where a label is to point."""

    model_config = ConfigDict(
        frozen=True, json_schema_extra={"examples": [{"version": 1}]}
    )

    version: int = Field(ge=0, le=MOST_VERSIONS, strict=True, examples=[1])
    gate: Gate | None = Field(
        None,
        description="Refuses a version that is worse than the label's present one.",
    )
    force: bool = Field(False, description="Whether to pass the gate in any case.")


class LabelStatus(BaseModel):
    """Where a label points."""

    label: str = Field(examples=["champion"])
    version: int = Field(examples=[1])
    moved_at: datetime | None = Field(description="None of `latest`, which follows.")

    @classmethod
    def from_row(cls, row: Label) -> Self:
        """The status of a label that was moved."""
        return cls(
            label=row.label,
            version=row.number,
            moved_at=datetime.fromtimestamp(row.moved_at, UTC),
        )


class LabelList(BaseModel):
    """The labels of a model."""

    labels: list[LabelStatus]
