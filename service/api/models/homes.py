"""Assigns each model to a model process."""

import asyncio
import logging
import time
from collections.abc import Sequence

from service.api.models.home_table import AT_REST, HomeTable
from service.api.models.host import ModelHost
from service.shared.settings import Settings

logger = logging.getLogger(__name__)

# A model that computes for this share of the time gets a second home in a process that
# computes for the other share at most, and leaves it when it computes for less itself.
_BUSY, _IDLE = 0.8, 0.2
# The gain worth a move.
_WORTH = 0.09


class Homes(HomeTable):
    """The table of homes in the process that decides them.

    A model has one home, for all its versions, and a second one while its home is busy
    computing it. New models, and the models of a process that ended, go to the process
    with the least load. A model moves where that evens out the load: the new home loads
    it, then requests go there, then the old home drops it.
    """

    def __init__(self, hosts: Sequence[ModelHost], settings: Settings) -> None:
        super().__init__(hosts, settings)
        # New homes, which load their model before requests go there.
        self._coming: dict[str, ModelHost] = {}
        self._retiring: ModelHost | None = None
        # Further API processes learn a little later where the models are now.
        polls = 2 if settings.workers > 1 else 0
        self._seconds_to_follow = polls * settings.poll_seconds
        self._may_restart_at = 0.0

    @property
    def is_settled(self) -> bool:
        """Whether no model is about to move."""
        return not self._coming

    async def look(self) -> None:
        """Asks every process for its state, and changes the table."""
        reports = await asyncio.gather(
            *(self._ask(host, sorted(self._names(host))) for host in self.hosts)
        )
        known = [report.known for report in reports if report is not None]
        if not known:
            return
        self._leave_dead_homes()
        self._assign({name for names in known for name in names})
        self._finish_moves()
        self._watch_memory()
        if not self._coming:
            self._balance()

    def _candidates(self) -> Sequence[ModelHost]:
        return [host for host in self.hosts if host is not self._retiring]

    def _names(self, host: ModelHost) -> set[str]:
        coming = {name for name, other in self._coming.items() if other is host}
        return coming | super()._names(host)

    def _leave_dead_homes(self) -> None:
        for name, homes in self._table.items():
            alive = [host for host in homes if host.is_connected]
            self._table[name] = alive or [self.least_loaded()]
        self._coming = {n: host for n, host in self._coming.items() if host.is_ready}

    def _assign(self, known: set[str]) -> None:
        """Gives new models a home, and forgets models that are gone."""
        for name in self._table.keys() - known:
            del self._table[name]
            self._coming.pop(name, None)
        for name in sorted(known - self._table.keys()):
            self._table[name] = [self.least_loaded()]

    def _finish_moves(self) -> None:
        """Sends requests to the new homes that have loaded their model."""
        for name, host in list(self._coming.items()):
            if name in host.settled:
                del self._coming[name]
                stays = self._is_busy(name) and self._retiring is None
                self._table[name] = [*(self._table[name] if stays else ()), host]

    def _balance(self) -> None:
        """Gives a busy model a second home, or moves a model."""
        ready = [h for h in self.hosts if h.is_ready and h is not self._retiring]
        if len(ready) < 2:
            return
        least, most = min(ready, key=self._load), max(ready, key=self._load)
        is_idle = sum(least.loads.values()) < _IDLE
        for name, homes in self._table.items():
            if len(homes) > 1 and all(home.load(name) < _IDLE for home in homes):
                self._table[name] = homes[:1]
            elif is_idle and least not in homes and self._is_busy(name):
                self._coming[name] = least
                return
        gap = self._load(most) - self._load(least)
        gains = {
            name: gap - abs(gap - 2 * (AT_REST + most.load(name)))
            for name, homes in self._table.items()
            if homes == [most]
        }
        name = max(gains, key=lambda name: gains[name], default="")
        if name and gains[name] > _WORTH:
            self._coming[name] = least

    def _is_busy(self, name: str) -> bool:
        return any(home.load(name) > _BUSY for home in self._table[name])

    def _watch_memory(self) -> None:
        """Restarts a process that is too large, once its models have other homes."""
        most = self._settings.model_memory_bytes
        for host in self.hosts:
            too_large = host.is_ready and host.resident_bytes > most
            if too_large and self._retiring is None:
                self._retiring = host
                logger.warning(
                    "a model process has %d MB, more than %d MB "
                    "(TFBBB_MODEL_MEMORY_BYTES); restarting it",
                    host.resident_bytes // 2**20,
                    most // 2**20,
                )
        if self._retiring is not None:
            self._retire(self._retiring)

    def _retire(self, host: ModelHost) -> None:
        if not host.is_connected:
            self._retiring = None  # It has ended by itself.
            return
        names, target = self._names(host), self.least_loaded()
        if names and len(self.hosts) > 1:
            self._may_restart_at = time.monotonic() + self._seconds_to_follow
            if target.is_ready:
                self._coming |= {n: target for n in names if n not in self._coming}
        elif target is host or (
            time.monotonic() >= self._may_restart_at
            and host.is_idle
            and not host.num_waiting
        ):
            self._retiring = None
            host.restart()
