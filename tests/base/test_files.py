import os
import stat
import subprocess
import sys
import time

import pytest

from tfbbb.base import files
from tfbbb.base.files import atomic_directory


def names(directory):
    return sorted(path.name for path in directory.iterdir())


def write(directory):
    (directory / "variables").mkdir()
    (directory / "variables" / "data").write_text("weights")
    (directory / "saved_model.pb").write_text("graph")


def test_directory_appears_whole_at_the_end(tmp_path):
    path = tmp_path / "model" / "1"
    with atomic_directory(path) as staging:
        write(staging)
        assert not path.exists()
        assert staging.parent == path.parent
    assert (path / "variables" / "data").read_text() == "weights"
    assert (path / "saved_model.pb").read_text() == "graph"
    assert names(tmp_path / "model") == ["1"]


def test_everything_is_flushed_before_it_appears(tmp_path, monkeypatch):
    path, flushed = tmp_path / "1", []
    flush = files.flush

    def spy(flushed_path):
        flush(flushed_path)
        flushed.append((flushed_path.name, path.exists()))

    monkeypatch.setattr(files, "flush", spy)
    with atomic_directory(path) as staging:
        write(staging)
    *inside, parent = flushed
    assert inside[-1] == (staging.name, False)
    assert sorted(inside[:-1]) == [
        ("data", False),
        ("saved_model.pb", False),
        ("variables", False),
    ]
    assert parent == (tmp_path.name, True)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_nothing_is_left_where_the_body_raises(tmp_path, error):
    def fail():
        with atomic_directory(tmp_path / "models" / "name" / "1") as staging:
            write(staging)
            raise error

    with pytest.raises(error):
        fail()
    assert names(tmp_path) == []


def test_what_killed_processes_left_is_removed_after_a_day(tmp_path):
    for name, age in {
        ".staging-1-0123abcd": 25 * 3600.0,
        ".staging-2-89abcdef": 3600.0,
        ".staging-of-a-user": 25 * 3600.0,
    }.items():
        (tmp_path / name).mkdir()
        write(tmp_path / name)
        os.utime(tmp_path / name, (time.time() - age,) * 2)
    with atomic_directory(tmp_path / "3") as staging:
        write(staging)
    assert names(tmp_path) == [".staging-2-89abcdef", ".staging-of-a-user", "3"]


def test_folders_that_hold_something_else_are_left(tmp_path):
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "other").touch()
    with (
        pytest.raises(ValueError, match="body"),
        atomic_directory(tmp_path / "models" / "name" / "1"),
    ):
        raise ValueError("body")
    assert names(tmp_path / "models") == ["other"]


@pytest.mark.parametrize("kind", ["directory", "file", "empty directory"])
def test_what_is_there_is_never_overwritten(tmp_path, kind):
    path = tmp_path / "1"
    if kind == "file":
        path.write_text("precious")
    else:
        path.mkdir()
    if kind == "directory":
        (path / "file").write_text("precious")
    with (
        pytest.raises(FileExistsError, match=rf"never overwritten.*{path}"),
        atomic_directory(path),
    ):
        pytest.fail("The body does not run.")
    assert names(tmp_path) == ["1"]
    kept = {"directory": path / "file", "file": path}.get(kind)
    assert kept is None or kept.read_text() == "precious"


def test_what_appears_meanwhile_is_not_overwritten(tmp_path):
    path = tmp_path / "1"

    def race():
        with atomic_directory(path) as staging:
            write(staging)
            path.mkdir()
            (path / "file").write_text("precious")

    with pytest.raises(FileExistsError, match="never overwritten"):
        race()
    assert names(tmp_path) == ["1"]
    assert (path / "file").read_text() == "precious"


def test_directory_is_as_readable_as_others(tmp_path):
    with atomic_directory(tmp_path / "1") as staging:
        write(staging)
    (tmp_path / "ordinary").mkdir()
    modes = [
        stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("1", "ordinary")
    ]
    assert modes[0] == modes[1]


def test_killed_process_leaves_the_old_or_the_new_version(tmp_path):
    # Whatever touches the disk is a point: opening, writing, flushing, renaming. A
    # child for each point writes version 2 and kills itself there.
    program = """
import os, signal, sys
from pathlib import Path
from tfbbb.base import files
from tfbbb.base.files import atomic_directory
from tfbbb.export.versions import newest_version, next_version

CONTENTS = {"saved_model.pb": "graph" * 9999, "variables/data": "weights" * 9999}

def write(path, reach):
    with atomic_directory(path) as staging:
        for name, text in CONTENTS.items():
            (staging / name).parent.mkdir(exist_ok=True)
            with (staging / name).open("w") as file:
                file.write(text[:20000])
                file.flush()
                reach()
                file.write(text[20000:])

def child(path, point):
    reached = 0
    def reach():
        nonlocal reached
        reached += 1
        if reached == point:
            os.kill(os.getpid(), signal.SIGKILL)
    flush = os.fsync
    def fsync(descriptor):
        reach()
        flush(descriptor)
        reach()
    os.fsync = fsync
    watched = ("open", "os.mkdir", "os.rename", "os.listdir", "os.scandir")
    sys.addaudithook(lambda event, args: reach() if event in watched else None)
    write(path, reach)
    os._exit(0)

def whole(path):
    found = {str(f.relative_to(path)): f.read_text()
             for f in path.rglob("*") if f.is_file()}
    return found == CONTENTS

root = Path(sys.argv[1])
killed = appeared = 0
for point in range(1, 1000):
    name = root / str(point)
    write(name / "1", lambda: None)
    process = os.fork()
    if process == 0:
        child(name / "2", point)
    _, status = os.waitpid(process, 0)
    assert whole(name / "1")
    newest = newest_version(name)
    assert whole(newest), point
    assert newest.name == ("2" if (name / "2").exists() else "1")
    if not os.WIFSIGNALED(status):
        break
    assert os.WTERMSIG(status) == signal.SIGKILL
    killed += 1
    appeared += newest.name == "2"
    # The next one is written as if nothing had happened.
    write(next_version(name), lambda: None)
    assert whole(newest_version(name))
assert os.waitstatus_to_exitcode(status) == 0 and newest.name == "2"
print(killed, appeared)
"""
    finished = subprocess.run(
        [sys.executable, "-c", program, tmp_path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    killed, appeared = map(int, finished.stdout.split())
    # Of these points some lie before the renaming, and some behind it.
    assert killed > 15
    assert 0 < appeared < killed
