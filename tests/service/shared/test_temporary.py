"""Temporary directories of processes that were killed."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from service.shared.temporary import temporary_directory

_KILLED = """
import os, signal
from service.shared.temporary import temporary_directory

with temporary_directory("sockets") as path:
    (path / "models-0").touch()
    print(path, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_directory_of_a_killed_process_is_removed_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "tfbbb-of-a-user").mkdir()
    with temporary_directory("sockets") as running:
        done = subprocess.run(
            [sys.executable, "-c", _KILLED],
            env=os.environ | {"TMPDIR": str(tmp_path)},
            capture_output=True,
            text=True,
        )
        left = Path(done.stdout.strip())
        assert (left / "models-0").exists()
        with temporary_directory("metrics"):
            assert not left.exists()
            assert running.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["tfbbb-of-a-user"]
