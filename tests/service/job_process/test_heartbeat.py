import threading

import pytest

from service.job_process import heartbeat as heartbeat_module
from service.job_process.attempt import describe_failure
from service.job_process.heartbeat import Heartbeat
from service.shared.queue import Lease, Queue
from tests.service.queued import leased, registered, submitted


def test_heartbeats_go_on_after_one_that_failed(
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
    monkeypatch.setattr(heartbeat_module, "_SECONDS", 0.01)
    monkeypatch.setattr(queue, "is_to_stop", fail_once)
    with Heartbeat(queue, lease, threading.Event()):
        assert enough.wait(60)


def test_a_failure_is_described_without_what_databases_refuse() -> None:
    assert "\0" not in describe_failure(ValueError("no such category: a\0b"))
