"""The bodies of `/v1/models/NAME/labels`."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Self

from fastapi import Path
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    WithJsonSchema,
    model_validator,
)

from service.api.feedback.schemas import FeedbackSummary
from service.api.labels.gate import Gate
from service.shared.database.tables import Feedback, Label
from service.shared.route import LATEST, Route
from tfbbb.base.known_fields import KnownFields
from tfbbb.base.texts import MOST_VERSIONS

LabelName = Annotated[
    str,
    Path(
        description="A label, e.g. `champion`. `latest` is the version that predicts "
        "by default.",
        openapi_examples={"automatic": {"value": LATEST}},
    ),
]

Number = Annotated[int, Field(ge=0, le=MOST_VERSIONS)]
_SHARES = {
    "anyOf": [
        {
            "type": "object",
            "minProperties": 2,
            "maxProperties": 2,
            "propertyNames": {"pattern": "^[0-9]{1,19}$"},
            "additionalProperties": {
                "type": "number",
                "exclusiveMinimum": 0,
                "exclusiveMaximum": 1,
            },
        },
        {"type": "null"},
    ]
}

# Of the sum of weights, whose decimal fractions are no binary ones.
_ROUNDING = 1e-6


def _check_shares(given: object) -> dict[int, float] | None:
    """Checks the shares of two versions, and stops at the first fault."""
    if given is None:
        return None
    if not isinstance(given, Mapping) or len(given) != 2:
        raise ValueError("Must map two versions to their shares")
    for version, share in given.items():
        number = str(version)
        if not (number.isdecimal() and int(number[:20]) <= MOST_VERSIONS):
            raise ValueError(f"{number[:100]!r} is not the number of a version")
        if type(share) not in (int, float) or not 0 < share < 1:
            raise ValueError("A share must be a number between 0 and 1")
    shares = {int(version): float(share) for version, share in given.items()}
    if len(shares) < 2:
        raise ValueError("Must map two versions to their shares, not one twice")
    return shares


class LabelTarget(KnownFields):
    """The version to which a label moves, or two versions that share its requests."""

    model_config = ConfigDict(
        frozen=True, json_schema_extra={"examples": [{"version": 1}]}
    )

    version: Annotated[Number, Field(strict=True)] | None = Field(None, examples=[1])
    versions: Annotated[
        dict[int, float] | None,
        PlainValidator(_check_shares),
        WithJsonSchema(_SHARES),
    ] = Field(
        None,
        description="In place of `version`: the shares of the requests that two "
        "versions answer. The one that is not the label's present version is its "
        "canary; of a new label, the one with the smaller share.",
        examples=[None],
    )
    shadow: Annotated[Number, Field(strict=True)] | None = Field(
        None,
        description="A version that predicts the rows too, after the answer; feedback "
        "about recorded rows scores it.",
        examples=[None],
    )
    gate: Gate | None = Field(
        None,
        description="Bounds that refuse a version worse than the label's current one.",
    )
    force: bool = Field(
        False, description="Whether to move the label without the gate."
    )

    @model_validator(mode="after")
    def _check_versions(self) -> Self:
        if (self.version is None) == (self.versions is None):
            raise ValueError("give either `version` or `versions`")
        total = sum(self.weights.values())
        if abs(total - 1) > _ROUNDING:
            raise ValueError(f"the shares must add up to 1, not {total:g}")
        if self.shadow in self.weights:
            raise ValueError("`shadow` must be a version that does not answer")
        return self

    @property
    def weights(self) -> dict[int, float]:
        """The share of the requests that each version answers."""
        return self.versions or {self.version: 1.0}  # type: ignore[dict-item]

    def route(self, current: int | None) -> Route:
        """Returns the versions of a label; the other than the current is the canary."""
        weights = self.weights
        stable = max(weights, key=lambda number: (weights[number], -number))
        if current in weights:
            stable = current
        for canary, weight in weights.items():
            if canary != stable:
                return Route(stable, canary, weight, self.shadow)
        return Route(stable, shadow=self.shadow)


class CanaryStatus(BaseModel):
    """A version that answers a share of a label's requests."""

    version: int = Field(examples=[2])
    weight: float = Field(description="The share.", examples=[0.1])
    feedback: FeedbackSummary | None = None


class ShadowStatus(BaseModel):
    """A version that predicts the rows of a label's requests too."""

    version: int = Field(examples=[3])
    feedback: FeedbackSummary | None = None


class LabelStatus(BaseModel):
    """A label and its versions."""

    label: str = Field(examples=["champion"])
    version: int = Field(examples=[1])
    canary: CanaryStatus | None = Field(None, examples=[None])
    shadow: ShadowStatus | None = Field(None, examples=[None])
    moved_at: datetime | None = Field(
        description="Time of the last move; `null` where `latest` moved by itself."
    )
    feedback: FeedbackSummary | None = Field(
        None, description="The feedback about the version; `null` if there is none."
    )

    @classmethod
    def of(cls, row: Label, feedback: Mapping[int, Feedback]) -> Self:
        """Creates the status of a label."""
        canary = shadow = None
        if row.canary is not None and row.canary_weight is not None:
            canary = CanaryStatus(
                version=row.canary,
                weight=row.canary_weight,
                feedback=_summary(feedback, row.canary),
            )
        if row.shadow is not None:
            found = _summary(feedback, row.shadow)
            shadow = ShadowStatus(version=row.shadow, feedback=found)
        return cls(
            label=row.label,
            version=row.number,
            canary=canary,
            shadow=shadow,
            moved_at=datetime.fromtimestamp(row.moved_at, UTC),
            feedback=_summary(feedback, row.number),
        )

    @classmethod
    def of_latest(
        cls, version: int, made: Label | None, feedback: Mapping[int, Feedback]
    ) -> Self:
        """Creates the status of `latest`."""
        if made is not None and made.number == version:
            return cls.of(made, feedback)
        found = _summary(feedback, version)
        return cls(label=LATEST, version=version, moved_at=None, feedback=found)


class LabelList(BaseModel):
    """The labels of a model."""

    labels: list[LabelStatus]


def _summary(feedback: Mapping[int, Feedback], number: int) -> FeedbackSummary | None:
    row = feedback.get(number)
    return None if row is None else FeedbackSummary.from_row(row)
