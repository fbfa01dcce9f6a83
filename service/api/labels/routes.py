"""The versions that labels point at, also while the database is lost."""

import asyncio
import logging
import time
from dataclasses import dataclass

from service.api.http.outages import DATABASE_OUTAGES
from service.api.labels.repository import find_version
from service.shared.database import Database
from service.shared.errors import UnknownLabel
from service.shared.versions import LATEST

logger = logging.getLogger(__name__)

# How long a request waits for the database where the version of a label is known, and
# how long it is then used without asking.
_PATIENCE_SECONDS = 1.0
_SECONDS_WITHOUT_ASKING = 5.0


@dataclass(frozen=True)
class _KnownVersion:
    """The version of a label, with the time at which the database was asked."""

    version: int
    asked_at: float


class LabelRoutes:
    """Finds the version of a label for predictions.

    Queries the database for each request, because any process may move labels: a
    request that comes after a move is answered by the new version, everywhere. While
    the database is slow or lost, the version that a label had last answers.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[tuple[str, str], _KnownVersion] = {}
        self._ask_again_at = 0.0

    async def find(self, name: str, label: str) -> int | None:
        """Returns the version of a label; None for `latest`."""
        if label == LATEST:
            return None
        asked_at, place = time.monotonic(), (name, label)
        known = self._known.get(place)
        if known is not None and asked_at < self._ask_again_at:
            return known.version
        asking = asyncio.to_thread(find_version, self._database, name, label)
        try:
            patience = None if known is None else _PATIENCE_SECONDS
            version = await asyncio.wait_for(asking, patience)
        except UnknownLabel:
            self._known.pop(place, None)
            raise
        except (TimeoutError, *DATABASE_OUTAGES) as error:
            if known is None:
                raise
            logger.warning("labels are used as they were known: %r", error)
            self._ask_again_at = time.monotonic() + _SECONDS_WITHOUT_ASKING
            return known.version
        newest = self._known.get(place)
        # A slow answer must not replace a newer one.
        if newest is None or asked_at >= newest.asked_at:
            self._known[place] = _KnownVersion(version, asked_at)
        return version
