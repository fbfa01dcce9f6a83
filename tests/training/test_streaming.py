import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_a_million_rows_are_trained_on_in_bounded_memory(tmp_path):
    program = "\n".join(
        [
            "import json, pathlib, streaming",
            f"directory = pathlib.Path({str(tmp_path)!r})",
            "streaming.write_csv(directory / 'table.csv', 10**6)",
            "print(json.dumps(streaming.in_a_process(directory)))",
        ]
    )
    run = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT / "benchmarks",
        env={"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        check=True,
    )
    measured = json.loads(run.stdout.splitlines()[-1])
    # The rows do not fit into the memory that shuffles them.
    assert (tmp_path / "scratch" / "rows").stat().st_size > 2**26
    assert measured["peak_mebibytes"] < 2048
    # The target's noise has a standard deviation of 1.
    assert measured["metrics"]["rmse"] < 1.1
