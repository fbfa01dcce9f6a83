import signal
import subprocess
import sys

PROGRAM = """
import time
from service.sandbox.limits import allow_seconds

allow_seconds(time.process_time() + 0.1)
while True:
    pass
"""


def test_process_dies_when_it_has_used_its_processor_time():
    done = subprocess.run([sys.executable, "-c", PROGRAM], check=False)
    assert done.returncode == -signal.SIGXCPU
