"""The versions that labels point at, also while the database is lost."""

import asyncio
import time
from functools import partial

from service.api.labels.repository import find_version
from service.api.patience import NoAnswerError, Patience
from service.shared.database import Database
from service.shared.errors import UnknownLabel
from service.shared.versions import LATEST


class LabelRoutes:
    """Finds the version of a label for predictions.

    Queries the database for each request, because any process may move labels: a
    request that comes after a move is answered by the new version, everywhere. While
    the database is slow or lost, the version that a label had last answers.
    """

    def __init__(self, database: Database, patience: Patience) -> None:
        self._database = database
        self._patience = patience
        # With the times at which the database was asked.
        self._last: dict[tuple[str, str], tuple[float, int]] = {}

    async def find(self, name: str, label: str) -> int | None:
        """Returns the version of a label; None for `latest`."""
        if label == LATEST:
            return None
        ask = partial(self._ask, name, label)
        known = self._last.get((name, label))
        if known is None:
            return await asyncio.to_thread(ask)
        try:
            return await self._patience.ask(f"the label {label!r} of {name!r}", ask)
        except NoAnswerError:
            _, version = self._last.get((name, label), known)
            return version

    def _ask(self, name: str, label: str) -> int:
        asked_at = time.monotonic()
        try:
            version = find_version(self._database, name, label)
        except UnknownLabel:
            self._last.pop((name, label), None)
            raise
        # A slow answer must not replace a newer one.
        if asked_at >= self._last.get((name, label), (asked_at, version))[0]:
            self._last[name, label] = asked_at, version
        return version
