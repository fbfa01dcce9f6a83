"""Server-sent events, read line by line."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Event:
    """Something that happened to a job.

    Attributes:
        id: Its number within the job, from 1.
        type: `state`, or `epoch`.
        data: Of a state `state` and `attempt`, and if there is one the `reason`, or
            of what was published `name` and `version`; of an epoch `epoch`, `epochs`,
            `step`, `steps` and its figures. `at` is the time, ISO 8601 in UTC.
    """

    id: int
    type: str
    data: dict[str, Any]

    def __str__(self) -> str:
        """What a person wants to see of it."""
        if self.type != "epoch":
            reason = f": {self.data['reason']}" if "reason" in self.data else ""
            return f"{self.data.get('state', self.type)}{reason}"
        figures = "".join(
            f", {name} {self.data[name]:.4g}"
            for name in ("nll", "val_nll")
            if self.data.get(name) is not None
        )
        return f"epoch {self.data['epoch']} of {self.data['epochs']}{figures}"


def events_in(lines: Iterable[str]) -> Iterator[Event]:
    """Reads a stream of events; the comments in between keep it open only."""
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
