"""The tables of the database. Times are seconds since 1970, UTC."""

import secrets

from sqlalchemy import (
    JSON,
    BigInteger,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    String,
    Text,
    UniqueConstraint,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from tfbbb.base.types import JsonList, JsonObject
from tfbbb.export.manifest import becomes_latest


def new_id() -> str:
    """Generates the id of a resource: 96 random bits, safe in paths and URLs."""
    return secrets.token_hex(12)


class Base(DeclarativeBase):
    """The tables of the service."""

    type_annotation_map = {  # noqa: RUF012 - SQLAlchemy reads this attribute
        JsonObject: JSON,
        JsonList: JSON,
        list[str]: JSON,
        float: Double(),
    }


class Key(Base):
    """An API key, with its scopes and limits.

    Clients send `prefix.secret`; only the SHA-256 of the secret is stored.
    """

    __tablename__ = "keys"

    id: Mapped[str] = mapped_column(String(24), primary_key=True, default=new_id)
    name: Mapped[str] = mapped_column(Text)
    prefix: Mapped[str] = mapped_column(Text, unique=True)
    secret_sha256: Mapped[str] = mapped_column(String(64))
    # Each sign-out ends the sessions before it.
    sign_outs: Mapped[int] = mapped_column(default=0)
    scopes: Mapped[list[str]]
    created_at: Mapped[float]
    expires_at: Mapped[float | None]
    revoked_at: Mapped[float | None]
    last_used_at: Mapped[float | None]


class Dataset(Base):
    """An uploaded table, one for each SHA-256."""

    __tablename__ = "datasets"
    __table_args__ = (Index("ix_datasets_created", "created_at", "id"),)

    id: Mapped[str] = mapped_column(String(24), primary_key=True, default=new_id)
    name: Mapped[str] = mapped_column(Text)
    sha256: Mapped[str] = mapped_column(String(64), index=True)
    format: Mapped[str] = mapped_column(Text)
    num_bytes: Mapped[int] = mapped_column(BigInteger)
    num_rows: Mapped[int] = mapped_column(BigInteger)
    columns: Mapped[JsonList]
    problems: Mapped[JsonList]
    created_at: Mapped[float]
    # When the same bytes were uploaded again.
    uploaded_again_at: Mapped[float | None]


class Job(Base):
    """A training job; `service.shared.job_state` has its states.

    `attempt` counts the leases: only the latest may write. `deaths` counts the deaths
    of the job's process since the last progress.
    """

    __tablename__ = "jobs"
    __table_args__ = (
        UniqueConstraint("key_id", "idempotency_key"),
        Index("ix_jobs_queue", "state", "priority", "created_at"),
        Index("ix_jobs_created", "created_at", "id"),
        Index("ix_jobs_state_created", "state", "created_at", "id"),
        Index("ix_jobs_name_created", "name", "created_at", "id"),
    )

    id: Mapped[str] = mapped_column(String(24), primary_key=True, default=new_id)
    key_id: Mapped[str | None] = mapped_column(ForeignKey("keys.id"))
    idempotency_key: Mapped[str | None] = mapped_column(Text)
    request_sha256: Mapped[str | None] = mapped_column(String(64))
    name: Mapped[str] = mapped_column(Text)
    dataset_id: Mapped[str | None] = mapped_column(
        ForeignKey("datasets.id", ondelete="SET NULL"), index=True
    )
    dataset_sha256: Mapped[str] = mapped_column(String(64))
    dataset_format: Mapped[str] = mapped_column(Text)
    spec: Mapped[JsonObject]
    priority: Mapped[int] = mapped_column(default=0)
    state: Mapped[str] = mapped_column(Text, default="queued")
    attempt: Mapped[int] = mapped_column(default=0)
    deaths: Mapped[int] = mapped_column(default=0)
    lease_expires_at: Mapped[float | None]
    not_before: Mapped[float | None]
    cancel_requested_at: Mapped[float | None]
    created_at: Mapped[float]
    started_at: Mapped[float | None]
    finished_at: Mapped[float | None]
    progress: Mapped[JsonObject] = mapped_column(default=dict)
    error: Mapped[str | None] = mapped_column(Text)
    version: Mapped[int | None]


class Event(Base):
    """An event of a job; `sequence` counts from 1 within the job."""

    __tablename__ = "events"

    job_id: Mapped[str] = mapped_column(
        ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True
    )
    sequence: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    type: Mapped[str] = mapped_column(Text)
    data: Mapped[JsonObject]
    created_at: Mapped[float]


class ModelVersion(Base):
    """A recorded version. Its row outlives its files: numbers are never used twice.

    `digest` is the SHA-256 of the manifest, which contains those of all files.
    """

    __tablename__ = "model_versions"
    __table_args__ = (UniqueConstraint("job_id"),)

    name: Mapped[str] = mapped_column(Text, primary_key=True)
    number: Mapped[int] = mapped_column(
        BigInteger, primary_key=True, autoincrement=False
    )
    digest: Mapped[str] = mapped_column(String(64))
    # Not a foreign key: a model stays when its job is deleted.
    job_id: Mapped[str | None] = mapped_column(String(24))
    lineage: Mapped[JsonObject]
    created_at: Mapped[float]
    deleted_at: Mapped[float | None]

    @property
    def becomes_latest(self) -> bool:
        """Whether `latest` moves to it when it is loaded."""
        return becomes_latest(self.lineage)


class Label(Base):
    """A label of a version, e.g. `champion`."""

    __tablename__ = "labels"
    __table_args__ = (
        ForeignKeyConstraint(
            ["name", "number"], ["model_versions.name", "model_versions.number"]
        ),
    )

    name: Mapped[str] = mapped_column(Text, primary_key=True)
    label: Mapped[str] = mapped_column(Text, primary_key=True)
    number: Mapped[int] = mapped_column(BigInteger)
    moved_at: Mapped[float]
    key_id: Mapped[str | None] = mapped_column(ForeignKey("keys.id"))


class Feedback(Base):
    """The feedback about a version: running figures and drift.

    `drift_test` is the state of `tfbbb.judging.drift.DriftTest`, and `drift` what it
    found.
    """

    __tablename__ = "feedback"
    __table_args__ = (
        ForeignKeyConstraint(
            ["name", "number"], ["model_versions.name", "model_versions.number"]
        ),
    )

    name: Mapped[str] = mapped_column(Text, primary_key=True)
    number: Mapped[int] = mapped_column(
        BigInteger, primary_key=True, autoincrement=False
    )
    num_rows: Mapped[int] = mapped_column(BigInteger)
    figures: Mapped[JsonObject]
    drift: Mapped[JsonObject]
    drift_test: Mapped[JsonObject] = mapped_column(deferred=True)
    started_at: Mapped[float]
    updated_at: Mapped[float]


class TablesVersion(Base):
    """The only row: the version of the tables, in the table where Alembic keeps it."""

    __tablename__ = "alembic_version"

    version_num: Mapped[str] = mapped_column(String(32), primary_key=True)


class AuditEntry(Base):
    """Who changed what and when; `service.shared.database.audit` writes the rows.

    `actor` is the name of a key, or says which part of the service acted; `key_id` is
    None for such a part.
    """

    __tablename__ = "audit"
    __table_args__ = (Index("ix_audit_created", "created_at", "id"),)

    id: Mapped[str] = mapped_column(String(24), primary_key=True, default=new_id)
    created_at: Mapped[float]
    actor: Mapped[str] = mapped_column(Text)
    # Not a foreign key: the entry stays whatever happens to the key.
    key_id: Mapped[str | None] = mapped_column(String(24))
    request_id: Mapped[str | None] = mapped_column(Text)
    kind: Mapped[str] = mapped_column(Text)
    action: Mapped[str] = mapped_column(Text)
    subject: Mapped[str] = mapped_column(Text)
    details: Mapped[JsonObject]
