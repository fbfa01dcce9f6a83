import pytest

from tests.cli.commands import refusal


@pytest.mark.usefixtures("service_data")
def test_backup_lists_its_parts(tfbbb, run, tmp_path):
    (tmp_path / "saved_models" / "wine" / "1").mkdir(parents=True)
    assert tfbbb("keys", "create", "me", "--scope", "admin").exit_code == 0
    result = run("backup", "copy")
    assert result.stdout == "copy holds models, tfbbb.sqlite3\n"
    assert (tmp_path / "copy" / "models" / "wine" / "1").is_dir()
    assert oct((tmp_path / "copy").stat().st_mode)[-3:] == "700"


@pytest.mark.usefixtures("service_data")
def test_an_existing_destination_is_refused(tfbbb, tmp_path):
    result = tfbbb("backup", tmp_path)
    assert "name a new directory" in refusal(result)


def test_backup_requires_the_database_of_a_service(tfbbb, tmp_path):
    result = tfbbb("backup", "copy")
    assert result.exit_code == 1
    database = tmp_path / ".tfbbb" / "tfbbb.sqlite3"
    assert f"There is no service's database at {database}: " in result.stderr
    assert list(tmp_path.iterdir()) == []
