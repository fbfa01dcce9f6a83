"""The versions behind a request: one, or two with weights, and a shadow."""

import hashlib
from dataclasses import dataclass, fields
from typing import Self

from service.shared.json_types import JsonObject

# The label that moves by itself.
LATEST = "latest"


@dataclass(frozen=True)
class Route:
    """The versions that a label points at.

    Args:
        version: The version that answers; None for `latest`.
        canary: A version that answers some of the requests in its place, or None.
        canary_weight: The share of the requests that the canary answers.
        shadow: A version that predicts the rows too, after the answer, or None.
    """

    version: int | None = None
    canary: int | None = None
    canary_weight: float = 0.0
    shadow: int | None = None

    @classmethod
    def from_header(cls, header: JsonObject) -> Self:
        """Reads the route from the header of a frame, which has the fields by name."""
        return cls(**{field.name: header[field.name] for field in fields(cls)})

    @property
    def answering(self) -> tuple[int | None, ...]:
        """The versions that may answer."""
        return (self.version,) if self.canary is None else (self.version, self.canary)

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers of all versions, without `latest`."""
        every = (self.version, self.canary, self.shadow)
        return tuple(number for number in every if number is not None)

    def uses_canary(self, model: str, key: str) -> bool:
        """Whether the canary answers the requests with a key, always the same.

        A key that the canary answers stays with the canary when its weight grows. The
        number of the canary is hashed too, so that the next canary gets other keys.
        """
        if self.canary is None:
            return False
        text = f"{model}/{self.canary}/{key}"
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
        return int.from_bytes(digest[:8]) / 2.0**64 < self.canary_weight
