"""A PostgreSQL server of its own for a test session."""

import os
import secrets
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from tests.ports import free_port

# The server refuses to run as root.
_USER = "postgres" if os.geteuid() == 0 else None


class PostgreSQL:
    """A server that can be stopped and started again.

    Args:
        directory: Where its files are.
    """

    def __init__(self, directory):
        self._control = _program("pg_ctl")
        self._directory, self._data = directory, directory / "data"
        if _USER is not None:
            shutil.chown(directory, _USER)
        initdb = _program("initdb")
        _run(initdb, "-D", self._data, "--auth=trust", "--username=tfbbb", "--no-sync")
        self._port = free_port()
        self.url = f"postgresql://tfbbb@127.0.0.1:{self._port}"

    def start(self):
        options = f"-p {self._port} -k {self._directory} -c listen_addresses=127.0.0.1"
        # Tests kill processes, and not the machine: nothing needs to be on the disk.
        options += " -c max_connections=200 -c fsync=off"
        log = self._directory / "log"
        _run(
            *(self._control, "-D", self._data, "-l", log),
            *("-o", options, "--wait", "start"),
        )

    def stop(self):
        _run(self._control, "-D", self._data, "--wait", "--mode=immediate", "stop")


@contextmanager
def postgresql_server():
    """Runs a server on a free port until the block ends; yields the URL of its root.

    `url + "/postgres"` is the database that is there from the start. Where the machine
    has no PostgreSQL the test is skipped; where `CI` is set it fails.
    """
    with tempfile.TemporaryDirectory() as directory:
        server = PostgreSQL(Path(directory))
        server.start()
        try:
            yield server.url
        finally:
            server.stop()


def emptied_database(server):
    """Drops all tables of the first database; returns its URL.

    A new database takes thirty times as many files.
    """
    url = f"{server}/postgres"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("drop schema public cascade")
        connection.execute("create schema public")
    return url


def new_database(server):
    """Creates an empty database; returns its URL."""
    name = f"test_{secrets.token_hex(4)}"
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        connection.execute(f"create database {name}")
    return f"{server}/{name}"


def _program(name):
    installed = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    found = shutil.which(name) or (installed and str(installed[-1]))
    if found:
        return found
    reason = f"there is no PostgreSQL on this machine: no {name}"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


def _run(*command):
    subprocess.run(
        list(map(str, command)),
        check=True,
        user=_USER,
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
