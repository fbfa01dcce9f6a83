"""Intervals and prediction sets of an answer, adapted to the feedback so far."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from service.shared.errors import InvalidRequest
from service.shared.json_types import JsonObject
from service.shared.prediction_parameters import DrawParameters
from tfbbb.export.inputs import Tensors
from tfbbb.export.manifest import Manifest
from tfbbb.judging.adaptive_intervals import (
    AdaptiveIntervals,
    adapt_intervals,
    adapt_levels,
)

SETS = "prediction_sets"
_MISSING = "missing"


@dataclass(frozen=True)
class Adaptation:
    """How the intervals or prediction sets of a request are adapted.

    Args:
        adaptive: The adapted ends of the version.
        manifest: The manifest of the version.
        levels: The levels that the request asks for.
        groups: The group of each row, or None for no group; None without groups.
    """

    adaptive: AdaptiveIntervals
    manifest: Manifest
    levels: list[float]
    groups: list[str | None] | None

    @classmethod
    def read(
        cls,
        record: JsonObject | None,
        manifest: Manifest,
        parameters: DrawParameters,
        inputs: Tensors,
    ) -> Self:
        """Reads how the feedback so far adapts the answers for some rows."""
        if record is None:
            of_sets = manifest.classes is not None
            num_targets = (manifest.targets.shape or (1,))[-1] or 1
            adaptive = AdaptiveIntervals.start(num_targets, of_sets=of_sets)
        else:
            adaptive = AdaptiveIntervals.from_dict(record)
        levels = list(_levels(manifest, parameters))
        return cls(adaptive, manifest, levels, groups_of(inputs, manifest))

    @cached_property
    def _named(self) -> list[str | None]:
        """The distinct groups of the rows, or None for all rows."""
        return [None] if self.groups is None else list(dict.fromkeys(self.groups))

    @cached_property
    def _places(self) -> np.ndarray:
        """The place of each row's group among the distinct ones, [n] or [1]."""
        places = {name: place for place, name in enumerate(self._named)}
        return np.array([places[name] for name in self.groups or self._named])

    @property
    def _ends(self) -> np.ndarray:
        """The ends of each distinct group, [groups, levels, k, 2]."""
        return np.stack([self.adaptive.ends(self.levels, x) for x in self._named])

    @property
    def _widest(self) -> np.ndarray:
        """The greatest half lengths of each distinct group, [groups, levels, k]."""
        return np.stack([self.adaptive.widest(self.levels, x) for x in self._named])

    def asking(self, parameters: DrawParameters) -> DrawParameters:
        """Returns parameters that ask for the sets of the adapted levels."""
        if self.manifest.classes is None:
            return parameters
        levels = [
            level for ends in self._ends for level in adapt_levels(self.levels, ends)
        ]
        return parameters.model_copy(update={SETS: levels})

    def asked(self, parameters: DrawParameters) -> DrawParameters:
        """Returns the parameters as the request has them: the inverse of `asking`."""
        if self.manifest.classes is None:
            return parameters
        return parameters.model_copy(update={SETS: self.levels})

    def adapt(self, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Returns the adapted bounds, or the set of each level and row."""
        places = self._places
        if self.manifest.classes is not None:
            held = arrays[SETS]
            by_group = held.reshape(len(held), len(self._named), len(self.levels), -1)
            return {SETS: by_group[np.arange(len(held)), places]}
        adapted = adapt_intervals(
            arrays["lower"],
            arrays["upper"],
            self._ends[places],
            self.levels,
            discrete=self.manifest.targets.discrete,
            widest=self._widest[places],
        )
        limits = self.manifest.limits
        if limits is not None:
            adapted = np.clip(np.asarray(adapted), limits[0], limits[1])
        lower, upper = np.asarray(adapted, arrays["lower"].dtype)
        return {"lower": lower, "upper": upper}

    def describe(self) -> JsonObject:
        """Returns the rows of feedback and the factors, for the answer."""
        named = {x: self.adaptive.describe(x) for x in self._named if x is not None}
        found = self.adaptive.describe()
        return {**found, "groups": named} if named else found


def check_adaptation(manifest: Manifest, parameters: DrawParameters) -> None:
    """Checks that a request which asks for adaptation has something to adapt."""
    if not parameters.adapt:
        return
    if has_places(manifest):
        raise InvalidRequest(
            "`parameters.adapt` needs one place per row: places of one row depend on "
            "each other, so their errors do not say how intervals are to change.",
            "parameters.adapt",
        )
    if not _levels(manifest, parameters):
        asked = "intervals" if manifest.classes is None else SETS
        raise InvalidRequest(
            f"`parameters.adapt` adapts `{asked}`, so the request must ask for their "
            f"levels, such as `{asked}: [0.9]`.",
            "parameters.adapt",
        )


def has_places(manifest: Manifest) -> bool:
    """Returns whether a row has several places, such as the pixels of an image."""
    most = 1 if manifest.classes is None else 0
    return len(manifest.targets.shape) > most


def groups_of(inputs: Tensors, manifest: Manifest) -> list[str | None] | None:
    """Returns the name of each row's group in the version's recalibration."""
    config = (manifest.recalibration or {}).get("config", {})
    by = config.get("by")
    if by is None or not config.get("groups"):
        return None
    if isinstance(by, int):
        column = next(iter(inputs.values()))[:, by]
    else:
        (feature,) = (x for x in manifest.features if x.name == by)
        column = inputs[feature.tensor].reshape(-1)
    if column.dtype.kind in "OSU":
        known = set(config["groups"])
        texts = [x.decode() if isinstance(x, bytes) else str(x) for x in column]
        return [text if text in known else None for text in texts]
    names: list[str | None] = [None] * len(column)
    for value in config["groups"]:
        found = (
            np.isnan(column) if value is None else column == column.dtype.type(value)
        )
        for row in np.flatnonzero(found):
            names[row] = _MISSING if value is None else f"{value:g}"
    return names


def _levels(manifest: Manifest, parameters: DrawParameters) -> Sequence[float]:
    asked = "intervals" if manifest.classes is None else SETS
    return getattr(parameters, asked) or ()
