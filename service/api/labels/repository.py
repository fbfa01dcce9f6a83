"""Labels in the database."""

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from service.api.last_known import LastKnown
from service.shared.database import Database
from service.shared.database.tables import Label, ModelVersion
from service.shared.errors import LabelRefused, UnknownLabel
from service.shared.versions import LATEST
from tfbbb.base.texts import is_model_name


def list_labels(database: Database, name: str | None = None) -> Sequence[Label]:
    """Returns the labels of one model or of all, without `latest`."""
    others = select(Label).where(Label.label != LATEST)
    statement = others.order_by(Label.name, Label.label)
    if name is not None:
        statement = statement.where(Label.name == name)
    with database.reading() as session:
        return session.scalars(statement).all()


def made_latest(database: Database, name: str) -> Label | None:
    """Returns the label `latest` of a model, if somebody has put it on a version."""
    with database.reading() as session:
        return session.get(Label, (name, LATEST))


def move(
    database: Database, name: str, label: str, number: int, key_id: str | None = None
) -> Label:
    """Points a label at a version."""
    with database.writing() as session:
        database.lock(session, f"label {name}/{label}")
        version = session.get(ModelVersion, (name, number), with_for_update=True)
        if version is None or version.deleted_at is not None:
            raise LabelRefused(
                f"Version {number} of the model {name!r} was deleted.", "version"
            )
        now, row = database.now(session), session.get(Label, (name, label))
        if row is None:
            row = Label(name=name, label=label)
            session.add(row)
        row.number, row.key_id, row.moved_at = number, key_id, now
        session.flush()
        return row


def delete(database: Database, name: str, label: str) -> None:
    """Deletes a label, but not its version."""
    with database.writing() as session:
        session.delete(_find(session, name, label))


class LabelRoutes:
    """Finds the version of a label for predictions.

    Queries the database for each request, because any process may move labels. While
    it is slow or lost, the version that a label had last answers.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known = LastKnown[tuple[str, str], int]()

    async def find(self, name: str, label: str) -> int | None:
        """Returns the version of a label; None for `latest`."""
        if label == LATEST:
            return None
        return await self._known.get((name, label), lambda: self._ask(name, label))

    def _ask(self, name: str, label: str) -> int:
        with self._database.reading() as session:
            return _find(session, name, label).number


def _find(session: Session, name: str, label: str) -> Label:
    row = None
    # Databases may refuse to search for some invalid names.
    if is_model_name(name) and is_model_name(label):
        row = session.get(Label, (name, label))
    if row is None:
        raise UnknownLabel(
            "There is no such label; PUT creates labels. "
            f"Received: {label!r:.100} of the model {name!r:.100}"
        )
    return row
