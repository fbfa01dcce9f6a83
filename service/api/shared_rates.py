"""Shares the rates of keys with the services on other machines."""

import asyncio
import logging
import time
from collections.abc import Mapping

import sqlalchemy

from service.api.patience import NoAnswerError, Patience
from service.shared.database import Database, new_id
from service.shared.database.tables import Replica
from service.shared.work_rates import WorkRates

logger = logging.getLogger(__name__)

_SECONDS = 1.0
# Time without a sign of life until a service counts as ended.
_SECONDS_TO_END = 30.0


class SharedRates:
    """Takes from the credits of keys what other services have let them use.

    Each second, a service writes the work of each key, and takes the new work of the
    others from its own credits: together, the services give a key its rate. A key that
    was idle may use its credit of ten seconds at each service once, which is then a
    debt at the others.

    While the database does not answer, a service assumes that each other service gives
    a key its equal share, and takes that.

    Args:
        rates: The credits of this service.
        database: The database that the services share.
        patience: Bounds the time to wait for the database.
    """

    def __init__(
        self, rates: WorkRates, database: Database, patience: Patience
    ) -> None:
        self._rates = rates
        self._database = database
        self._patience = patience
        self._id = new_id()
        # The work that the other services had counted last; None if it must be read
        # anew, because their shares were assumed meanwhile.
        self._counted: Mapping[str, Mapping[str, float]] | None = None
        self._num_others = 0

    async def run(self) -> None:
        """Shares the rates for ever; with SQLite there is one machine only."""
        before = time.monotonic()
        while not self._database.is_sqlite:
            now = time.monotonic()
            try:
                await self.exchange(now - before)
            except Exception:
                logger.exception("could not share the rates of keys")
            before = now
            await asyncio.sleep(_SECONDS)

    async def exchange(self, seconds: float) -> None:
        """Shares the rates once.

        Args:
            seconds: The time since this was called before.
        """
        used = await asyncio.to_thread(self._rates.used)
        try:
            others = await self._patience.ask(
                "the work of other services", lambda: self._tell(used)
            )
        except NoAnswerError:
            self._counted = None
            await asyncio.to_thread(self._take_shares, used, seconds)
        else:
            await asyncio.to_thread(self._take_work, others)
            self._counted, self._num_others = others, len(others)

    def _take_work(self, others: Mapping[str, Mapping[str, float]]) -> None:
        """Takes the work that the others have counted since the last exchange."""
        counted = self._counted or {}
        # What a service counted before it is first seen is not known to be new.
        for name in others.keys() & counted.keys():
            for key, work in others[name].items():
                if more := work - counted[name].get(key, 0.0):
                    self._rates.take(key, work=more)

    def _take_shares(self, used: Mapping[str, float], seconds: float) -> None:
        """Takes the equal shares of the others in the rates."""
        share = self._num_others / (self._num_others + 1)
        for key in used:
            self._rates.take(key, seconds=share * seconds)

    def _tell(self, used: Mapping[str, float]) -> Mapping[str, Mapping[str, float]]:
        """Writes the work of this service; returns that of the others, by their ids."""
        with self._database.writing() as session:
            now = self._database.now(session)
            ended = Replica.seen_at < now - _SECONDS_TO_END
            session.execute(sqlalchemy.delete(Replica).where(ended))
            mine = session.get(Replica, self._id)
            if mine is None:
                mine = Replica(id=self._id, work={}, seen_at=now)
                session.add(mine)
            mine.work, mine.seen_at = dict(used), now
            others = sqlalchemy.select(Replica).where(Replica.id != self._id)
            return {row.id: row.work for row in session.scalars(others)}
