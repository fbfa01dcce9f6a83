"""The watchdog, with a thread in the place of the model process."""

import itertools
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from service.api.models import watchdog
from service.api.models.watchdog import Watchdog
from service.api.supervision import SupervisedProcess
from service.model_process.worker import listen
from service.shared.frames import Frame, receive, send

SECONDS = 0.01


class Process(SupervisedProcess):
    """A process that answers heartbeats once it may."""

    def __init__(self, path: Path) -> None:
        super().__init__("it", [], {})
        self.may_answer = threading.Event()
        self.was_killed = threading.Event()
        self.answers = 0
        self._listener = listen(path)
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def pid(self) -> int:
        return 1

    def kill(self, pid: int | None) -> None:
        self.was_killed.set()

    def _serve(self) -> None:
        connection: socket.socket = self._listener.accept()[0]
        with connection, connection.makefile("rb") as stream:
            while receive(stream) is not None:
                if self.answers:  # The first says that the import is over.
                    self.may_answer.wait()
                self.answers += 1
                send(connection, Frame({"id": 0, "is_importing": False}))


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Process]:
    process = Process(tmp_path / "socket")
    watching = Watchdog(process, tmp_path / "socket", SECONDS)
    watching.start()
    yield process
    watching.stop()
    process.may_answer.set()


def test_process_that_neither_answers_nor_computes_is_killed(
    monkeypatch: pytest.MonkeyPatch, process: Process
) -> None:
    monkeypatch.setattr(watchdog, "_seconds_computed", lambda pid: 0.0)
    assert process.was_killed.wait(60)


def test_process_that_computes_is_given_more_time(
    monkeypatch: pytest.MonkeyPatch, process: Process
) -> None:
    seconds = itertools.count()

    def compute(pid: int | None) -> float:
        # Ten waits, with two looks at the clock of the process each.
        if (now := next(seconds)) == 12:
            process.may_answer.set()
        return float(now)

    monkeypatch.setattr(watchdog, "_seconds_computed", compute)
    monkeypatch.setattr(watchdog, "_PATIENCE", 10**6)
    while process.answers < 2:
        assert not process.was_killed.wait(SECONDS)


def test_process_that_computes_for_ever_is_killed(
    monkeypatch: pytest.MonkeyPatch, process: Process
) -> None:
    seconds = itertools.count()
    monkeypatch.setattr(watchdog, "_seconds_computed", lambda pid: float(next(seconds)))
    assert process.was_killed.wait(60)
