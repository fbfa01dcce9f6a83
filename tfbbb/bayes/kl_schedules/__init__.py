"""Schedules of the weight of the KL divergence, resolvable by string name."""

from tfbbb.bayes.kl_schedules.schedules import (
    Blundell,
    Constant,
    FromEffectiveSize,
    KLSchedule,
    LinearWarmup,
    RowsPerWeight,
    Tempered,
    register,
    registry,
)

names, get, make = registry.names, registry.get, registry.make
serialize, deserialize = registry.serialize, registry.deserialize


__all__ = [
    "Blundell",
    "Constant",
    "FromEffectiveSize",
    "KLSchedule",
    "LinearWarmup",
    "RowsPerWeight",
    "Tempered",
    "deserialize",
    "get",
    "make",
    "names",
    "register",
    "registry",
    "serialize",
]
