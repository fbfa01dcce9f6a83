"""Records who changed what, in the transaction of the change itself.

A flush that adds, changes or deletes a row of an audited table adds an entry: no
endpoint can forget it, and an entry exists if and only if its change was committed.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any, NamedTuple

from sqlalchemy import event, insert, inspect, select
from sqlalchemy.orm import Session

from service.shared.database.tables import (
    AuditEntry,
    Base,
    Dataset,
    Job,
    Key,
    Label,
    ModelVersion,
)
from tfbbb.base.types import JsonObject


class Actor(NamedTuple):
    """Who makes a change: a key, by a request, or a part of the service by its name."""

    name: str
    key_id: str | None = None
    request_id: str | None = None


_SERVICE = Actor("the service")
_actor: ContextVar[Actor] = ContextVar("actor", default=_SERVICE)


@contextmanager
def acting(actor: Actor) -> Iterator[None]:
    """Records changes of the block, also in threads that it starts, as an actor's."""
    token = _actor.set(actor)
    try:
        yield
    finally:
        _actor.reset(token)


class _Audited(NamedTuple):
    """What a row is, what adds one, and the columns that an entry repeats."""

    kind: str
    added: str
    details: tuple[str, ...]
    # The action of a change, by its column and whether that is set or cleared.
    changed: Mapping[tuple[str, bool], str] = MappingProxyType({})


_TABLES: dict[type[Base], _Audited] = {
    Dataset: _Audited("dataset", "upload", ("name", "sha256", "num_bytes")),
    Job: _Audited(
        "job",
        "submit",
        ("name", "dataset_id"),
        {("cancel_requested_at", True): "cancel", ("finished_at", False): "retry"},
    ),
    ModelVersion: _Audited(
        "version",
        "publish",
        ("job_id", "becomes_latest"),
        {("deleted_at", True): "delete"},
    ),
    Label: _Audited("label", "move", ("number",), {("moved_at", True): "move"}),
    Key: _Audited(
        "key",
        "create",
        ("name", "prefix", "scopes", "expires_at"),
        {("revoked_at", True): "revoke", ("secret_sha256", True): "change secret"},
    ),
}


class AuditedSession(Session):
    """A writing session, which records what it changes in rows of audited tables.

    `info["now"]` returns the time of the database.
    """


@event.listens_for(AuditedSession, "after_flush")
def _record(session: Session, context: object) -> None:
    """Adds the entries of a flush; new rows have their ids by now."""
    changes = [
        *((row, audited.added) for row, audited in _audited(session.new)),
        *((row, _change(row, audited)) for row, audited in _audited(session.dirty)),
        *((row, "delete") for row, _ in _audited(session.deleted)),
    ]
    entries = [_entry(session, row, action) for row, action in changes if action]
    if entries:
        now = session.info["now"](session)
        session.connection().execute(
            insert(AuditEntry), [{**entry, "created_at": now} for entry in entries]
        )


def _audited(rows: Iterable[Any]) -> list[tuple[Any, _Audited]]:
    return [(row, _TABLES[type(row)]) for row in rows if type(row) in _TABLES]


def _change(row: Any, audited: _Audited) -> str | None:
    """Returns the action that changed a row; None if it is not recorded."""
    attributes = inspect(row).attrs
    for (column, is_set), action in audited.changed.items():
        is_changed = attributes[column].history.has_changes()
        if is_changed and (getattr(row, column) is not None) is is_set:
            return action
    return None


def _entry(session: Session, row: Any, action: str) -> JsonObject:
    audited, state = _TABLES[type(row)], inspect(row)
    details: JsonObject = {name: getattr(row, name) for name in audited.details}
    before = {
        name: old
        for name in audited.details
        if name in state.attrs
        for old in state.attrs[name].history.deleted or ()
        if old != details[name]
    }
    if before:
        details["before"] = before
    actor = _actor.get()
    if actor is _SERVICE and isinstance(row, ModelVersion):
        actor = _owner(session, row) or actor
    return {
        "actor": actor.name,
        "key_id": actor.key_id,
        "request_id": actor.request_id,
        "kind": audited.kind,
        "action": action,
        "subject": "/".join(map(str, state.mapper.primary_key_from_instance(row))),
        "details": details,
    }


def _owner(session: Session, version: ModelVersion) -> Actor | None:
    """Returns the key whose job published a version, in whichever process."""
    owner = session.connection().execute(
        select(Key.name, Key.id)
        .join(Job, Job.key_id == Key.id)
        .where(Job.id == version.job_id)
    )
    found = owner.first()
    return None if found is None else Actor(*found)
