import threading

import pytest

from service.job_process import heartbeat as pulse_module
from service.job_process.attempt import reason_of
from service.job_process.heartbeat import Pulse
from service.shared.queue import Lease, Queue
from tests.service.queued import leased, registered, submitted


def test_a_pulse_goes_on_after_a_beat_that_failed(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    beats, enough = [], threading.Event()

    def fail_once(lease: Lease) -> bool:
        beats.append(lease)
        if len(beats) == 1:
            raise RuntimeError("nobody has thought of this")
        enough.set()
        return False

    submitted(queue)
    lease = leased(queue, registered(queue))
    monkeypatch.setattr(pulse_module, "_SECONDS", 0.01)
    monkeypatch.setattr(queue, "is_to_stop", fail_once)
    with Pulse(queue, lease, threading.Event()):
        assert enough.wait(60)


def test_a_reason_holds_nothing_that_a_database_refuses() -> None:
    assert "\0" not in reason_of(ValueError("no such category: a\0b"))
