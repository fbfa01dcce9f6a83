"""The bodies of `/v1/models/NAME/labels`."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Self

from fastapi import Path
from pydantic import BaseModel, ConfigDict, Field

from service.api.feedback.schemas import FeedbackSummary
from service.api.labels.gate import Gate
from service.shared.database.tables import Feedback
from tfbbb.known_fields import KnownFields
from tfbbb.model_name import MOST_VERSIONS

LATEST = "latest"

LabelName = Annotated[
    str,
    Path(
        description="A label, e.g. `champion`. `latest` is the version that predicts "
        "by default.",
        openapi_examples={"automatic": {"value": LATEST}},
    ),
]


class LabelTarget(KnownFields):
    """The version to which a label moves."""

    model_config = ConfigDict(
        frozen=True, json_schema_extra={"examples": [{"version": 1}]}
    )

    version: int = Field(ge=0, le=MOST_VERSIONS, strict=True, examples=[1])
    gate: Gate | None = Field(
        None,
        description="Bounds that refuse a version worse than the label's current one.",
    )
    force: bool = Field(
        False, description="Whether to move the label without the gate."
    )


class LabelStatus(BaseModel):
    """A label and its version."""

    label: str = Field(examples=["champion"])
    version: int = Field(examples=[1])
    moved_at: datetime | None = Field(
        description="Time of the last move; `null` for `latest`."
    )
    feedback: FeedbackSummary | None = Field(
        None, description="The feedback about the version; `null` if there is none."
    )

    @classmethod
    def of(
        cls,
        label: str,
        version: int,
        moved_at: float | None,
        feedback: Mapping[int, Feedback],
    ) -> Self:
        """Creates the status of a label.

        Args:
            label: The label.
            version: Its version.
            moved_at: Time of the last move, in seconds since 1970.
            feedback: The feedback about the versions of the model.
        """
        row = feedback.get(version)
        moved = None if moved_at is None else datetime.fromtimestamp(moved_at, UTC)
        return cls(
            label=label,
            version=version,
            moved_at=moved,
            feedback=None if row is None else FeedbackSummary.from_row(row),
        )


class LabelList(BaseModel):
    """The labels of a model."""

    labels: list[LabelStatus]
