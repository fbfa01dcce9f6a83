"""The bodies of `/v1/keys`."""

from datetime import datetime
from typing import Annotated, Self

from fastapi import Path
from pydantic import BaseModel, ConfigDict, Field

from service.api.keys.credential import Scope
from service.shared.database.tables import Key
from tfbbb.base.known_fields import KnownFields

KeyId = Annotated[
    str,
    Path(
        description="Id of a key; `GET /v1/keys` lists the ids.",
        pattern="^[0-9a-f]{24}$",
        examples=["5f1d7e2a9c3b4d6e8f012345"],
    ),
]


class KeyRequest(KnownFields):
    """The name and the scopes of a new key."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"name": "nightly predictions", "scopes": ["predict"]}]
        }
    )

    name: str = Field(
        min_length=1,
        max_length=200,
        pattern=r"^[^\x00-\x1f\x7f]*$",
        description="Purpose of the key, in one line.",
        examples=["nightly predictions"],
    )
    scopes: list[Scope] = Field(
        fail_fast=True,
        min_length=1,
        max_length=len(Scope),
        description="`predict` includes `metrics`, and `train` `predict`; "
        "`admin` allows everything.",
        examples=[["predict"]],
    )
    expires_in_seconds: float | None = Field(
        None,
        gt=0,
        le=10**10,
        description="Seconds until the key expires; never by default.",
        examples=[90 * 86400],
    )


class KeySummary(BaseModel):
    """A key without its secret."""

    id: str
    name: str
    prefix: str
    scopes: list[Scope]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None

    @classmethod
    def from_row(cls, key: Key) -> Self:
        """Creates the summary of a row of the database."""
        return cls.model_validate(key, from_attributes=True)


class NewKey(KeySummary):
    """A new key, including its secret."""

    key: Annotated[
        str, Field(description="`prefix.secret`, returned only once and not stored.")
    ]


class KeyList(BaseModel):
    """All keys, newest first."""

    keys: list[KeySummary]


class SessionRequest(KnownFields):
    """The key with which to sign in."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"key": "tfbbb-5f1d7e2a.the-secret"}]}
    )

    key: str = Field(
        max_length=1024,
        description="`prefix.secret`.",
        examples=["tfbbb-5f1d7e2a.the-secret"],
    )


class Session(BaseModel):
    """The key of a request, without its secret, and when it or the session ends."""

    key_id: str | None = Field(
        description="`null` if the service runs without keys.",
        examples=["5f1d7e2a9c3b4d6e8f012345"],
    )
    name: str = Field(examples=["nightly predictions"])
    scopes: list[Scope] = Field(
        description="All scopes of the key, with those that others include.",
        examples=[["metrics", "predict", "train"]],
    )
    expires_at: datetime | None
