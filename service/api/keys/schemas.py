"""The bodies of `/v1/keys` and `/v1/session`."""

from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field

from service.api.keys.credential import Scope
from tfbbb.base.known_fields import KnownFields


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
    )
    scopes: list[Scope] = Field(
        fail_fast=True,
        min_length=1,
        max_length=len(Scope),
        description="`predict` includes `metrics`, and `train` `predict`; "
        "`admin` allows everything.",
    )
    expires_in_seconds: float | None = Field(
        None,
        gt=0,
        le=10**10,
        description="Seconds until the key expires; never by default.",
    )


class KeySummary(BaseModel):
    """A key without its secret."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    name: str
    prefix: str
    scopes: list[Scope]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None


class NewKey(KeySummary):
    """A new key, including its secret."""

    key: str = Field(description="`prefix.secret`, returned only once and not stored.")


class KeyList(BaseModel):
    """All keys, newest first."""

    keys: list[KeySummary]


class SessionRequest(KnownFields):
    """The key with which to sign in."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"key": "tfbbb-5f1d7e2a.the-secret"}]}
    )

    key: str = Field(max_length=1024, description="`prefix.secret`.")


class Session(BaseModel):
    """The key of a request, without its secret, and when it or the session ends."""

    key_id: str | None = Field(description="`null` if the service runs without keys.")
    name: str
    scopes: list[Scope] = Field(
        description="All scopes of the key, with those that others include."
    )
    expires_at: datetime | None
