"""The door of the API, with a clock that a test turns, and over HTTP."""

import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from prometheus_client import CollectorRegistry

from service.api.http.load_shedding import Door
from service.shared.settings import Settings
from tests.service.serving import serving

PREDICT = "/v1/models/any:predict"


class SlowLoop:
    """An event loop in which each answer takes its time, and each turn is late."""

    def __init__(self, seconds: float) -> None:
        self.door = Door(CollectorRegistry())
        self.now = 0.0
        self.seconds = seconds

    def arrive(self, number: int) -> int:
        """Lets requests come at once; returns how many are accepted."""
        before = self.door.num_accepted
        for _ in range(number):
            if self.door.is_open():
                self.door.num_accepted += 1
        return self.door.num_accepted - before

    def answer(self, number: int) -> None:
        """Answers accepted requests in one late turn."""
        for _ in range(number):
            self.door.leave()
        self.now += number * self.seconds
        self.door.observe(self.now, lag=number * self.seconds)

    def overload(self, turns: int) -> None:
        """Lets more requests come in each turn than are answered."""
        for _ in range(turns):
            self.arrive(1000)
            self.answer(10)


@pytest.mark.parametrize("seconds", [0.0008, 0.01])
def test_accepted_predictions_are_answered_in_time_at_any_load(seconds: float) -> None:
    loop = SlowLoop(seconds)
    # The pace is learned from the predictions that were accepted before it was known.
    loop.arrive(10_000)
    while loop.door.num_accepted > 20:
        loop.answer(10)
    loop.overload(turns=100)
    for _ in range(100):
        loop.overload(turns=1)
        loop.arrive(1000)
        waits = loop.door.num_accepted * seconds
        # Nor is more refused than needed.
        assert waits == pytest.approx(max(0.2, 16 * seconds), rel=0.06)


def test_burst_of_one_turn_is_not_accepted_wholly() -> None:
    # No turn of the event loop has passed in which a lag could be seen.
    loop = SlowLoop(0.0003)
    assert loop.arrive(10_000) == pytest.approx(0.2 / 0.0003, abs=1)


def test_door_opens_again_when_the_answers_come_faster() -> None:
    loop = SlowLoop(0.01)
    loop.overload(turns=300)
    loop.answer(loop.door.num_accepted)
    assert loop.arrive(1000) < 40
    loop.seconds = 0.001
    loop.overload(turns=300)
    assert 150 < loop.door.num_accepted < 250


@pytest.fixture
def closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[httpx.Client]:
    """A service without models, whose door is closed."""
    settings = Settings(models=tmp_path, start_models=False, job_slots=0)
    with serving(settings) as client:
        monkeypatch.setattr(Door, "is_open", lambda self: False)
        yield client


def test_closed_door_refuses_predictions_and_nothing_else(closed: httpx.Client) -> None:
    for place in range(3):
        response = closed.post(
            PREDICT, json={"instances": [[1]]}, headers={"X-Request-Id": f"id-{place}"}
        )
        assert response.status_code == 503
        assert "overloaded" in response.json()["error"]
        assert response.headers["Retry-After"] == "1"
        assert response.headers["X-Request-Id"] == f"id-{place}"
    # Not by the protocol, as the connection ends.
    last = closed.post(PREDICT, json={}, headers={"Connection": "close"})
    assert last.status_code == 503
    assert "tfbbb_refused_predictions_total 4.0" in closed.get("/metrics").text
    assert closed.get("/health/live").status_code == 200


def test_accepted_predictions_leave_whatever_becomes_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    doors: list[Door] = []
    count_one = Door.enter

    def enter(door: Door) -> None:
        doors.append(door)
        count_one(door)

    monkeypatch.setattr(Door, "enter", enter)
    settings = Settings(models=tmp_path, start_models=False, job_slots=0)
    with serving(settings) as client:
        assert client.post(PREDICT, json={}).status_code == 503
        assert client.post(PREDICT, json={}, headers={"Authorization": ""}).is_error
        url = client.base_url
        assert url.port is not None
        # Their URLs end as those of predictions.
        for target in (b"http://[:predict", b"/#:predict"):
            with socket.create_connection((url.host, url.port)) as connection:
                connection.sendall(b"POST %b HTTP/1.1\r\nHost: x\r\n\r\n" % target)
                assert connection.recv(1000).startswith(b"HTTP/1.1 4")
    assert len(doors) >= 3
    assert doors[0].num_accepted == 0
