import signal
import subprocess
import sys

PROGRAM = """
import time
from service.sandbox.limits import allow_seconds

allow_seconds(time.process_time() + {seconds})
end = time.process_time() + 1.3
while time.process_time() < end:
    pass
"""


def test_process_dies_when_it_has_used_its_processor_time():
    for seconds, code in ((0.1, -signal.SIGXCPU), (60, 0)):
        program = PROGRAM.format(seconds=seconds)
        done = subprocess.run([sys.executable, "-c", program], check=False)
        assert done.returncode == code
