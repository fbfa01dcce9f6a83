"""The bodies and paths of `/v1/models`."""

from datetime import UTC, datetime
from typing import Annotated, Self

from fastapi import Path
from pydantic import BaseModel, Field

from service.shared.database.tables import ModelVersion
from service.shared.json_types import JsonObject
from service.shared.model_messages import ModelStatus
from tfbbb.base.texts import MOST_VERSIONS

ModelName = Annotated[
    str,
    Path(
        description="Name of a model; `GET /v1/models` lists the names.",
        openapi_examples={"of `make demo`": {"value": "diabetes"}},
    ),
]
VersionNumber = Annotated[
    int,
    Path(
        ge=0,
        le=MOST_VERSIONS,
        description="Number of a version.",
        openapi_examples={"first": {"value": 1}},
    ),
]


class Lineage(BaseModel):
    """The origin of a version."""

    digest: str = Field(
        description="SHA-256 of the manifest, which contains those of all files."
    )
    published_at: datetime
    job_id: str | None = Field(
        description="`null` if the version was copied into the models directory."
    )
    source: JsonObject = Field(
        description="Dataset, spec, seed and code of the training."
    )

    @classmethod
    def from_row(cls, row: ModelVersion) -> Self:
        """Creates the lineage from a row of the database."""
        return cls(
            digest=row.digest,
            published_at=datetime.fromtimestamp(row.created_at, UTC),
            job_id=row.job_id,
            source=row.lineage,
        )


class VersionDetails(ModelStatus):
    """The state, the description and the lineage of one version."""

    lineage: Lineage | None = Field(
        description="`null` if the version is incomplete or not recorded yet."
    )


class Report(BaseModel):
    """What a training measured, on rows that fitted nothing but the explanations.

    The section "The report of a version" of `docs/service.md` shows every field.
    """

    format: int = Field(examples=[1])
    task: str = Field(examples=["regression"])
    target: str = Field(examples=["progression"])
    classes: list[str] = Field(description="Empty for numbers.", examples=[[]])
    metrics: dict[str, float | None] = Field(examples=[{"rmse": 54.1}])
    metrics_from: str = Field(
        description="Which rows the figures are of.",
        examples=["44 rows that no member trained on"],
    )
    judgement: JsonObject = Field(
        description="The `figures` beside those of baselines, with `sentences`."
    )
    remarks: list[str] = Field(
        default=[],
        description="Sentences on columns that may make the figures too good, and on "
        "rows that are too few for them.",
        examples=[[]],
    )
    calibration: JsonObject = Field(
        description="The `coverage` of intervals by their `levels`; of classes the "
        "`accuracy` by bins of `confidence`. `lower` and `upper` are the 95 % sampling "
        "band of a calibrated model."
    )
    held_out: JsonObject = Field(
        description="At most 500 rows: `target`, `mean` and `intervals`; of classes "
        "`probabilities`."
    )
    diagnosis: JsonObject = Field(
        default={"figures": [], "findings": []},
        description="What the weights learned: `figures`, each with a `sentence`, and "
        "`findings`, which say what is wrong and what to try. Reports of earlier "
        "releases have none.",
    )
    importance: JsonObject | None = Field(
        description="The permutation importance of the `columns`; `null` if there was "
        "no time for it."
    )
    effects: list[JsonObject] = Field(
        description="Mean predictions by the values of a column, with 90 % epistemic "
        "bands, of at most 12 columns."
    )
    variance_split: JsonObject = Field(
        description="The epistemic and aleatoric variance of at most 500 rows; of "
        "classes entropies in nats."
    )
    tried: JsonObject = Field(
        description="The `networks`, `likelihoods` and `recalibration` that were tried."
    )
