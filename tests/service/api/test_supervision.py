import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from service.api.supervision import SupervisedProcess

UNTIL_INPUT_ENDS = "cat > /dev/null"


@contextmanager
def supervised(program: str) -> Iterator[SupervisedProcess]:
    process = SupervisedProcess("the child", ["sh", "-c", program], os.environ)
    process.start()
    try:
        yield process
    finally:
        process.stop(5)


def wait_for(condition: Callable[[], object]) -> None:
    while not condition():
        time.sleep(0.01)


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.api.supervision._FIRST_PAUSE", 0.01)


def test_a_child_that_is_killed_is_started_anew(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with supervised(UNTIL_INPUT_ENDS) as process:
        wait_for(lambda: process.pid)
        first = process.pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        wait_for(lambda: process.pid not in (None, first))
    assert "the child ended by signal 9; restarting" in caplog.text


def test_pauses_grow_while_a_child_keeps_ending(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.api.supervision._LONGEST_PAUSE", 0.05)
    with supervised("exit 3"):
        wait_for(lambda: len(caplog.records) >= 5)
    pauses = [record.args[-1] for record in caplog.records if record.args]
    assert pauses[:5] == [0.01, 0.02, 0.04, 0.05, 0.05]
    assert "ended with code 3" in caplog.text


def test_a_program_that_is_not_there_is_tried_again(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    program = tmp_path / "program"
    process = SupervisedProcess("the child", [str(program)], os.environ)
    process.start()
    wait_for(lambda: caplog.records)
    program.write_text(f"#!/bin/sh\n{UNTIL_INPUT_ENDS}\n")
    program.chmod(0o755)
    wait_for(lambda: process.pid)
    process.stop(5)
    assert "the child could not be started" in caplog.text


def test_child_that_ignores_sigterm_ends_when_its_input_closes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with supervised(f"trap '' TERM; {UNTIL_INPUT_ENDS}") as process:
        wait_for(lambda: process.pid)
    assert process.pid is None
    assert not caplog.records


def test_a_child_that_does_not_end_is_killed(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    program = f"trap '' TERM; touch {tmp_path}/started; exec sleep 600"
    process = SupervisedProcess("the child", ["sh", "-c", program], os.environ)
    process.start()
    wait_for((tmp_path / "started").exists)
    process.stop(0.1)
    assert process.pid is None
    assert [record.getMessage() for record in caplog.records] == [
        "the child did not end in 0.1 s"
    ]


def test_the_child_learns_that_its_parent_was_killed() -> None:
    program = f"""
import os, time
from service.api.supervision import SupervisedProcess
child = SupervisedProcess("it", ["sh", "-c", {UNTIL_INPUT_ENDS!r}], os.environ)
child.start()
while child.pid is None:
    time.sleep(0.01)
print(child.pid, flush=True)
time.sleep(600)
"""
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
        child.wait(timeout=60)
    assert not child.is_running()
