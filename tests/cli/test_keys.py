import re

import pytest

CHOSEN = "ci.0123456789abcdef0123456789abcdef"


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
    assert tfbbb("keys", "create", "ci", "--secret", CHOSEN).stdout == f"{CHOSEN}\n"
    assert tfbbb("keys", "create", "me").exit_code == 0
    assert tfbbb("keys", "revoke", "ci").stdout == "revoked ci\n"
    assert "revoked" in tfbbb("keys", "list").stdout


@pytest.mark.parametrize("days", ["0", "-1", "nan"])
def test_a_key_is_not_made_that_has_expired(tfbbb, days):
    result = tfbbb("keys", "create", "x", "--days", days)
    assert result.exit_code == 2
    assert "a key needs some time" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("create", "x", "--secret", "ci.changeme"), "needs 128 random bits"),
        (("create", "x", "--secret", CHOSEN), "a key with this prefix already"),
        (("revoke", "ci"), "Nobody could make keys any more without this one"),
        (("revoke", "nobody"), "There is no such key"),
        (("list", "--database-url", "postgresql://127.0.0.1:1/x"), "does not answer"),
        (("list", "--database-url", "mysql://x"), "must be `sqlite:///PATH`"),
    ],
)
def test_what_can_not_be_done_is_said_in_a_sentence(tfbbb, arguments, message):
    tfbbb("keys", "create", "ci", "--secret", CHOSEN)
    result = tfbbb("keys", *arguments)
    assert result.exit_code == 1
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
