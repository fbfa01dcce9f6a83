import json
import re
from datetime import UTC, datetime

import pytest

from tests.service.postgresql import postgresql_server

pytestmark = pytest.mark.usefixtures("service_data")

CHOSEN = "ci.0123456789abcdef0123456789abcdef"


def create(tfbbb, key):
    """Creates an admin key of a given text, as `tfbbb keys create < FILE` does."""
    options = ("--scope", "admin", "--key-stdin")
    return tfbbb("keys", "create", "ci", *options, input=f"{key}\n")


def test_create_prints_the_secret_that_list_hides(tfbbb):
    made = tfbbb("keys", "create", "a robot", "--scope", "predict", "--scope", "train")
    assert made.exit_code == 0, made.output
    assert re.fullmatch(r"tfbbb-[0-9a-f]{8}\.[\w-]{43}\n", made.stdout)
    prefix, _, secret = made.stdout.strip().partition(".")
    listed = tfbbb("keys", "list").stdout
    assert secret not in listed
    for word in (prefix, "a robot", "predict, train", "never", "valid"):
        assert word in listed


def test_list_prints_json(tfbbb):
    made = tfbbb("keys", "create", "a robot", "--scope", "train", "--days", "1")
    prefix, _, secret = made.stdout.strip().partition(".")
    listed = tfbbb("keys", "list", "--json").stdout
    assert secret not in listed
    (key,) = json.loads(listed)
    assert (key["prefix"], key["scopes"], key["state"]) == (prefix, ["train"], "valid")
    assert datetime.fromisoformat(key["expires_at"]) > datetime.now(UTC)


def test_a_key_from_stdin_is_revoked_by_its_prefix(tfbbb):
    assert create(tfbbb, CHOSEN).stdout == "made ci\n"
    assert tfbbb("keys", "create", "me", "--scope", "admin").exit_code == 0
    assert tfbbb("keys", "revoke", "ci").stdout == "revoked ci\n"
    assert "revoked" in tfbbb("keys", "list").stdout


@pytest.mark.parametrize("days", ["0", "-1", "nan"])
def test_a_key_must_expire_in_the_future(tfbbb, days):
    result = tfbbb("keys", "create", "x", "--scope", "predict", "--days", days)
    assert result.exit_code == 2
    assert "must be a positive number of days" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("revoke", "ci"), "This is the last key that can create keys"),
        (("revoke", "nobody"), "There is no key with this id"),
        (("list", "--database-url", "postgresql://127.0.0.1:1/x"), "does not answer"),
        (("list", "--database-url", "mysql://x"), "must be `sqlite:///PATH`"),
    ],
)
def test_an_error_is_one_sentence(tfbbb, arguments, message):
    create(tfbbb, CHOSEN)
    result = tfbbb("keys", *arguments)
    assert result.exit_code == 1
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("ci.changeme", "needs 32 random characters"),
        ("", "A key must be `prefix.secret`"),
        (CHOSEN, "key has this prefix already"),
    ],
)
def test_an_invalid_key_from_stdin_is_refused(tfbbb, key, message):
    create(tfbbb, CHOSEN)
    result = create(tfbbb, key)
    assert result.exit_code == 1
    assert message in result.stderr


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


def test_a_postgresql_without_tables_is_refused(tfbbb):
    with postgresql_server() as url:
        options = ("--database-url", f"{url}/postgres")
        result = tfbbb("keys", "create", "me", "--scope", "admin", *options)
        assert result.exit_code == 1
        assert "start the service once with `tfbbb serve`" in result.stderr
