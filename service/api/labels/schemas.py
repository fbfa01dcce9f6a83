"""The bodies of `/v1/models/NAME/labels`."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Self

from fastapi import Path
from pydantic import BaseModel, ConfigDict, Field

from service.api.feedback.schemas import FeedbackSummary
from service.shared.database.tables import Feedback, Label
from service.shared.versions import LATEST
from tfbbb.base.known_fields import KnownFields
from tfbbb.base.texts import MOST_VERSIONS

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


class LabelStatus(BaseModel):
    """A label and its version."""

    label: str = Field(examples=["champion"])
    version: int = Field(examples=[1])
    moved_at: datetime | None = Field(
        description="Time of the last move; `null` where `latest` moved by itself."
    )
    feedback: FeedbackSummary | None = Field(
        None, description="The feedback about the version; `null` if there is none."
    )

    @classmethod
    def of(cls, row: Label, feedback: Mapping[int, Feedback]) -> Self:
        """Creates the status of a label."""
        found = feedback.get(row.number)
        fields = {
            "label": row.label,
            "version": row.number,
            "moved_at": row.moved_at,
            "feedback": None if found is None else FeedbackSummary.from_row(found),
        }
        return cls.model_validate(fields)


class LabelList(BaseModel):
    """The labels of a model."""

    labels: list[LabelStatus]
