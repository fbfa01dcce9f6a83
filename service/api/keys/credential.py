"""What a key is: the scopes that it has, and the credential that clients send."""

import hashlib
import re
import secrets
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self

_LEAST_CHARACTERS, _LEAST_DISTINCT = 32, 8
_FORM = re.compile(r"([A-Za-z0-9_-]{1,64})\.([A-Za-z0-9_~+/=-]{1,512})")


class Scope(StrEnum):
    """What a key allows; each scope includes those before it."""

    METRICS = "metrics"
    PREDICT = "predict"
    TRAIN = "train"
    ADMIN = "admin"

    @property
    def implied(self) -> frozenset["Scope"]:
        """This scope and the scopes it includes."""
        order = list(Scope)
        return frozenset(order[: order.index(self) + 1])


class CredentialError(ValueError):
    """A text is not a valid key; the message does not repeat the text."""


@dataclass(frozen=True)
class Credential:
    """The key as clients send it, `prefix.secret`; the prefix is public."""

    prefix: str
    secret: str = field(repr=False)

    @classmethod
    def generate(cls) -> Self:
        """Generates a credential whose secret has 256 random bits."""
        return cls(f"tfbbb-{secrets.token_hex(4)}", secrets.token_urlsafe(32))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parses `prefix.secret`."""
        match = _FORM.fullmatch(text)
        if match is None:
            raise CredentialError(
                "A key must be `prefix.secret`: a prefix of 1 to 64 letters, digits, "
                "`-` and `_`, a dot, and a secret of letters, digits and `_~+/=-`. "
                f"Received: {len(text)} characters of another form"
            )
        return cls(*match.groups())

    @classmethod
    def preset(cls, text: str) -> Self:
        """Parses a credential that a person chose, if its secret is hard to guess."""
        credential = cls.parse(text)
        length, distinct = len(credential.secret), len(set(credential.secret))
        if length < _LEAST_CHARACTERS or distinct < _LEAST_DISTINCT:
            raise CredentialError(
                f"The secret of a key needs {_LEAST_CHARACTERS} random characters, as "
                f"`openssl rand -hex 32` makes. Received: {length} characters, "
                f"{distinct} of them distinct"
            )
        return credential

    @property
    def text(self) -> str:
        """The whole credential, `prefix.secret`."""
        return f"{self.prefix}.{self.secret}"

    @property
    def sha256(self) -> str:
        """The stored hash; so many random bits need neither salt nor a slow hash."""
        return hashlib.sha256(self.secret.encode()).hexdigest()
