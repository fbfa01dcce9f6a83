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
            "models = directory / 'models'",
            "print(json.dumps(streaming.measure(directory / 'table.csv', models)))",
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
    # TensorFlow alone takes a third of it, and the table as an array of its texts and
    # numbers would take more than the rest.
    assert measured["peak_mebibytes"]["trainer"] < 2048
    # The target's noise has a standard deviation of 1.
    assert measured["metrics"]["rmse"] < 1.1
