import os
import signal
from contextlib import contextmanager

import pytest

from service.parent.supervision import SupervisedProcess
from tests.waiting import wait_until

UNTIL_INPUT_ENDS = "cat > /dev/null"


@contextmanager
def supervised(program):
    process = SupervisedProcess("the child", ["sh", "-c", program], os.environ)
    process.start()
    try:
        yield process
    finally:
        process.stop(5)


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch):
    monkeypatch.setattr("service.parent.supervision._FIRST_PAUSE", 0.01)


def test_a_child_that_is_killed_is_started_anew(caplog):
    with supervised(UNTIL_INPUT_ENDS) as process:
        wait_until(lambda: process._process)
        first = process._process
        first.kill()
        wait_until(lambda: process._process is not first)
    assert "the child ended by signal 9; restarting" in caplog.text


def test_pauses_grow_while_a_child_keeps_ending(caplog, monkeypatch):
    monkeypatch.setattr("service.parent.supervision._LONGEST_PAUSE", 0.05)
    with supervised("exit 3"):
        wait_until(lambda: len(caplog.records) >= 5)
    pauses = [record.args[-1] for record in caplog.records if record.args]
    assert pauses[:5] == [0.01, 0.02, 0.04, 0.05, 0.05]
    assert "ended with code 3" in caplog.text


def test_a_child_that_does_not_end_is_killed(caplog, tmp_path):
    program = f"trap '' TERM; touch {tmp_path}/started; exec sleep 600"
    process = SupervisedProcess("the child", ["sh", "-c", program], os.environ)
    process.start()
    wait_until((tmp_path / "started").exists)
    process.stop(0.1)
    assert process._process is not None
    assert process._process.returncode == -signal.SIGKILL
    assert [record.getMessage() for record in caplog.records] == [
        "the child did not end in 0.1 s"
    ]
