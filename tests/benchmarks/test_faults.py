import json
import os
import subprocess
import sys
from pathlib import Path

from tests.benchmarks.programs import FOLDER


def test_no_fault_loses_what_was_acknowledged(tmp_path: Path) -> None:
    output = tmp_path / "faults.json"
    command = [sys.executable, FOLDER / "faults.py", "--smoke", "--output", output]
    found = subprocess.run(
        command,
        env=os.environ | {"PYTHONPATH": str(FOLDER.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert " faults, 0 with a loss." in found.stdout, found.stdout + found.stderr
    records = json.loads(output.read_text())["records"]
    during = {record["during"] for record in records}
    assert {"publish a version", "back up", "load"} <= during
    assert all(record["tried"] for record in records if record["fault"] != "all")
