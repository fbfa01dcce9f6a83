"""The scopes of keys."""

from enum import StrEnum


class Scope(StrEnum):
    """What a key allows; each allows what those before it do."""

    PREDICT = "predict"
    TRAIN = "train"
    ADMIN = "admin"

    @property
    def implied(self) -> frozenset["Scope"]:
        """This scope and those it includes."""
        order = list(Scope)
        return frozenset(order[: order.index(self) + 1])
