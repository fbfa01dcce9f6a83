import re
import socket
import sys
from pathlib import Path

import pytest

from service.shared.settings import Settings


@pytest.fixture
def served(monkeypatch):
    """What would have been served, and where."""
    seen = {}

    def run(server, sockets):
        seen.update(address=sockets[0].getsockname())

    monkeypatch.setattr("uvicorn.Server.run", run)
    # It has TensorFlow's log handler close the stream that pytest captures.
    monkeypatch.setattr("uvicorn.Config.configure_logging", lambda config: None)
    monkeypatch.setattr(
        "service.app.create_app", lambda settings: seen.update(settings)
    )
    return seen


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def key_in(output):
    """The key of the URL that is printed."""
    return re.search(r"http://127\.0\.0\.1:\d+/\?key=(\S+)", output)[1]


def test_by_default_saved_models_are_served_to_this_machine_alone(
    tfbbb, served, tmp_path
):
    (tmp_path / "saved_models").mkdir()
    assert tfbbb("serve", "--port", free_port()).exit_code == 0
    assert served.pop("address")[0] == "127.0.0.1"
    assert served == dict(Settings())


def test_options_say_where_and_what(tfbbb, served, tmp_path, monkeypatch):
    monkeypatch.setenv("TFBBB_THREADS", "3")
    port = free_port()
    options = ("--port", port, "--models", tmp_path, "--data-dir", tmp_path / "data")
    database = f"sqlite:///{tmp_path}/here.sqlite3"
    assert tfbbb("serve", *options, "--database-url", database).exit_code == 0
    assert served["address"] == ("127.0.0.1", port)
    assert (served["models"], served["threads"]) == (tmp_path, 3)
    assert (served["data_dir"], served["database_url"]) == (tmp_path / "data", database)
    assert (tmp_path / "here.sqlite3").exists()


def test_the_directory_may_come_from_the_environment(
    tfbbb, served, tmp_path, monkeypatch
):
    monkeypatch.setenv("TFBBB_MODELS", str(tmp_path))
    assert tfbbb("serve", "--port", 0).exit_code == 0
    assert served["models"] == tmp_path


def test_a_wrong_setting_is_named(tfbbb, served, monkeypatch):
    monkeypatch.setenv("TFBBB_THREADS", "none")
    result = tfbbb("serve")
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: TFBBB_THREADS")
    assert result.stderr.count("\n") == 1


def test_a_file_is_not_a_directory_of_models(tfbbb, served, tmp_path):
    (tmp_path / "file").write_text("")
    result = tfbbb("serve", "--models", "file")
    assert result.exit_code == 1
    assert "file is a file, not a directory of models." in result.stderr
    assert served == {}


def test_a_directory_that_was_named_is_made(tfbbb, served, tmp_path):
    result = tfbbb("serve", "--port", 0, "--models", "no/such")
    assert result.exit_code == 0
    assert result.stdout.startswith("made no/such for the models\n")
    assert (tmp_path / "no" / "such").is_dir()
    assert served["models"] == Path("no/such")
    again = tfbbb("serve", "--port", 0, "--models", "no/such")
    assert "made" not in again.stdout


def test_a_service_that_trains_nothing_needs_its_models(tfbbb, served, monkeypatch):
    monkeypatch.setenv("TFBBB_START_DISPATCHER", "0")
    result = tfbbb("serve", "--models", "no/such")
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: There is no directory no/such; ")
    assert result.stderr.count("\n") == 1
    assert served == {}


@pytest.mark.parametrize(
    ("models", "message"),
    [
        (
            "file/models",
            "file/models can't be made: Not a directory; say with --models",
        ),
        ("/proc/models", "/proc/models can't be made: "),
    ],
)
def test_a_directory_that_can_not_be_made_is_named(
    tfbbb, served, tmp_path, models, message
):
    (tmp_path / "file").touch()
    result = tfbbb("serve", "--models", models)
    assert result.exit_code == 1
    assert f"Error: The directory of models {message}" in result.stderr
    assert result.stderr.count("\n") == 1
    assert served == {}


@pytest.mark.skipif(sys.platform != "linux", reason="needs what root can't write to")
def test_where_no_model_can_be_written_no_job_is_taken(tfbbb, served, monkeypatch):
    refused = tfbbb("serve", "--port", 0, "--models", "/sys")
    assert refused.exit_code == 1
    assert refused.stderr.startswith("Error: Jobs can't write models to /sys: ")
    assert refused.stderr.count("\n") == 1
    assert served == {}
    monkeypatch.setenv("TFBBB_START_DISPATCHER", "0")
    assert tfbbb("serve", "--port", 0, "--models", "/sys").exit_code == 0
    assert served["models"] == Path("/sys")


@pytest.mark.usefixtures("served")
def test_the_default_directory_is_made(tfbbb, tmp_path):
    assert tfbbb("serve", "--port", 0).exit_code == 0
    assert (tmp_path / "saved_models").is_dir()


def test_help_names_every_setting(tfbbb):
    shown = tfbbb("serve", "--help").stdout
    for name in Settings.model_fields:
        assert f"TFBBB_{name.upper()}" in shown


@pytest.fixture
def models(tmp_path):
    (tmp_path / "saved_models").mkdir()


@pytest.mark.usefixtures("models", "served")
def test_the_first_start_on_this_machine_prints_a_key_which_is_not_kept(
    tfbbb, tmp_path
):
    key = key_in(tfbbb("serve", "--port", 0).stdout)
    secret = key.partition(".")[2].encode()
    for path in (tmp_path / ".tfbbb").rglob("*"):
        assert secret not in path.read_bytes()
    again = tfbbb("serve", "--port", 0)
    assert again.exit_code == 0
    assert "?key=" not in again.stdout
    assert (
        "asks for a key; `tfbbb keys create NAME --scope train` makes one"
        in again.stdout
    )


@pytest.mark.usefixtures("models", "served")
def test_no_key_is_spent_on_a_port_that_is_taken(tfbbb):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        result = tfbbb("serve", "--port", port)
        assert result.exit_code == 1
        message = f"Error: Can't listen on 127.0.0.1, port {port}: Address already in"
        assert result.stderr.startswith(message)
    assert key_in(tfbbb("serve", "--port", port).stdout)


@pytest.mark.usefixtures("models")
def test_other_machines_are_not_let_in_without_a_key(tfbbb, served, monkeypatch):
    refused = tfbbb("serve", "--host", "0.0.0.0", "--port", 0)
    assert refused.exit_code == 1
    assert refused.stderr.startswith("Error: Whoever reaches 0.0.0.0 could ask")
    for way in ("TFBBB_ADMIN_KEY", "tfbbb keys create", "--insecure"):
        assert way in refused.stderr
    assert served == {}
    assert tfbbb("keys", "create", "me", "--scope", "predict").exit_code == 0
    assert tfbbb("serve", "--host", "0.0.0.0", "--port", 0).exit_code == 1
    monkeypatch.setenv("TFBBB_ADMIN_KEY", "ci.0123456789abcdef0123456789abcdef")
    assert tfbbb("serve", "--host", "0.0.0.0", "--port", 0).exit_code == 0


@pytest.mark.usefixtures("models", "served")
def test_a_key_that_was_made_lets_other_machines_in(tfbbb):
    # Refused, it has made the database for the key.
    assert tfbbb("serve", "--host", "0.0.0.0", "--port", 0).exit_code == 1
    assert tfbbb("keys", "create", "me", "--scope", "admin").exit_code == 0
    assert tfbbb("serve", "--host", "0.0.0.0", "--port", 0).exit_code == 0


@pytest.mark.usefixtures("models")
def test_insecure_says_what_it_means(tfbbb, served):
    result = tfbbb("serve", "--host", "0.0.0.0", "--port", 0, "--insecure")
    assert result.exit_code == 0
    assert "whoever reaches it may do everything" in result.stdout
    assert served["insecure"]


@pytest.mark.usefixtures("models")
def test_a_preset_key_that_can_be_guessed_is_refused(tfbbb, served, monkeypatch):
    monkeypatch.setenv("TFBBB_ADMIN_KEY", "admin.changeme")
    result = tfbbb("serve", "--port", 0)
    assert result.exit_code == 1
    assert "needs 128 random bits" in result.stderr
    assert "changeme" not in result.stderr
    assert served == {}
