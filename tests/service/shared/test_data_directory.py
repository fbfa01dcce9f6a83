"""One service at a time uses a data directory."""

import errno
import os
import signal
import subprocess
import sys

import pytest

from service.shared import data_directory
from service.shared.data_directory import DataDirectoryInUseError, lock_data_directory
from service.shared.settings import Settings

_HOLDER = """
import sys, time
from pathlib import Path
from service.shared.data_directory import lock_data_directory
from service.shared.settings import Settings
import subprocess

with lock_data_directory(Settings(data_dir=Path(sys.argv[1]))):
    # A child of a killed service must not keep the lock.
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    print(child.pid, flush=True)
    time.sleep(600)
"""


def test_directory_of_a_running_service_is_refused_until_it_dies(tmp_path):
    settings = Settings(data_dir=tmp_path / "data")
    command = [sys.executable, "-c", _HOLDER, str(settings.data_dir)]
    holder = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    child = int(holder.stdout.readline())
    try:
        for other in (settings, settings.model_copy(update={"store": "s3://a/b"})):
            with (
                pytest.raises(
                    DataDirectoryInUseError,
                    match=f"uses the data directory {settings.data_dir}, "
                    f"process {holder.pid} on .*--data-dir",
                ),
                lock_data_directory(other),
            ):
                pass
        holder.kill()
        holder.wait()
        with lock_data_directory(settings):
            pass
    finally:
        os.kill(child, signal.SIGKILL)
        holder.kill()
        holder.wait()
        holder.stdout.close()


def test_services_on_one_postgresql_and_disk_share_the_directory(tmp_path):
    shared = Settings(data_dir=tmp_path, database_url="postgresql://a@b/c")
    alone = Settings(data_dir=tmp_path)
    with (
        lock_data_directory(shared),
        lock_data_directory(shared),
        pytest.raises(DataDirectoryInUseError),
        lock_data_directory(alone),
    ):
        pass
    with (
        lock_data_directory(alone),
        pytest.raises(DataDirectoryInUseError),
        lock_data_directory(shared),
    ):
        pass


def test_file_system_without_locks_is_warned_of(tmp_path, monkeypatch, caplog):
    def flock(file, kind):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(data_directory.fcntl, "flock", flock)
    with lock_data_directory(Settings(data_dir=tmp_path)):
        pass
    assert f"let no other service use {tmp_path}" in caplog.text
