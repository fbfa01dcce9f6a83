"""The job that trains a drifted version anew, ready to be submitted."""

from collections.abc import Sequence

from pydantic import BaseModel, Field
from sqlalchemy import select

from service.api.jobs.schemas import JobRequest
from service.shared.database.tables import Dataset, ModelVersion
from service.shared.json_types import JsonObject
from service.shared.queue import Queue

# A search among more tables would read the features of each.
_MOST_TABLES = 20


class Retraining(BaseModel):
    """What to do about drift: the posterior of the version becomes the next prior."""

    sentence: str = Field(
        examples=["The rows no longer come like those of the training."]
    )
    body: JsonObject | None = Field(
        description="The body of `POST /v1/jobs`, with the newest table that was "
        "uploaded after the version was made; `null` if there is no such table yet, "
        "as rows that trained the version must not count twice.",
        examples=[
            {
                "name": "houses",
                "target": "price",
                "features": ["area"],
                "start_from": {"model": "houses", "version": 2},
                "dataset_id": "5f1d7e2a9c3b4d6e8f012345",
            }
        ],
    )


def offer_retraining(queue: Queue, name: str, number: int) -> Retraining:
    """Returns the job that starts from a version, if there are new rows for it."""
    # Imported late: NumPy and Arrow would slow the start of the service.
    from tfbbb.training.continuation import check_continuation
    from tfbbb.training.record import TrainingRecord
    from tfbbb.training.spec import SpecError

    drifted = "The rows no longer come like those of the training."
    try:
        record = TrainingRecord.read(queue.store.version(name, number))
    except (SpecError, OSError):
        return _without_body(
            f"{drifted} A table did not train this version: train a new one on rows "
            "of now."
        )
    fields = {
        "name": name,
        "target": record.spec.target,
        "features": [column.name for column in record.schema.features],
        "start_from": {"model": name, "version": number},
    }
    refusal = None
    for table in _new_tables(queue, name, number):
        body = {**fields, "dataset_id": table.id}
        request = JobRequest.model_validate(body)
        try:
            request.check_columns(table.columns)
            check_continuation(
                request, record, [column["name"] for column in table.columns]
            )
        except SpecError as error:
            refusal = refusal or str(error)
        else:
            return Retraining(
                sentence=f"{drifted} `POST /v1/jobs` with `body` trains the next "
                f"version from version {number} and the rows of {table.name!r}.",
                body=body,
            )
    if refusal is not None:
        return _without_body(f"{drifted} The newest table does not suit: {refusal}")
    return _without_body(
        f"{drifted} Upload new rows with their targets; the next version starts from "
        f"version {number}, so the rows that trained it must not be among them."
    )


def _new_tables(queue: Queue, name: str, number: int) -> Sequence[Dataset]:
    """Returns the tables that came after a version was made, newest first."""
    with queue.database.reading() as session:
        version = session.get(ModelVersion, (name, number))
        if version is None:
            return []
        later = select(Dataset).where(Dataset.created_at > version.created_at)
        newest = later.order_by(Dataset.created_at.desc(), Dataset.id)
        return session.scalars(newest.limit(_MOST_TABLES)).all()


def _without_body(sentence: str) -> Retraining:
    return Retraining(sentence=sentence, body=None)
