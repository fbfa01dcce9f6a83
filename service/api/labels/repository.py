"""Labels in the database."""

import asyncio
from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from service.api.labels.schemas import LATEST
from service.shared.database import Database
from service.shared.database.tables import Label, ModelVersion
from service.shared.errors import LabelRefused, UnknownLabel
from service.shared.model_name import is_model_name


def labels(database: Database, name: str | None = None) -> Sequence[Label]:
    """The labels of a model, or of all; `latest` is not among them."""
    statement = select(Label).order_by(Label.name, Label.label)
    if name is not None:
        statement = statement.where(Label.name == name)
    with database.reading() as session:
        return session.scalars(statement).all()


def find_version(database: Database, name: str, label: str) -> int:
    """The version that a label points at; `latest` is not known here.

    Raises:
        UnknownLabel: If there is no such label.
    """
    with database.reading() as session:
        return _find(session, name, label).number


async def resolve(database: Database, name: str, label: str) -> int | None:
    """The version that a label points at now; None of `latest`, which the models know.

    Labels are looked up at each request, since any process may move them.

    Raises:
        UnknownLabel: If there is no such label.
    """
    if label == LATEST:
        return None
    return await asyncio.to_thread(find_version, database, name, label)


def move(
    database: Database,
    name: str,
    label: str,
    number: int,
    *,
    seen_at: int | None,
    key_id: str | None,
) -> Label:
    """Points a label at a version.

    Args:
        database: Where labels are.
        name: The model.
        label: The label; it is made if there is none.
        number: The version.
        seen_at: Where the label pointed when it was decided to move it.
        key_id: Who moves it.

    Raises:
        LabelRefused: If the label, or the version, is no longer where it was.
    """
    moved = f"The label {label!r} was moved meanwhile; look again."
    with database.writing() as session:
        version = session.get(ModelVersion, (name, number), with_for_update=True)
        if version is None or version.deleted_at is not None:
            raise LabelRefused(f"Version {number} of the model {name!r} was deleted.")
        row = session.get(Label, (name, label), with_for_update=True)
        if (row and row.number) != seen_at:
            raise LabelRefused(moved)
        now = database.now(session)
        if row is None:
            row = Label(name=name, label=label)
            session.add(row)
        row.number, row.key_id, row.moved_at = number, key_id, now
        try:
            session.flush()
        except IntegrityError:
            # There was none to lock, and another request has made it.
            raise LabelRefused(moved) from None
        return row


def remove(database: Database, name: str, label: str) -> None:
    """Removes a label; its version stays.

    Raises:
        UnknownLabel: If there is no such label.
    """
    with database.writing() as session:
        session.delete(_find(session, name, label))


def _find(session: Session, name: str, label: str) -> Label:
    row = None
    # What can't be a name, a database may refuse to look for.
    if is_model_name(name) and is_model_name(label):
        row = session.get(Label, (name, label))
    if row is None:
        raise UnknownLabel(
            "There is no such label; PUT makes one. "
            f"Received: {label!r:.100} of the model {name!r:.100}"
        )
    return row
