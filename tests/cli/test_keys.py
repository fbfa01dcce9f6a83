import json
import re
from datetime import UTC, datetime

import pytest

from tests.cli.commands import refusal, sentence

pytestmark = pytest.mark.usefixtures("service_data")


def create_admin(tfbbb, name="ci"):
    """Creates an admin key, and returns its prefix."""
    made = tfbbb("keys", "create", name, "--scope", "admin").stdout
    return made.partition(".")[0]


def test_create_prints_the_secret_that_list_hides(tfbbb, run):
    scopes = ("--scope", "predict", "--scope", "train")
    made = run("keys", "create", "a robot", *scopes, "--days", "1")
    assert re.fullmatch(r"tfbbb-[0-9a-f]{8}\.[\w-]{43}\n", made.stdout)
    prefix, _, secret = made.stdout.strip().partition(".")
    listed = tfbbb("keys", "list").stdout
    for word in (prefix, "a robot", "predict, train", "valid"):
        assert word in listed
    as_json = tfbbb("keys", "list", "--json").stdout
    assert secret not in listed + as_json
    (key,) = json.loads(as_json)
    assert (key["prefix"], key["state"]) == (prefix, "valid")
    assert key["scopes"] == ["predict", "train"]
    assert datetime.fromisoformat(key["expires_at"]) > datetime.now(UTC)


def test_a_key_is_revoked_by_its_prefix(tfbbb):
    prefix = create_admin(tfbbb)
    create_admin(tfbbb, "another")
    assert tfbbb("keys", "revoke", prefix).stdout == f"revoked {prefix}\n"
    listed = tfbbb("keys", "list").stdout
    assert "revoked" in listed
    assert "never" in listed


@pytest.mark.parametrize("days", ["0", "-1", "nan"])
def test_a_key_must_expire_in_the_future(tfbbb, days):
    result = tfbbb("keys", "create", "x", "--scope", "predict", "--days", days)
    assert result.exit_code == 2
    assert "must be a positive number of days" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("revoke", "nobody"), "There is no key with this id or prefix"),
        (("list", "--database-url", "postgresql://127.0.0.1:1/x"), "does not answer"),
        (("list", "--database-url", "mysql://x"), "must be `sqlite:///PATH`"),
    ],
)
def test_an_error_is_one_sentence(tfbbb, arguments, message):
    result = tfbbb("keys", *arguments)
    assert message in sentence(result)


@pytest.mark.parametrize("name", ["[bold]a[/x]", "predictions of every night " * 5])
def test_list_shows_the_name_of_a_key_unchanged(tfbbb, name):
    tfbbb("keys", "create", name, "--scope", "predict")
    assert name.strip() in tfbbb("keys", "list").stdout


@pytest.mark.parametrize(
    "arguments", [("create", "me", "--scope", "admin"), ("list",), ("revoke", "me")]
)
def test_keys_require_the_database_of_a_service(tfbbb, tmp_path, arguments):
    before = sorted(tmp_path.rglob("*"))
    result = tfbbb("keys", *arguments, "--data-dir", "elsewhere")
    assert result.exit_code == 1
    database = tmp_path / "elsewhere" / "tfbbb.sqlite3"
    assert result.stderr == (
        f"Error: There is no service's database at {database}: name the data directory "
        "with --data-dir, or create the database with `tfbbb serve`.\n"
    )
    assert sorted(tmp_path.rglob("*")) == before


def test_a_postgresql_without_tables_is_refused(tfbbb, monkeypatch):
    asked = "service.shared.database.creation.tables_version"
    monkeypatch.setattr(asked, lambda database: None)
    options = ("--database-url", "postgresql://127.0.0.1:1/x")
    result = tfbbb("keys", "create", "me", "--scope", "admin", *options)
    assert "start the service once with `tfbbb serve`" in refusal(result)
