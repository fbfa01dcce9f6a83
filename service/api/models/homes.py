"""Which model process has which model."""

import asyncio
import logging
from collections.abc import Sequence

from service.api.models.host import ModelHost
from service.shared.errors import ServiceError, Unavailable
from service.shared.model_messages import HostReport
from service.shared.settings import Settings

logger = logging.getLogger(__name__)

_SECONDS_UNTIL_SETTLED = 0.1
_SECONDS_TO_REPORT = 2.0
# A model that computes for this share of the time gets a second home in a process that
# computes for the other share at most, and leaves it when it computes for less itself.
_BUSY, _IDLE = 0.8, 0.2
# The load that a model counts as although nobody asks it, and the gain worth a move.
_AT_REST, _WORTH = 0.05, 0.09


class Homes:
    """The table from the name of a model to the processes that have it loaded.

    A model has one home, for all its versions, and a second one while its home is busy
    computing it. New models, and the models of a process that ended, go to the process
    with the least load. A model moves where that evens out the load: the new home loads
    it, then requests go there, then the old home drops it.

    Args:
        hosts: The model processes.
        settings: The settings of the service.
    """

    def __init__(self, hosts: Sequence[ModelHost], settings: Settings) -> None:
        self.hosts = tuple(hosts)
        self._settings = settings
        self._table: dict[str, list[ModelHost]] = {}
        # New homes, which load their model before requests go there.
        self._coming: dict[str, ModelHost] = {}
        self._retiring: ModelHost | None = None

    def choose(self, name: str) -> ModelHost:
        """Returns the process that should answer for a model.

        While no home of the model runs, another process answers.
        """
        return min(self.all(name), key=lambda host: host.num_waiting)

    def all(self, name: str) -> list[ModelHost]:
        """Returns every process that may be asked for a model; one at least."""
        homes = self._table.get(name, [])
        ready = [host for host in homes if host.is_ready]
        if ready or (homes and not any(host.is_ready for host in self.hosts)):
            return ready or homes
        return [self._least_loaded()]

    def record(self, name: str, host: ModelHost) -> None:
        """Makes a process that has answered for a model its home, if it has none."""
        homes = self._table.get(name, [])
        if not any(home.is_ready for home in homes):
            self._table[name] = [host]

    def check_ready(self) -> None:
        """Raises `Unavailable` until every model is loaded or known to be broken."""
        is_loaded = all(
            any(name in home.settled for home in homes)
            for name, homes in self._table.items()
        )
        if not (is_loaded and any(host.is_ready for host in self.hosts)):
            raise Unavailable("TensorFlow and the models are being loaded.")

    async def tend(self) -> None:
        """Keeps the table up to date for ever."""
        while True:
            is_settled = False
            try:
                await self.look()
                self.check_ready()
                is_settled = not self._coming
            except Unavailable:
                pass
            except Exception:
                logger.exception("could not share the models among the processes")
            seconds = self._settings.poll_seconds
            await asyncio.sleep(seconds if is_settled else _SECONDS_UNTIL_SETTLED)

    async def look(self) -> None:
        """Asks every process for its state, and changes the table."""
        answers = await asyncio.gather(*map(self._ask, self.hosts))
        known = [names for names in answers if names is not None]
        if not known:
            return
        self._leave_dead_homes()
        self._assign({name for names in known for name in names})
        self._finish_moves()
        self._watch_memory()
        if not self._coming:
            self._balance()

    async def _ask(self, host: ModelHost) -> Sequence[str] | None:
        """Tells a process its models; returns the names of all models, if it knows."""
        names = sorted(self._names(host))
        try:
            async with asyncio.timeout(_SECONDS_TO_REPORT):
                frame = await host.ask("keep", arguments={"names": names})
        except (ServiceError, TimeoutError):
            return None  # It does not run, or hangs, which the watchdog notices.
        report = HostReport.model_validate_json(frame.body)
        host.observe(report, self._settings.threads)
        return None if report.is_starting else report.known

    def _names(self, host: ModelHost) -> set[str]:
        """Returns the models that a process should have loaded."""
        coming = {name for name, other in self._coming.items() if other is host}
        return coming | {name for name, homes in self._table.items() if host in homes}

    def _load(self, host: ModelHost) -> float:
        return sum(_AT_REST + host.load(name) for name in self._names(host))

    def _least_loaded(self) -> ModelHost:
        hosts = [host for host in self.hosts if host is not self._retiring]
        for kind in (
            [host for host in hosts if host.is_ready],
            [host for host in hosts if host.is_connected],
        ):
            if kind:
                return min(kind, key=self._load)
        return min(self.hosts, key=self._load)

    def _leave_dead_homes(self) -> None:
        for name, homes in self._table.items():
            alive = [host for host in homes if host.is_connected]
            self._table[name] = alive or [self._least_loaded()]
        self._coming = {n: host for n, host in self._coming.items() if host.is_ready}

    def _assign(self, known: set[str]) -> None:
        """Gives new models a home, and forgets models that are gone."""
        for name in self._table.keys() - known:
            del self._table[name]
            self._coming.pop(name, None)
        for name in sorted(known - self._table.keys()):
            self._table[name] = [self._least_loaded()]

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
            name: gap - abs(gap - 2 * (_AT_REST + most.load(name)))
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
        names, target = self._names(host), self._least_loaded()
        if names and len(self.hosts) > 1:
            if target.is_ready:
                self._coming |= {n: target for n in names if n not in self._coming}
        elif not host.num_waiting or target is host:
            self._retiring = None
            host.restart()
