"""`/v1/models/NAME/labels`: list, move and delete labels."""

import asyncio
from datetime import datetime
from typing import Annotated

from fastapi import Path
from pydantic import BaseModel, Field

from service.api.http.routes import ModelName, scoped_router
from service.api.keys.keyring import Training, may_predict
from service.api.labels import repository
from service.api.state import State
from service.predicting.descriptions import ModelStatus
from service.shared.database.tables import Label
from service.shared.errors import LabelRefused
from service.shared.versions import LATEST
from tfbbb.base.known_fields import KnownFields
from tfbbb.base.texts import MODEL_NAME, MOST_VERSIONS

_ABOUT = "A label, e.g. `champion`; `latest` is the version that predicts by default."
LabelName = Annotated[str, Path(description=_ABOUT)]
NewLabelName = Annotated[str, Path(description=_ABOUT, pattern=f"^{MODEL_NAME}$")]


class LabelTarget(
    KnownFields, frozen=True, json_schema_extra={"examples": [{"version": 1}]}
):
    """The version to which a label moves."""

    version: int = Field(ge=0, le=MOST_VERSIONS, strict=True)


class LabelStatus(BaseModel):
    """A label and its version."""

    label: str
    version: int
    moved_at: datetime | None = Field(description="`null` if `latest` moved by itself.")


class LabelList(BaseModel):
    """The labels of a model."""

    labels: list[LabelStatus]


router = scoped_router("/v1/models/{name}/labels", "labels", may_predict)


@router.get("", summary="List the labels of a model")
async def list_labels(state: State, name: ModelName) -> LabelList:
    """Lists the labels with their versions, `latest` first."""
    status = await state.models.model(name)
    rows = await asyncio.to_thread(repository.list_labels, state.database, name)
    made = await asyncio.to_thread(repository.made_latest, state.database, name)
    labels = list(map(_describe, rows))
    for number in map(int, status.labels.values()):
        if made is None or made.number != number:
            made = Label(name=name, label=LATEST, number=number)
        labels.insert(0, _describe(made))
    return LabelList(labels=labels)


@router.get("/{label}", summary="Describe the version behind a label")
async def get_label(state: State, name: ModelName, label: LabelName) -> ModelStatus:
    """Returns the state, the features and the metrics of the version."""
    version = await state.routes.find(name, label)
    return await state.models.version(name, version)


@router.put("/{label}", summary="Point a label at a version")
async def put_label(
    state: State,
    caller: Training,
    name: ModelName,
    label: NewLabelName,
    target: LabelTarget,
) -> LabelStatus:
    """Creates or moves a label, if its version predicts.

    The version to which `latest` moves is `latest` until a newer one is published.
    """
    problem = await state.models.load(name, target.version)
    if problem is not None:
        raise LabelRefused(
            f"Version {target.version} of the model {name!r} cannot predict: {problem}"
        )
    moved = await asyncio.to_thread(
        repository.move, state.database, name, label, target.version, caller.key_id
    )
    if label == LATEST:
        await state.models.load_newest(name)
    return _describe(moved)


@router.delete("/{label}", status_code=204, summary="Delete a label")
async def delete_label(
    state: State, _: Training, name: ModelName, label: NewLabelName
) -> None:
    """Deletes the label, but not its version.

    `latest` is then the newest version again.
    """
    await asyncio.to_thread(repository.delete, state.database, name, label)


def _describe(row: Label) -> LabelStatus:
    fields = {"label": row.label, "version": row.number, "moved_at": row.moved_at}
    return LabelStatus.model_validate(fields)
