"""What a key is: the scopes that it has, and the credential that clients send."""

import hashlib
import re
import secrets
from enum import StrEnum

from service.shared.errors import Unauthenticated

# The prefix is public.
_FORM = re.compile(r"([A-Za-z0-9_-]{1,64})\.([A-Za-z0-9_~+/=-]{32,512})")


class Scope(StrEnum):
    """What a key allows; each scope includes those before it."""

    METRICS = "metrics"
    PREDICT = "predict"
    TRAIN = "train"
    ADMIN = "admin"

    @property
    def implied(self) -> list["Scope"]:
        """The scopes it includes, and itself."""
        order = list(Scope)
        return order[: order.index(self) + 1]


def generate_credential() -> str:
    """Returns a new `prefix.secret`, whose secret has 256 random bits."""
    return f"tfbbb-{secrets.token_hex(4)}.{secrets.token_urlsafe(32)}"


def split_credential(text: str) -> tuple[str, str]:
    """Returns the prefix and the hash of the secret, which is what is stored.

    So many random bits need neither salt nor a slow hash. The error does not repeat it.
    """
    match = _FORM.fullmatch(text)
    if match is None:
        raise Unauthenticated(
            "A key must be `prefix.secret`: a prefix of 1 to 64 letters, digits, `-` "
            "and `_`, a dot, and a secret of at least 32 random letters, digits and "
            "`_~+/=-`, as `openssl rand -hex 32` makes. "
            f"Received: {len(text)} characters of another form"
        )
    return match[1], hashlib.sha256(match[2].encode()).hexdigest()
