"""The bodies of `/v1/audit`."""

from datetime import datetime
from typing import Self

from pydantic import BaseModel, Field

from service.shared.database.tables import AuditEntry
from service.shared.json_types import JsonObject


class Change(BaseModel):
    """A change that was committed."""

    id: str
    created_at: datetime
    actor: str = Field(
        description="Name of the key, or the part of the service that acted.",
        examples=["nightly training"],
    )
    key_id: str | None = Field(description="`null` if no key asked for the change.")
    request_id: str | None = Field(
        description="The `X-Request-Id` of the request, as in the access log."
    )
    kind: str = Field(examples=["label"])
    action: str = Field(examples=["move"])
    subject: str = Field(
        description="An id, or `NAME/VERSION`, or `NAME/LABEL`.",
        examples=["houses/champion"],
    )
    details: JsonObject = Field(
        description="Columns of the changed row; `before` has those that it changed.",
        examples=[{"number": 2, "before": {"number": 1}}],
    )

    @classmethod
    def from_row(cls, entry: AuditEntry) -> Self:
        """Creates the description of a row of the database."""
        return cls.model_validate(entry, from_attributes=True)


class ChangePage(BaseModel):
    """A page of changes, newest first."""

    changes: list[Change]
    next_cursor: str | None
