"""Feedback in the database."""

import hashlib
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from service.shared.database import Database
from service.shared.database.tables import (
    Feedback,
    FeedbackReceipt,
    ModelVersion,
)
from service.shared.errors import IdempotencyKeyReused, UnknownModel
from service.shared.json_types import JsonObject
from service.shared.model_messages import ScoredRows

# How long a request may be repeated.
_RECEIPT_SECONDS = 30 * 24 * 3600.0


@dataclass(frozen=True)
class Receipt:
    """What identifies a request, so that it is counted once.

    Args:
        key_id: Id of the caller's key.
        idempotency_key: The caller's name for the request.
        sha256: SHA-256 of the request.
    """

    key_id: str | None
    idempotency_key: str
    sha256: str

    @classmethod
    def of(
        cls, key_id: str | None, idempotency_key: str, path: str, body: bytes
    ) -> "Receipt":
        """Creates the receipt of a request."""
        sha256 = hashlib.sha256(path.encode() + b"\0" + body).hexdigest()
        return cls(key_id, idempotency_key, sha256)


def count(
    database: Database,
    models: Path,
    name: str,
    scored: ScoredRows,
    receipt: Receipt | None,
) -> JsonObject:
    """Counts scored rows in one transaction, all of them or none."""
    # Imported late: NumPy would slow the start of the service.
    from service.api.feedback import running
    from tfbbb.judging.drift_reference import DriftReference

    # Read before the transaction: the disk may be slow, and others wait for the locks.
    reference = None
    if find(database, name, scored.version) is None:
        reference = DriftReference.read(models / name / str(scored.version))
    with database.writing() as session:
        now = database.now(session)
        if receipt is not None:
            named = f"feedback {receipt.key_id} {receipt.idempotency_key}"
            database.lock(session, named)
            earlier = _find_receipt(session, receipt)
            if earlier is not None:
                return earlier.answer
        # Serialises the feedback about the version.
        version = session.get(
            ModelVersion, (name, scored.version), with_for_update=True
        )
        if version is None or version.deleted_at is not None:
            raise UnknownModel(
                f"Version {scored.version} of the model {name!r} was deleted."
            )
        row = session.get(Feedback, (name, scored.version), populate_existing=True)
        if row is None:
            row = Feedback(name=name, number=scored.version, started_at=now)
            running.start(row, reference, scored)
            session.add(row)
        running.add(row, scored, now)
        row.updated_at = now
        answer: JsonObject = {
            "model_name": name,
            "model_version": str(scored.version),
            "num_rows": scored.num_rows,
        }
        if receipt is not None:
            _store_receipt(session, receipt, answer, now)
        return answer


def find(database: Database, name: str, number: int) -> Feedback | None:
    """Returns the feedback about a version, or None."""
    with database.reading() as session:
        return session.get(Feedback, (name, number))


def find_all(database: Database, name: str) -> dict[int, Feedback]:
    """Returns the feedback about each version of a model, by number."""
    with database.reading() as session:
        rows = session.scalars(select(Feedback).where(Feedback.name == name))
        return {row.number: row for row in rows}


def find_drifted(
    database: Database, name: str | None = None
) -> defaultdict[str, list[int]]:
    """Returns the versions with an alarm of drift, of one model or of all, by model."""
    query = select(Feedback.name, Feedback.number, Feedback.drift)
    if name is not None:
        query = query.where(Feedback.name == name)
    found = defaultdict[str, list[int]](list)
    with database.reading() as session:
        for model, number, drift in session.execute(query.order_by(Feedback.number)):
            if drift["alarm_row"] is not None:
                found[model].append(number)
    return found


def _find_receipt(session: Session, receipt: Receipt) -> FeedbackReceipt | None:
    earlier = session.scalar(
        select(FeedbackReceipt).where(
            FeedbackReceipt.key_id.is_not_distinct_from(receipt.key_id),
            FeedbackReceipt.idempotency_key == receipt.idempotency_key,
        )
    )
    if earlier is not None and earlier.request_sha256 != receipt.sha256:
        raise IdempotencyKeyReused(
            f"The Idempotency-Key {receipt.idempotency_key!r:.100} was sent with other "
            "feedback; use a new key for each request."
        )
    return earlier


def _store_receipt(
    session: Session, receipt: Receipt, answer: JsonObject, now: float
) -> None:
    """Stores a receipt, and deletes those that are too old to be asked for."""
    too_old = FeedbackReceipt.created_at < now - _RECEIPT_SECONDS
    session.execute(delete(FeedbackReceipt).where(too_old))
    session.add(
        FeedbackReceipt(
            key_id=receipt.key_id,
            idempotency_key=receipt.idempotency_key,
            request_sha256=receipt.sha256,
            answer=answer,
            created_at=now,
        )
    )
