import re

import pytest

from tests.service.postgresql import postgresql_server

pytestmark = pytest.mark.usefixtures("service_data")

CHOSEN = "ci.0123456789abcdef0123456789abcdef"


def create(tfbbb, key):
    """Makes an admin key that was chosen, as `tfbbb keys create < FILE` does."""
    options = ("--scope", "admin", "--key-stdin")
    return tfbbb("keys", "create", "ci", *options, input=f"{key}\n")


def test_a_key_is_printed_once_and_listed_without_its_secret(tfbbb):
    made = tfbbb("keys", "create", "a robot", "--scope", "predict", "--scope", "train")
    assert made.exit_code == 0, made.output
    assert re.fullmatch(r"tfbbb-[0-9a-f]{8}\.[\w-]{43}\n", made.stdout)
    prefix, _, secret = made.stdout.strip().partition(".")
    listed = tfbbb("keys", "list").stdout
    assert secret not in listed
    for word in (prefix, "a robot", "predict, train", "never", "good"):
        assert word in listed


def test_a_key_may_be_chosen_and_revoked_by_its_prefix(tfbbb):
    assert create(tfbbb, CHOSEN).stdout == "made ci\n"
    assert tfbbb("keys", "create", "me", "--scope", "admin").exit_code == 0
    assert tfbbb("keys", "revoke", "ci").stdout == "revoked ci\n"
    assert "revoked" in tfbbb("keys", "list").stdout


@pytest.mark.parametrize("days", ["0", "-1", "nan"])
def test_a_key_is_not_made_that_has_expired(tfbbb, days):
    result = tfbbb("keys", "create", "x", "--scope", "predict", "--days", days)
    assert result.exit_code == 2
    assert "a key needs some time" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("revoke", "ci"), "Nobody could make keys any more without this one"),
        (("revoke", "nobody"), "There is no such key"),
        (("list", "--database-url", "postgresql://127.0.0.1:1/x"), "does not answer"),
        (("list", "--database-url", "mysql://x"), "must be `sqlite:///PATH`"),
    ],
)
def test_what_can_not_be_done_is_said_in_a_sentence(tfbbb, arguments, message):
    create(tfbbb, CHOSEN)
    result = tfbbb("keys", *arguments)
    assert result.exit_code == 1
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("ci.changeme", "needs 128 random bits"),
        ("", "A key must be `prefix.secret`"),
        (CHOSEN, "a key with this prefix already"),
    ],
)
def test_a_key_that_can_not_be_chosen_is_refused(tfbbb, key, message):
    create(tfbbb, CHOSEN)
    result = create(tfbbb, key)
    assert result.exit_code == 1
    assert message in result.stderr


def test_whoever_makes_a_key_says_what_it_allows(tfbbb):
    result = tfbbb("keys", "create", "me")
    assert result.exit_code == 2
    assert "--scope" in result.stderr


@pytest.mark.parametrize("name", ["[bold]a[/x]", "predictions of every night " * 5])
def test_a_name_of_a_key_is_shown_as_it_is(tfbbb, name):
    tfbbb("keys", "create", name, "--scope", "predict")
    assert name.strip() in tfbbb("keys", "list").stdout


@pytest.mark.parametrize(
    "arguments", [("create", "me", "--scope", "admin"), ("list",), ("revoke", "me")]
)
def test_without_a_service_there_are_no_keys(tfbbb, tmp_path, arguments):
    before = sorted(tmp_path.rglob("*"))
    result = tfbbb("keys", *arguments, "--data-dir", "elsewhere")
    assert result.exit_code == 1
    database = tmp_path / "elsewhere" / "tfbbb.sqlite3"
    assert result.stderr == (
        f"Error: There is no service's database at {database}: name the directory "
        "that has it with --data-dir, or start the service there first with `tfbbb "
        "serve`.\n"
    )
    assert sorted(tmp_path.rglob("*")) == before


def test_an_empty_file_is_no_database_of_a_service(tfbbb, tmp_path):
    url = f"sqlite:///{tmp_path}/empty.sqlite3"
    (tmp_path / "empty.sqlite3").touch()
    result = tfbbb("keys", "list", "--database-url", url)
    assert result.exit_code == 1
    assert "There is no service's database at" in result.stderr


def test_a_new_postgresql_wants_a_service_first(tfbbb):
    with postgresql_server() as url:
        options = ("--database-url", f"{url}/postgres")
        result = tfbbb("keys", "create", "me", "--scope", "admin", *options)
        assert result.exit_code == 1
        assert "start the service once with `tfbbb serve`" in result.stderr
