"""Generates, parses and hashes the credential of a key."""

import hashlib
import math
import re
import secrets
import string
from dataclasses import dataclass, field
from typing import Self

_MIN_BITS = 128
_MIN_DISTINCT = 8
_FORM = re.compile(r"([A-Za-z0-9_-]{1,64})\.([A-Za-z0-9_~+/=-]{1,512})")
_ALPHABETS = (string.digits, string.digits + "abcdef", string.digits + "ABCDEF")


class CredentialError(ValueError):
    """A text is not a valid key; the message does not repeat the text."""


@dataclass(frozen=True)
class Credential:
    """The key as clients send it: `prefix.secret`.

    The prefix identifies the key and is public; the secret is not.
    """

    prefix: str
    secret: str = field(repr=False)

    @classmethod
    def generate(cls, kind: str = "tfbbb") -> Self:
        """Generates a credential whose secret has 256 random bits."""
        return cls(f"{kind}-{secrets.token_hex(4)}", secrets.token_urlsafe(32))

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
        bits, distinct = credential._bits(), len(set(credential.secret))
        if bits < _MIN_BITS or distinct < _MIN_DISTINCT:
            raise CredentialError(
                f"The secret of a key needs {_MIN_BITS} random bits: 22 characters of "
                "base64 or 32 hexadecimal digits, e.g. of `openssl rand -hex 32`. "
                f"Received: {len(credential.secret)} characters, {distinct} of them "
                f"distinct, which are at most {bits:.0f} bits"
            )
        return credential

    def _bits(self) -> float:
        """Estimates the entropy of the secret, drawn uniformly from its alphabet."""
        used = set(self.secret)
        sizes = [len(known) for known in _ALPHABETS if used <= set(known)]
        return len(self.secret) * math.log2(min(sizes, default=64))

    @property
    def text(self) -> str:
        """The whole credential, `prefix.secret`."""
        return f"{self.prefix}.{self.secret}"

    @property
    def sha256(self) -> str:
        """The stored hash of the secret.

        A secret with so many random bits cannot be found from a fast hash without salt.
        """
        return hashlib.sha256(self.secret.encode()).hexdigest()
