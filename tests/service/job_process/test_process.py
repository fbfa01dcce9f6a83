"""A worker's own process, in processes of their own."""

import subprocess
import sys


def test_process_that_starts_anew_is_another_run_of_its_command(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import os, sys\n"
        "from pathlib import Path\n"
        "from service.job_process.process import Process\n"
        "log, seen = Path(sys.argv[1]), os.environ.get('SEEN')\n"
        "if seen is None:\n"
        "    os.environ['SEEN'] = str(os.getpid())\n"
        "    process = Process()\n"
        "    process.write_to(log)\n"
        "    print('of the job')\n"
        "    process.start_anew()\n"
        "print(seen == str(os.getpid()))\n"
    )
    log = tmp_path / "jobs" / "log.txt"
    done = subprocess.run(
        [sys.executable, program, log], capture_output=True, text=True, check=True
    )
    assert done.stdout == "True\n"
    assert log.read_text() == "of the job\n"


def test_worker_computes_with_half_of_the_cores():
    program = (
        "import os; from unittest import mock;"
        "from service.job_process.process import leave_half_of_the_cores;\n"
        "with mock.patch('os.cpu_count', return_value=6): leave_half_of_the_cores()\n"
        "print(os.environ['OMP_NUM_THREADS'], os.environ['TF_NUM_INTRAOP_THREADS'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "1 3\n"
