import pytest

from service.settings import Settings


@pytest.fixture
def served(monkeypatch):
    """What would have been served, and where."""
    seen = {}
    monkeypatch.setattr("uvicorn.run", lambda app, **where: seen.update(where))
    monkeypatch.setattr(
        "service.app.create_app", lambda settings: seen.update(settings)
    )
    return seen


def test_by_default_saved_models_are_served_to_this_machine_alone(
    tfbbb, served, tmp_path
):
    (tmp_path / "saved_models").mkdir()
    assert tfbbb("serve").exit_code == 0
    assert served == {**dict(Settings()), "host": "127.0.0.1", "port": 8000}


def test_options_say_where_and_what(tfbbb, served, tmp_path, monkeypatch):
    monkeypatch.setenv("TFBBB_THREADS", "3")
    options = ("--host", "0.0.0.0", "--port", "81", "--models", tmp_path)
    assert tfbbb("serve", *options).exit_code == 0
    assert (served["host"], served["port"]) == ("0.0.0.0", 81)
    assert (served["models"], served["threads"]) == (tmp_path, 3)


def test_the_directory_may_come_from_the_environment(
    tfbbb, served, tmp_path, monkeypatch
):
    monkeypatch.setenv("TFBBB_MODELS", str(tmp_path))
    assert tfbbb("serve").exit_code == 0
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


@pytest.mark.parametrize("options", [(), ("--models", "no/such")])
def test_a_directory_that_is_not_there_is_not_served(tfbbb, served, options):
    result = tfbbb("serve", *options)
    assert result.exit_code == 1
    directory = options[-1] if options else "saved_models"
    assert result.stderr.startswith(f"Error: There is no directory {directory}; ")
    assert result.stderr.count("\n") == 1
    assert served == {}


def test_help_names_every_setting(tfbbb):
    shown = tfbbb("serve", "--help").stdout
    for name in Settings.model_fields:
        assert f"TFBBB_{name.upper()}" in shown
