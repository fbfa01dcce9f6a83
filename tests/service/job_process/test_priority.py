"""The priority of a trainer, in a process of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import os
from service.job_process.priority import give_way
give_way()
print(os.nice(0))
try:
    print(open("/proc/self/autogroup").read())
except OSError:
    pass
"""


def output_of_a_trainer(*, own_session: bool) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        check=True,
        start_new_session=own_session,
    )
    return done.stdout.split()


def nice_of_session(words: list[str]) -> str | None:
    """The last of "/autogroup-3 nice 10".

    The file is empty in a control group of its own, and missing in other kernels.
    """
    return words[-1] if words else None


def own_autogroup() -> list[str]:
    try:
        return Path("/proc/self/autogroup").read_text().split()
    except OSError:
        return []


@pytest.mark.parametrize("own_session", [True, False])
def test_trainer_gives_way_with_its_own_session_alone(own_session: bool) -> None:
    process, *autogroup = output_of_a_trainer(own_session=own_session)
    assert int(process) >= 10
    before = nice_of_session(own_autogroup())
    if before is not None:
        expected = "10" if own_session else before
        assert nice_of_session(autogroup) == expected
