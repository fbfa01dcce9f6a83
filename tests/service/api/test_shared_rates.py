"""The rates of keys over several services; time passes only where a test says."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from service.api.patience import Patience
from service.api.shared_rates import SharedRates
from service.shared.database import Database
from service.shared.errors import RateExceeded
from service.shared.work_rates import Payer, WorkRates

RATE = 100.0
KEY = Payer("key", RATE)


class Service:
    """A service that spends the credit of a key as fast as it may."""

    def __init__(self, directory: Path, database: Database, now: list[float]) -> None:
        self.rates = WorkRates(directory, clock=lambda: now[0])
        self.sharing = SharedRates(self.rates, database, Patience())

    def spend(self, work: float = 1.0) -> int:
        spent = 0
        while True:
            try:
                self.rates.charge(KEY, work)
            except RateExceeded:
                return spent
            spent += 1


@pytest.fixture
def now() -> list[float]:
    return [1000.0]


@pytest.fixture
def services(tmp_path: Path, database: Database, now: list[float]) -> list[Service]:
    return [Service(tmp_path / name, database, now) for name in ("first", "second")]


async def exchange(services: list[Service]) -> None:
    for service in services:
        await service.sharing.exchange(1.0)


def test_services_together_give_a_key_its_rate(
    services: list[Service], now: list[float]
) -> None:
    async def spend_for(seconds: int) -> int:
        total = 0
        for _ in range(seconds):
            total += sum(service.spend() for service in services)
            now[0] += 1.0
            await exchange(services)
        return total

    async def check() -> None:
        await exchange(services)
        first = await spend_for(60)
        # The credits of ten seconds of both, and what comes before the first exchange.
        assert first <= RATE * (60 + 2 * 10 + 1)
        # From then on exactly the rate, but for the second between two exchanges.
        assert await spend_for(300) == pytest.approx(300 * RATE, abs=2 * RATE)

    asyncio.run(check())


def test_key_gets_its_whole_rate_at_one_of_two_services(
    services: list[Service], now: list[float]
) -> None:
    async def check() -> None:
        await exchange(services)
        services[0].spend()
        total = 0
        for _ in range(20):
            now[0] += 1.0
            total += services[0].spend()
            await exchange(services)
        assert total == 20 * RATE

    asyncio.run(check())


@pytest.fixture
def lose(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[], None]]:
    def fail() -> AbstractContextManager[Session]:
        raise OperationalError("select 1", {}, Exception("refused"))

    with monkeypatch.context() as patch:
        yield lambda: patch.setattr(database, "writing", fail)


def test_without_database_each_service_gives_its_share(
    services: list[Service], now: list[float], lose: Callable[[], None]
) -> None:
    async def check() -> None:
        for _ in range(2):
            await exchange(services)
        lose()
        for service in services:
            service.spend()
        for service in services:
            total = 0
            for _ in range(20):
                now[0] += 1.0
                await service.sharing.exchange(1.0)
                total += service.spend()
            assert total == 20 * RATE / 2
            now[0] -= 20.0

    asyncio.run(check())


def test_service_that_is_first_seen_late_causes_no_debt(
    services: list[Service], now: list[float]
) -> None:
    async def check() -> None:
        first, second = services
        assert first.spend() == second.spend() == 10 * RATE
        now[0] += 10.0
        await exchange(services)
        await exchange(services)
        assert first.spend() == 10 * RATE

    asyncio.run(check())
