import os
import re
import socket
import sys
from pathlib import Path

import pytest

from service.shared.data_directory import lock_data_directory
from service.shared.settings import Settings
from tests.cli.commands import sentence
from tests.ports import free_port
from tfbbb.cli.serve import _database_options


@pytest.fixture
def served(monkeypatch):
    """The settings and the address that `tfbbb serve` would serve with."""
    seen = {}

    def run(settings, host, port):
        seen.update(settings, address=(host, port))

    monkeypatch.setattr("service.parent.processes.run", run)
    return seen


def key_in(output):
    """The key of the URL that is printed."""
    return re.search(r"http://127\.0\.0\.1:\d+/\?key=(\S+)", output)[1]


def test_the_default_serves_saved_models_on_the_loopback_address(
    tfbbb, served, tmp_path
):
    assert tfbbb("serve", "--port", free_port()).exit_code == 0
    assert (tmp_path / "saved_models").is_dir()
    assert served.pop("address")[0] == "127.0.0.1"
    assert served == dict(Settings())


def test_windows_is_refused_in_one_sentence(tfbbb, monkeypatch):
    for name in list(sys.modules):
        if name.partition(".")[0] == "service":
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "platform", "win32")
    result = tfbbb("serve")
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: The service runs on Linux")
    assert result.stderr.endswith("Received: sys.platform='win32'\n")


def test_options_set_the_address_and_the_settings(tfbbb, served, tmp_path, monkeypatch):
    monkeypatch.setenv("TFBBB_THREADS", "3")
    port = free_port()
    options = ("--port", port, "--models", tmp_path, "--data-dir", tmp_path / "data")
    database = f"sqlite:///{tmp_path}/here.sqlite3"
    options += ("--database-url", database, "--workers", 2)
    assert tfbbb("serve", *options).exit_code == 0
    assert served["address"] == ("127.0.0.1", port)
    assert (served["models"], served["threads"]) == (tmp_path, 3)
    assert served["workers"] == 2
    assert (served["data_dir"], served["database_url"]) == (tmp_path / "data", database)
    assert (tmp_path / "here.sqlite3").exists()


def test_a_named_models_directory_is_created(tfbbb, run, served, tmp_path):
    result = run("serve", "--port", 0, "--models", "no/such")
    assert result.stdout.startswith("created the models directory no/such\n")
    assert (tmp_path / "no" / "such").is_dir()
    assert served["models"] == Path("no/such")
    again = tfbbb("serve", "--port", 0, "--models", "no/such")
    assert "created" not in again.stdout


@pytest.mark.parametrize(
    ("environment", "options", "message"),
    [
        ({"THREADS": "none"}, [], "TFBBB_THREADS"),
        ({"STORE": "az://c/tests"}, [], "TFBBB_STORE"),
        ({"ADMIN_KEY": "admin.changeme"}, ["--port", 0], "at least 32 random letters"),
        ({}, ["--models", "file"], "file is a file; name the models directory"),
        ({"JOB_SLOTS": "0"}, ["--models", "a/b"], "There is no directory a/b; "),
        (
            {"STORE": "s3://bucket/tests"},
            ["--models", "here"],
            "give --models or TFBBB_STORE, not both. Received: ",
        ),
        (
            {},
            ["--models", "file/models"],
            "Cannot create the models directory file/models: Not a directory; name a "
            "writable directory with --models",
        ),
        (
            {},
            ["--models", "/proc/models"],
            "Cannot create the models directory /proc/models: ",
        ),
    ],
)
def test_a_service_that_cannot_run_is_refused_in_one_sentence(
    tfbbb, served, tmp_path, monkeypatch, environment, options, message
):
    (tmp_path / "file").touch()
    for name, value in environment.items():
        monkeypatch.setenv(f"TFBBB_{name}", value)
    result = tfbbb("serve", *options)
    assert message in sentence(result)
    assert "changeme" not in result.stderr
    assert served == {}


@pytest.mark.skipif(sys.platform != "linux", reason="needs what root can't write to")
def test_training_requires_a_writable_models_directory(tfbbb, served, monkeypatch):
    refused = tfbbb("serve", "--port", 0, "--models", "/sys")
    assert sentence(refused).startswith("Error: Jobs cannot write models to /sys: ")
    assert served == {}
    monkeypatch.setenv("TFBBB_JOB_SLOTS", "0")
    assert tfbbb("serve", "--port", 0, "--models", "/sys").exit_code == 0
    assert served["models"] == Path("/sys")


def test_help_names_every_setting_with_its_default(tfbbb):
    shown = tfbbb("serve", "--help").stdout
    lines = [line.strip() for line in shown.splitlines()]
    for name in Settings.model_fields:
        assert f"TFBBB_{name.upper()}" in shown
    for line in (
        "TFBBB_INSPECTION_MEMORY_BYTES 2 GiB     most memory to read a table",
        "TFBBB_STORE                   not set   s3://BUCKET/PREFIX",
        "TFBBB_MAX_BODY_BYTES          32 MiB    largest body of a :predict request",
        "TFBBB_LEASE_SECONDS           30 s      silence after which a lease expires",
    ):
        assert line in lines


@pytest.fixture
def models(tmp_path):
    (tmp_path / "saved_models").mkdir()


@pytest.mark.usefixtures("models", "served")
def test_only_the_first_start_prints_a_key_stored_as_hash(tfbbb, run, tmp_path):
    key = key_in(tfbbb("serve", "--port", 0).stdout)
    secret = key.partition(".")[2].encode()
    for path in (tmp_path / ".tfbbb").rglob("*"):
        assert secret not in path.read_bytes()
    again = run("serve", "--port", 0)
    assert "?key=" not in again.stdout
    assert (
        "requires a key; create one with `tfbbb keys create NAME --scope train`"
        in again.stdout
    )


@pytest.mark.usefixtures("models", "served")
def test_logs_in_json_do_not_have_the_first_key(tfbbb, tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("TFBBB_LOG_FORMAT", "json")
    said = tfbbb("serve", "--port", 0)
    file = tmp_path / ".tfbbb" / "first-key.txt"
    key = key_in(file.read_text())
    assert file.stat().st_mode & 0o777 == 0o600
    for output in (said.stdout, said.stderr, caplog.text):
        assert key.partition(".")[2] not in output


@pytest.mark.usefixtures("models", "served")
def test_a_taken_port_is_refused_before_a_key_is_created(tfbbb):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        result = tfbbb("serve", "--port", port)
        assert result.exit_code == 1
        message = f"Error: Cannot listen on 127.0.0.1, port {port}: Address already in"
        assert result.stderr.startswith(message)
    assert key_in(tfbbb("serve", "--port", 0).stdout)


@pytest.mark.usefixtures("models")
def test_other_machines_need_an_admin_key(tfbbb, run, served, monkeypatch):
    refused = tfbbb("serve", "--host", "0.0.0.0", "--port", 0)
    assert refused.exit_code == 1
    assert refused.stderr.startswith("Error: Other machines can reach 0.0.0.0, but")
    for way in ("TFBBB_ADMIN_KEY", "tfbbb keys create", "--insecure"):
        assert way in refused.stderr
    assert served == {}
    assert tfbbb("keys", "create", "me", "--scope", "predict").exit_code == 0
    assert tfbbb("serve", "--host", "0.0.0.0", "--port", 0).exit_code == 1
    assert tfbbb("keys", "create", "you", "--scope", "admin").exit_code == 0
    assert tfbbb("serve", "--host", "0.0.0.0", "--port", 0).exit_code == 0
    monkeypatch.setenv("TFBBB_ADMIN_KEY", "ci.0123456789abcdef0123456789abcdef")
    elsewhere = ("--data-dir", "elsewhere")
    run("serve", "--host", "0.0.0.0", "--port", 0, *elsewhere)


@pytest.mark.usefixtures("models", "served")
@pytest.mark.parametrize(
    ("host", "opens"), [("0.0.0.0", "127.0.0.1"), ("::", "[::1]"), ("::1", "[::1]")]
)
def test_the_printed_url_opens_on_this_machine(tfbbb, host, opens):
    printed = tfbbb("serve", "--host", host, "--port", 0, "--insecure").stdout
    assert re.search(rf"^http://{re.escape(opens)}:\d+/ accepts", printed, re.M)


def test_hint_names_the_database_without_its_password(tfbbb, served, tmp_path):
    given = Settings(
        data_dir="/data", database_url="postgresql://me:secret@db.example/tfbbb"
    )
    assert _database_options(given) == (
        " --data-dir /data --database-url 'postgresql://me:***@db.example/tfbbb'"
    )
    database = f"sqlite:///{tmp_path}/other.sqlite3"
    arguments = ("serve", "--port", 0, "--database-url", database)
    assert tfbbb(*arguments).exit_code == 0
    hint = f"`tfbbb keys create NAME --scope train --database-url {database}`"
    assert hint in tfbbb(*arguments).stdout


def test_data_directory_of_a_running_service_is_refused(tfbbb, served, tmp_path):
    with lock_data_directory(Settings(data_dir=tmp_path / "data")):
        result = tfbbb("serve", "--port", 0, "--data-dir", "data")
    assert sentence(result).startswith(
        f"Error: Another service uses the data directory data, process {os.getpid()} on"
    )
    assert served == {}
