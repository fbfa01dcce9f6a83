"""The bodies of `/v1/retention`."""

from collections.abc import Sequence
from datetime import datetime
from typing import Self

from pydantic import BaseModel, Field

from service.api.retention.removal import Outcome
from service.api.state import ServiceState

_MOST = 1000


class Thing(BaseModel):
    """A thing that is not kept any longer."""

    subject: str = Field(examples=["houses/3"])
    num_bytes: int
    since: datetime = Field(description="When it was made, or ended.")


class ThingsOfKind(BaseModel):
    """The things of a kind that are not kept any longer."""

    kind: str = Field(examples=["versions"])
    settings: dict[str, float | None] = Field(
        description="The settings that say what is kept; `null` keeps all.",
        examples=[{"TFBBB_KEEP_VERSIONS": 5, "TFBBB_VERSION_DAYS": None}],
    )
    num_things: int
    num_bytes: int
    things: list[Thing] = Field(description=f"The {_MOST} oldest ones.")
    problem: str | None = Field(
        description="Why it is not known what is kept, such as that no model answers."
    )


class RetentionReport(BaseModel):
    """What the settings no longer keep, by kind."""

    kinds: list[ThingsOfKind]

    @classmethod
    def of(cls, state: ServiceState, outcomes: Sequence[Outcome]) -> Self:
        """Describes what was found or removed."""
        return cls(
            kinds=[
                ThingsOfKind(
                    kind=outcome.kind.name,
                    settings=dict(outcome.kind.limits(state)),
                    num_things=len(outcome.items),
                    num_bytes=outcome.num_bytes,
                    things=[
                        Thing.model_validate(item, from_attributes=True)
                        for item in outcome.items[:_MOST]
                    ],
                    problem=outcome.problem,
                )
                for outcome in outcomes
            ]
        )
