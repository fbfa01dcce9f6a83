"""Schedules of the weight of the KL divergence, resolvable by string name."""

from typing import Any

import tfbbb.backend  # noqa: F401  (refuses other backends first)
from tfbbb.kl_schedules.blundell import Blundell
from tfbbb.kl_schedules.constant import Constant
from tfbbb.kl_schedules.from_effective_size import FromEffectiveSize
from tfbbb.kl_schedules.kl_schedule import KLSchedule
from tfbbb.kl_schedules.linear_warmup import LinearWarmup
from tfbbb.kl_schedules.tempered import Tempered
from tfbbb.strategy import Registry

_registry = Registry(
    "kl_schedule",
    KLSchedule,
    [Blundell, Constant, FromEffectiveSize, LinearWarmup, Tempered],
)
names, make, serialize, deserialize = (
    _registry.names,
    _registry.make,
    _registry.serialize,
    _registry.deserialize,
)

_WITH_REQUIRED_ARGUMENT = {
    "from_effective_size": "FromEffectiveSize(n)",
    "tempered": "Tempered(temperature)",
}


def get(identifier: Any) -> Any:
    """Resolves a string name, a config from `serialize` or a `KLSchedule`.

    Raises:
        ValueError: No schedule has this name, or the schedule needs an argument; the
            message names the remedy.
    """
    if isinstance(identifier, str) and identifier in _WITH_REQUIRED_ARGUMENT:
        raise ValueError(
            "This KL schedule needs a number: pass "
            f"`tfbbb.kl_schedules.{_WITH_REQUIRED_ARGUMENT[identifier]}`. "
            f"Received: kl_schedule={identifier!r}"
        )
    return _registry.get(identifier)


__all__ = [
    "Blundell",
    "Constant",
    "FromEffectiveSize",
    "KLSchedule",
    "LinearWarmup",
    "Tempered",
    "deserialize",
    "get",
    "make",
    "names",
    "serialize",
]
