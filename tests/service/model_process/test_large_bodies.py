"""The processes that read large bodies."""

import subprocess
import sys

PROGRAM = """
import os
from service.model_process.large_bodies import LargeBodies
if __name__ == "__main__":
    bodies = LargeBodies()
    assert bodies.run(os.getpid) != os.getpid()
    bodies.close()
    bodies.close()
    os._exit(0)
"""


def test_a_process_that_ends_leaves_no_semaphores(tmp_path) -> None:
    """Python's tracker of them warns on the standard error, which it inherits."""
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, path], capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
