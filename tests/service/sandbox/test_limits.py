import signal
import subprocess
import sys

PROGRAM = """
import contextlib, sys, time
from service.sandbox.limits import ProcessorTime

limited = ProcessorTime(0.1)
with limited.uncounted() if sys.argv[1] == "uncounted" else contextlib.nullcontext():
    end = time.process_time() + 2.2
    while time.process_time() < end:
        pass
"""


def test_process_dies_after_its_time_but_for_what_does_not_count() -> None:
    for how, code in (("counted", -signal.SIGXCPU), ("uncounted", 0)):
        done = subprocess.run([sys.executable, "-c", PROGRAM, how], check=False)
        assert done.returncode == code
