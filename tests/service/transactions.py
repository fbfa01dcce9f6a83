"""Which slow work is done while a transaction holds its locks."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy.orm import Session

from service.shared.database import Database


def calls_in_transactions(
    monkeypatch: pytest.MonkeyPatch, *functions: tuple[Any, str]
) -> list[bool]:
    """Returns a list that gets, for each call, whether a write transaction is open."""
    found: list[bool] = []
    writing = [0]
    begin = Database.writing

    @contextmanager
    def counted(self: Database) -> Iterator[Session]:
        with begin(self) as session:
            writing[0] += 1
            try:
                yield session
            finally:
                writing[0] -= 1

    def noted(function: Any) -> Any:
        def call(*args: Any) -> Any:
            found.append(bool(writing[0]))
            return function(*args)

        return call

    monkeypatch.setattr(Database, "writing", counted)
    for place, name in functions:
        monkeypatch.setattr(place, name, noted(getattr(place, name)))
    return found
