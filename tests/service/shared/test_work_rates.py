"""The credit of keys; time passes only where a test says."""

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from service.shared.errors import RateExceeded
from service.shared.work_rates import Payer, WorkRates

RATE = 100.0
MOST = 1000.0  # The credit of ten seconds.
PAUSE = 1e-4
KEY = Payer("key", RATE)


class Rates(WorkRates):
    """Rates by a stopped clock."""

    def __init__(self, directory: Path, per_second: float | None = RATE) -> None:
        self.now = 5.0
        self.pause = 0.0
        self.per_second = per_second
        super().__init__(directory, self._time)

    def _time(self) -> float:
        time.sleep(self.pause)  # Lets others come between a check and its charge.
        return self.now

    def is_charged(self, key_id: str | None, work: float) -> bool:
        try:
            self.charge(Payer(key_id, self.per_second), work)
        except RateExceeded:
            return False
        return True


@pytest.fixture
def rates(tmp_path: Path) -> Rates:
    return Rates(tmp_path)


def test_credit_grows_by_the_rate(rates: Rates) -> None:
    rates.charge(KEY, MOST)
    assert not rates.is_charged("key", 1)
    rates.now += 2.5
    assert rates.is_charged("key", 2.5 * RATE)
    assert not rates.is_charged("key", 1)


def test_credit_is_ten_seconds_of_work_at_most(rates: Rates) -> None:
    rates.charge(KEY, 1)
    rates.now += 1e6
    rates.charge(KEY, MOST)
    assert not rates.is_charged("key", 1)


def test_refusal_says_when_the_credit_suffices(rates: Rates) -> None:
    rates.charge(KEY, MOST)
    with pytest.raises(RateExceeded, match="Received: 250 units") as caught:
        rates.charge(KEY, 250)
    assert caught.value.headers["Retry-After"] == "3"
    rates.now += 2.4
    assert not rates.is_charged("key", 250)
    rates.now += 0.1
    assert rates.is_charged("key", 250)


def test_request_above_the_most_credit_leaves_a_debt(rates: Rates) -> None:
    assert rates.is_charged("key", 3 * MOST)
    rates.now += 20
    assert not rates.is_charged("key", 1)
    rates.now += 0.01
    assert rates.is_charged("key", 1)


def test_work_that_was_not_done_is_given_back(rates: Rates) -> None:
    rates.charge(KEY, MOST)
    rates.correct(KEY, -MOST)
    rates.correct(KEY, -MOST)
    assert rates.is_charged("key", MOST)
    assert not rates.is_charged("key", 1)


def test_threads_and_processes_share_the_credit_exactly(tmp_path: Path) -> None:
    program = f"""
from pathlib import Path
from tests.service.shared.test_work_rates import Rates
rates = Rates(Path({str(tmp_path)!r}))
rates.pause = {PAUSE}
print(sum(rates.is_charged("key", 7) for _ in range(200)))
"""
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        rates = Rates(tmp_path)
        rates.pause = PAUSE
        with ThreadPoolExecutor(8) as executor:
            charged = executor.map(lambda _: rates.is_charged("key", 7), range(200))
            ours = sum(charged)
        assert other.stdout is not None
        theirs = int(other.stdout.read())
    assert ours + theirs == int(MOST / 7)
