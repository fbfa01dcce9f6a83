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
        self.is_idle_now = True
        self.is_starting = False

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
            is_starting=self.is_starting,
            known=[] if self.is_starting else sorted(self.on_disk),
            settled=sorted(self.kept if self.may_load else self.kept & self.settled),
            computed={},
            resident_bytes=self.size,
            is_idle=self.is_idle_now,
        )
        return Frame({}, report.model_dump_json().encode())

    def observe(self, report: HostReport, threads: int) -> None:
        loads = self.loads
        super().observe(report, threads)
        self.loads = loads  # Those that the test sets.

    def restart(self) -> None:
        self.restarts += 1
        self.size = 0


def cluster(
    count: int, models: Collection[str], **settings: Any
) -> tuple[Homes, list[Host]]:
    hosts = [Host(models) for _ in range(count)]
    return Homes(hosts, Settings(model_memory_bytes=2**30, **settings)), hosts


def look(homes: Homes, times: int = 3) -> None:
    async def looks() -> None:
        for _ in range(times):
            await homes.look()

    asyncio.run(looks())


def test_models_are_spread_over_the_processes() -> None:
    homes, (a, b) = cluster(2, "pqrs")
    look(homes)
    assert len(a.kept) == len(b.kept) == 2
    assert a.kept | b.kept == set("pqrs")
    homes.check_ready()


def test_service_is_not_ready_before_every_model_is_loaded() -> None:
    homes, (a, _) = cluster(2, "pq")
    with pytest.raises(Unavailable, match="being loaded"):
        homes.check_ready()
    a.may_load = False
    look(homes)
    with pytest.raises(Unavailable, match="being loaded"):
        homes.check_ready()


def test_process_that_starts_neither_counts_nor_empties_the_table() -> None:
    homes, (a, b) = cluster(2, "pq")
    a.is_starting = b.is_starting = True
    look(homes)
    with pytest.raises(Unavailable, match="being loaded"):
        homes.check_ready()
    a.is_starting = False
    look(homes)
    assert a.kept == {"p", "q"}
    a.runs = False
    look(homes)
    a.runs = True
    look(homes)
    assert a.kept == {"p", "q"}


def test_models_of_a_process_that_ended_go_to_another() -> None:
    homes, (a, b) = cluster(2, "pq")
    look(homes)
    (name,) = a.kept
    a.runs = False
    assert homes.choose(name) is b  # At once, and for good:
    look(homes)
    assert b.kept == {"p", "q"}
    homes.check_ready()
    a.runs, a.kept = True, set()
    look(homes)
    assert len(a.kept) == len(b.kept) == 1


def test_home_stays_while_no_process_runs() -> None:
    homes, (a, b) = cluster(2, "pq")
    look(homes)
    (name,) = a.kept
    a.runs = b.runs = False
    look(homes)
    assert homes.choose(name) is a


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


def test_process_that_answers_another_api_process_is_not_restarted() -> None:
    homes, (a, _) = cluster(2, "pq")
    look(homes)
    a.size, a.is_idle_now = 2**31, False
    look(homes)
    assert a.restarts == 0
    a.is_idle_now = True
    look(homes)
    assert a.restarts == 1


def test_further_api_processes_have_time_to_follow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    monkeypatch.setattr("service.api.models.homes.time.monotonic", lambda: now[0])
    homes, (a, _) = cluster(2, "pq", workers=2, poll_seconds=5.0)
    look(homes)
    a.size = 2**31
    look(homes)
    now[0] = 9.0
    look(homes)
    assert a.restarts == 0
    now[0] = 11.0
    look(homes)
    assert a.restarts == 1


def test_only_process_restarts_with_its_models_when_too_large() -> None:
    homes, (a,) = cluster(1, "pq")
    look(homes)
    a.size = 2**31
    look(homes)
    assert a.restarts == 1


def test_deleted_model_has_no_home() -> None:
    homes, (a, b) = cluster(2, "pq")
    look(homes)
    a.on_disk = b.on_disk = "p"
    look(homes)
    assert a.kept | b.kept == {"p"}


def test_names_that_no_process_knows_do_not_fill_the_table() -> None:
    homes, hosts = cluster(2, "p")
    look(homes)
    for place in range(100):
        assert homes.choose(f"unknown {place}") in hosts
    look(homes)
    assert hosts[0].kept | hosts[1].kept == {"p"}
