"""Feedback in the database."""

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from service.shared.database import Database
from service.shared.database.tables import (
    Feedback,
    FeedbackReceipt,
    ModelVersion,
    RecordedRow,
)
from service.shared.errors import FeedbackConflict, IdempotencyKeyReused, UnknownModel
from service.shared.json_types import JsonObject
from service.shared.model_messages import ScoredRows


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
    scored: Sequence[ScoredRows],
    receipt: Receipt | None,
) -> JsonObject:
    """Counts scored rows in one transaction, all of them or none."""
    # Imported late: NumPy would slow the start of the service.
    from service.api.feedback import running
    from tfbbb.judging.drift_reference import DriftReference

    # Read before the transaction: the disk may be slow, and others wait for the locks.
    counted = find_all(database, name)
    references = {
        rows.version: DriftReference.read(models / name / str(rows.version))
        for rows in scored
        if rows.version not in counted
    }
    with database.writing() as session:
        now = database.now(session)
        if receipt is not None:
            _lock_receipts(database, session, receipt)
            earlier = _find_receipt(session, receipt)
            if earlier is not None:
                return earlier.answer
        answer: JsonObject = {}
        # In the order of the versions, so that two requests never wait for each other.
        for rows in sorted(scored, key=lambda rows: rows.version):
            # Serialises the feedback about a version.
            version = session.get(
                ModelVersion, (name, rows.version), with_for_update=True
            )
            if version is None or version.deleted_at is not None:
                raise UnknownModel(
                    f"Version {rows.version} of the model {name!r} was deleted."
                )
            _claim(session, rows, now)
            row = session.get(Feedback, (name, rows.version), populate_existing=True)
            if row is None:
                row = Feedback(name=name, number=rows.version, started_at=now)
                running.start(row, references[rows.version], rows)
                session.add(row)
            running.add(row, rows, now)
            row.updated_at = now
            answer[str(rows.version)] = rows.num_rows
        if receipt is not None:
            _store_receipt(session, receipt, answer, now)
        return answer


def find_counted(database: Database, receipt: Receipt) -> JsonObject | None:
    """Returns what a request counted before; None if it is new."""
    with database.reading() as session:
        earlier = _find_receipt(session, receipt)
        return None if earlier is None else earlier.answer


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


def _claim(session: Session, rows: ScoredRows, now: float) -> None:
    """Marks recorded rows as counted."""
    for prediction_id, row in rows.recorded or ():
        claimed = session.execute(
            update(RecordedRow)
            .where(
                RecordedRow.prediction_id == prediction_id,
                RecordedRow.row == row,
                RecordedRow.counted_at.is_(None),
            )
            .values(counted_at=now)
        )
        if not claimed.rowcount:  # type: ignore[attr-defined]
            raise FeedbackConflict(
                f"Row {row} of the prediction {prediction_id!r} was counted before, "
                "or is not kept any more; send the feedback without it. Nothing of "
                "this request was counted."
            )


def _lock_receipts(database: Database, session: Session, receipt: Receipt) -> None:
    """Serialises requests of one idempotency key; SQLite serialises all writers."""
    if not database.is_sqlite:
        name = f"feedback {receipt.key_id} {receipt.idempotency_key}"
        lock = sqlalchemy.func.pg_advisory_xact_lock(sqlalchemy.func.hashtext(name))
        session.execute(select(lock))


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
    session.add(
        FeedbackReceipt(
            key_id=receipt.key_id,
            idempotency_key=receipt.idempotency_key,
            request_sha256=receipt.sha256,
            answer=answer,
            created_at=now,
        )
    )
