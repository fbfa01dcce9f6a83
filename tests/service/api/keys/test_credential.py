import base64

import pytest

from service.api.keys.credential import Credential, CredentialError


def test_generated_secrets_have_256_bits_and_differ() -> None:
    secrets = {Credential.generate().secret for _ in range(100)}
    assert len(secrets) == 100
    assert {len(base64.urlsafe_b64decode(f"{secret}=")) for secret in secrets} == {32}


@pytest.mark.parametrize("text", ["", "no-dot", ".secret", "a b.c", "ä.x"])
def test_other_forms_are_refused_without_being_repeated(text: str) -> None:
    with pytest.raises(CredentialError, match=r"must be `prefix\.secret`") as refusal:
        Credential.parse(text)
    assert not text or f"'{text}'" not in str(refusal.value)


def test_preset_secrets_of_32_characters_are_taken() -> None:
    secret = "0123456789abcdef" * 2
    assert Credential.preset(f"ci.{secret}").secret == secret


@pytest.mark.parametrize(
    "secret", ["changeme", "0123456789abcdef" + "f" * 15, "ab" * 40]
)
def test_preset_secrets_that_can_be_guessed_are_refused(secret: str) -> None:
    with pytest.raises(CredentialError, match="needs 32 random characters") as refusal:
        Credential.preset(f"ci.{secret}")
    assert secret not in str(refusal.value)


def test_a_secret_is_not_shown() -> None:
    credential = Credential.generate()
    assert credential.secret not in repr(credential)
