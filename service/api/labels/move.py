"""Moves a label to a version that predicts."""

import asyncio

from service.api.keys.caller import Caller
from service.api.labels import repository
from service.api.labels.schemas import LabelTarget
from service.api.state import ServiceState
from service.shared.database.tables import Label
from service.shared.errors import InvalidRequest, LabelRefused, UnknownLabel
from service.shared.versions import LATEST
from tfbbb.base.texts import is_model_name


async def move_label(
    state: ServiceState, caller: Caller, name: str, label: str, target: LabelTarget
) -> Label:
    """Points a label at a version, if it loads."""
    check_name(label)
    current = await _current_version(state, name, label)
    problem = await state.models.load(name, target.version)
    if problem is not None:
        raise LabelRefused(
            f"Version {target.version} of the model {name!r} cannot predict: {problem}"
        )
    was = None
    if label == LATEST and current is None:
        by_itself = (await state.models.model(name)).labels.get(LATEST)
        was = None if by_itself is None else int(by_itself)
    moved = await asyncio.to_thread(
        repository.move,
        state.database,
        name,
        label,
        target.version,
        seen_at=current,
        key_id=caller.key_id,
        was=was,
    )
    if label == LATEST:
        await state.models.load_newest(name)
    return moved


def check_name(label: str) -> None:
    """Raises unless a label may have this name."""
    if not is_model_name(label):
        raise InvalidRequest(
            "A label must be 1 to 128 letters, digits, `_`, `-` and `.`, and begin "
            f"with a letter or digit. Received: {label!r:.100}",
            "label",
        )


async def _current_version(state: ServiceState, name: str, label: str) -> int | None:
    try:
        return await asyncio.to_thread(
            repository.find_version, state.database, name, label
        )
    except UnknownLabel:
        return None
