"""Which model process answers for which model."""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Sequence

from service.api.models.host import ModelHost
from service.shared.errors import ServiceError, Unavailable
from service.shared.model_messages import HostReport
from service.shared.settings import Settings

logger = logging.getLogger(__name__)

_SECONDS_UNTIL_SETTLED = 0.1
_SECONDS_TO_REPORT = 2.0
# The load that a model counts as although nobody asks it.
AT_REST = 0.05


class HomeTable(ABC):
    """The table from the name of a model to the processes that have it loaded.

    Subclasses keep the table up to date.
    """

    def __init__(self, hosts: Sequence[ModelHost], settings: Settings) -> None:
        self.hosts = tuple(hosts)
        self._settings = settings
        self._table: dict[str, list[ModelHost]] = {}

    @abstractmethod
    async def look(self) -> None:
        """Asks every process for its state, and changes the table."""

    @property
    def is_settled(self) -> bool:
        """Whether nothing is about to change in the table."""
        return True

    def choose(self, name: str) -> ModelHost:
        """Returns the process that should answer for a model.

        While no home of the model runs, another process answers.
        """
        return min(self.all(name), key=lambda host: host.num_waiting)

    def knows(self, name: str) -> bool:
        """Whether a model has a home."""
        return name in self._table

    def all(self, name: str) -> list[ModelHost]:
        """Returns every process that may be asked for a model; one at least."""
        homes = self._table.get(name, [])
        ready = [host for host in homes if host.is_ready]
        if ready or (homes and not any(host.is_ready for host in self.hosts)):
            return ready or homes
        return [self.least_loaded()]

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
            raise Unavailable("The models are being loaded.")

    async def tend(self) -> None:
        """Keeps the table up to date for ever."""
        while True:
            is_settled = False
            try:
                await self.look()
                self.check_ready()
                is_settled = self.is_settled
            except Unavailable:
                pass
            except Exception:
                logger.exception("could not share the models among the processes")
            seconds = self._settings.poll_seconds
            await asyncio.sleep(seconds if is_settled else _SECONDS_UNTIL_SETTLED)

    def least_loaded(self) -> ModelHost:
        """Returns the process to which a model without a home goes."""
        hosts = self._candidates()
        for kind in (
            [host for host in hosts if host.is_ready],
            [host for host in hosts if host.is_connected],
        ):
            if kind:
                return min(kind, key=self._load)
        return min(self.hosts, key=self._load)

    def _candidates(self) -> Sequence[ModelHost]:
        return self.hosts

    def _names(self, host: ModelHost) -> set[str]:
        """Returns the models that a process should have loaded."""
        return {name for name, homes in self._table.items() if host in homes}

    def _load(self, host: ModelHost) -> float:
        return sum(AT_REST + host.load(name) for name in self._names(host))

    async def _ask(
        self, host: ModelHost, names: Sequence[str] | None
    ) -> HostReport | None:
        """Asks a process for its state; None unless it has read the directory."""
        try:
            async with asyncio.timeout(_SECONDS_TO_REPORT):
                frame = await host.ask("keep", arguments={"names": names})
        except (ServiceError, TimeoutError):
            return None  # It does not run, or hangs, which the watchdog notices.
        report = HostReport.model_validate_json(frame.body)
        host.observe(report, self._settings.threads)
        return None if report.is_starting else report
