"""Schedules of the weight of the KL divergence, resolvable by string name."""

import inspect
from typing import Any

import tfbbb.base.backend  # noqa: F401  (refuses other backends first)
from tfbbb.base.strategy import DeclaredClasses, Registry
from tfbbb.bayes.families.kl_schedules import KL_SCHEDULES
from tfbbb.bayes.kl_schedules.blundell import Blundell
from tfbbb.bayes.kl_schedules.constant import Constant
from tfbbb.bayes.kl_schedules.from_effective_size import FromEffectiveSize
from tfbbb.bayes.kl_schedules.kl_schedule import KLSchedule
from tfbbb.bayes.kl_schedules.linear_warmup import LinearWarmup
from tfbbb.bayes.kl_schedules.tempered import Tempered

_registry = Registry(KLSchedule, DeclaredClasses(KL_SCHEDULES, __name__))
names, make, serialize, deserialize = (
    _registry.names,
    _registry.make,
    _registry.serialize,
    _registry.deserialize,
)


def get(identifier: Any) -> Any:
    """Resolves a string name, a config from `serialize` or a `KLSchedule`.

    Raises:
        ValueError: No schedule has this name, or the schedule needs an argument; the
            message names the remedy.
    """
    if isinstance(identifier, str) and identifier in KL_SCHEDULES:
        required = [
            argument
            for argument in inspect.get_annotations(KL_SCHEDULES[identifier])
            if not hasattr(KL_SCHEDULES[identifier], argument)
        ]
        if required:
            name = identifier.title().replace("_", "")
            raise ValueError(
                "This KL schedule needs a number: pass "
                f"`tfbbb.kl_schedules.{name}({', '.join(required)})`. "
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
