"""The table of homes, with model processes that only report."""

import asyncio
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import pytest

from service.api.models.homes import Homes
from service.api.models.host import ModelHost
from service.shared.errors import Unavailable
from service.shared.frames import Frame
from service.shared.model_messages import HostReport
from service.shared.settings import Settings


class Host(ModelHost):
    """A process that loads the models of a `keep` request at once."""

    def __init__(self, on_disk: Collection[str]) -> None:
        super().__init__(Path("nothing"))
        self.runs = True
        self.on_disk = on_disk
        self.kept: set[str] = set()
        self.restarts = 0
        self.may_load = True
        self.size = 0

    @property
    def is_connected(self) -> bool:
        return self.runs

    async def ask(
        self,
        operation: str,
        body: bytes | bytearray = b"",
        arguments: Mapping[str, Any] | None = None,
    ) -> Frame:
        if not self.runs:
            raise Unavailable("not running")
        assert arguments is not None
        self.kept = set(arguments["names"])
        report = HostReport(
            is_starting=False,
            known=sorted(self.on_disk),
            settled=sorted(self.kept if self.may_load else self.kept & self.settled),
            computed={},
            resident_bytes=self.size,
            is_idle=True,
        )
        return Frame({}, report.model_dump_json().encode())

    def observe(self, report: HostReport, threads: int) -> None:
        loads = self.loads
        super().observe(report, threads)
        self.loads = loads  # Those that the test sets.

    def restart(self) -> None:
        self.restarts += 1
        self.size = 0


def cluster(count: int, models: Collection[str]) -> tuple[Homes, list[Host]]:
    hosts = [Host(models) for _ in range(count)]
    return Homes(hosts, Settings(model_memory_bytes=2**30)), hosts


def look(homes: Homes, times: int = 3) -> None:
    async def looks() -> None:
        for _ in range(times):
            await homes.look()

    asyncio.run(looks())


def test_service_is_not_ready_before_every_model_is_loaded() -> None:
    homes, (a, _) = cluster(2, "pq")
    with pytest.raises(Unavailable, match="being loaded"):
        homes.check_ready()
    a.may_load = False
    look(homes)
    with pytest.raises(Unavailable, match="being loaded"):
        homes.check_ready()


def test_old_home_answers_until_the_new_one_has_loaded() -> None:
    homes, (a, b) = cluster(2, "pqrs")
    look(homes)
    first, second = sorted(a.kept)
    b.may_load = False
    a.loads = {first: 0.5, second: 0.5}
    look(homes)
    (moving,) = b.kept & {first, second}
    assert homes.choose(moving) is a
    homes.check_ready()
    b.may_load = True
    look(homes, times=2)
    assert homes.choose(moving) is b
    assert moving not in a.kept


def test_busy_model_gets_a_second_home_until_it_is_idle() -> None:
    homes, (a, b) = cluster(2, "p")
    look(homes)
    home, other = (a, b) if a.kept else (b, a)
    home.loads = {"p": 0.95}
    look(homes)
    assert a.kept == b.kept == {"p"}
    home.num_waiting = 1
    assert homes.choose("p") is other
    home.loads = {"p": 0.1}
    look(homes)
    assert len(a.kept) + len(b.kept) == 1


def test_process_with_too_much_memory_restarts_without_its_models() -> None:
    homes, (a, b) = cluster(2, "pq")
    look(homes)
    a.size, a.num_waiting = 2**31, 1
    look(homes)
    assert b.kept == {"p", "q"}
    assert a.restarts == 0  # A request still waits for it.
    a.num_waiting = 0
    look(homes)
    assert a.restarts == 1
