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
    """A text that can't be a key; the message does not repeat it."""


@dataclass(frozen=True)
class Credential:
    """What a client sends: `prefix.secret`.

    The prefix finds the key; it may be seen. The secret may not.
    """

    prefix: str
    secret: str = field(repr=False)

    @classmethod
    def generate(cls) -> Self:
        """Makes one whose secret has 256 random bits."""
        return cls(f"tfbbb-{secrets.token_hex(4)}", secrets.token_urlsafe(32))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Takes `prefix.secret` apart.

        Raises:
            CredentialError: If it is of another form.
        """
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
        """Takes one that was chosen by somebody, if its secret is hard to guess.

        Raises:
            CredentialError: If it is not.
        """
        credential = cls.parse(text)
        bits, distinct = credential._bits(), len(set(credential.secret))
        if bits < _MIN_BITS or distinct < _MIN_DISTINCT:
            raise CredentialError(
                f"The secret of a key needs {_MIN_BITS} random bits: 22 characters of "
                "base64 or 32 hexadecimal digits, `openssl rand -hex 32` say. "
                f"Received: {len(credential.secret)} characters, {distinct} of them "
                f"different, which is at most {bits:.0f} bits"
            )
        return credential

    def _bits(self) -> float:
        """The entropy of the secret, if each character was drawn from its alphabet."""
        used = set(self.secret)
        sizes = [len(known) for known in _ALPHABETS if used <= set(known)]
        return len(self.secret) * math.log2(min(sizes, default=64))

    @property
    def text(self) -> str:
        """The whole credential, as it is sent."""
        return f"{self.prefix}.{self.secret}"

    @property
    def sha256(self) -> str:
        """The hash that is stored of the secret.

        A secret of so many random bits can't be guessed from a fast hash, and needs no
        salt.
        """
        return hashlib.sha256(self.secret.encode()).hexdigest()
