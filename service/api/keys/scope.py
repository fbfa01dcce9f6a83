"""The scopes of keys."""

from enum import StrEnum


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
