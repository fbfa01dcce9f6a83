"""The priority of a trainer, in a process of its own."""

import subprocess
import sys

PROGRAM = """
import os
from service.job_process.priority import give_way
give_way()
print(os.nice(0))
"""


def test_trainer_gives_way_to_other_processes() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) >= 10
