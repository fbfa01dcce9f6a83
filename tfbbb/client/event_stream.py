"""Events of a job, read from a stream of server-sent events."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tfbbb.base.texts import time_left
from tfbbb.base.types import JsonObject


@dataclass(frozen=True)
class Event:
    """An event of a job: a change of its state, its stage, or the end of an epoch.

    Attributes:
        id: Number of the event within the job, from 1. A stage that is told again has
            the number of the event before.
        type: `state`, `stage` or `epoch`.
        data: For `state`: `state` and `attempt`, a `reason` if there is one, and `name`
            and `version` of a published model. For `epoch`: `epoch`, `epochs`, `step`,
            `steps` and the metrics of the epoch. For `stage`: `stage`, the share
            `done` of the job, least and most `seconds_left` or None, and the seconds
            `elapsed`. Always `at`, the time, ISO 8601 in UTC.
    """

    id: int
    type: str
    data: JsonObject

    def __str__(self) -> str:
        """Formats the event as one line for people."""
        if self.type == "stage":
            parts = [self.data["stage"], f"{self.data['done']:.0%} done"]
            return ", ".join(
                filter(None, [*parts, time_left(self.data["seconds_left"])])
            )
        if self.type != "epoch":
            reason = f": {self.data['reason']}" if "reason" in self.data else ""
            return f"{self.data.get('state', self.type)}{reason}"
        figures = "".join(
            f", {name} {self.data[name]:.4g}"
            for name in ("nll", "val_nll")
            if self.data.get(name) is not None
        )
        return f"epoch {self.data['epoch']}{figures}"


def read_events(lines: Iterable[str]) -> Iterator[Event]:
    """Yields the events of a stream; skips comments, which only keep it open."""
    fields: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        if name:
            fields[name] = value.removeprefix(" ")
        elif line == "" and "data" in fields:
            data = json.loads(fields["data"])
            yield Event(int(fields["id"]), fields.get("event", "message"), data)
        if line == "":
            fields = {}
