"""Moves a label to versions that predict and pass the gate."""

import asyncio
from collections.abc import Mapping

from service.api.feedback import repository as feedback
from service.api.feedback.schemas import running_figures
from service.api.keys.caller import Caller
from service.api.labels import repository
from service.api.labels.gate import Gate, GateError
from service.api.labels.schemas import LabelTarget
from service.api.state import ServiceState
from service.shared.database.tables import Label
from service.shared.errors import (
    InvalidRequest,
    LabelRefused,
    UnknownLabel,
    UnknownModel,
)
from service.shared.route import LATEST
from tfbbb.base.texts import is_model_name


async def move_label(
    state: ServiceState, caller: Caller, name: str, label: str, target: LabelTarget
) -> Label:
    """Points a label at versions, if all load and those that answer pass the gate."""
    check_name(label)
    others = (target.versions, target.shadow, target.gate)
    if label == LATEST and any(other is not None for other in others):
        raise LabelRefused(
            f"`{LATEST}` moves to one `version`, without a canary, a shadow or a gate; "
            "choose another label for these.",
            "label",
        )
    current = await _current_version(state, name, label)
    route = target.route(current)
    for number in route.numbers:
        problem = await state.models.load(name, number)
        if problem is not None:
            raise LabelRefused(
                f"Version {number} of the model {name!r} cannot predict: {problem}"
            )
    if target.gate is not None and not target.force and current is not None:
        for number in target.weights:
            if number != current:
                await _check_gate(state, name, label, current, number, target.gate)
    was = None
    if label == LATEST and current is None:
        by_itself = (await state.models.model(name)).labels.get(LATEST)
        was = None if by_itself is None else int(by_itself)
    moved = await asyncio.to_thread(
        repository.move,
        state.database,
        name,
        label,
        route,
        seen_at=current,
        key_id=caller.key_id,
        was=was,
    )
    if label == LATEST:
        await state.models.load_newest(name)
    return moved


async def _check_gate(
    state: ServiceState, name: str, label: str, current: int, number: int, gate: Gate
) -> None:
    """Raises `LabelRefused` unless requests may go to a version as to the current."""
    try:
        gate.check(
            await _figures(state, name, current, gate),
            await _figures(state, name, number, gate),
        )
    except GateError as error:
        raise LabelRefused(
            f"The label {label!r} cannot move from version {current} to version "
            f"{number}: {error}. `force` moves the label without this check."
        ) from None


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
        route = await asyncio.to_thread(
            repository.find_route, state.database, name, label
        )
    except UnknownLabel:
        return None
    return route.version


async def _figures(
    state: ServiceState, name: str, version: int, gate: Gate
) -> Mapping[str, float]:
    if gate.min_feedback_rows is not None:
        return await _feedback_figures(state, name, version, gate.min_feedback_rows)
    try:
        status = await state.models.version(name, version)
    except UnknownModel as error:
        raise GateError(str(error)) from None
    if status.description is None:
        (version_status,) = status.model_version_status
        raise GateError(version_status.status.error_message)
    return status.description.metrics


async def _feedback_figures(
    state: ServiceState, name: str, version: int, min_rows: int
) -> Mapping[str, float]:
    row = await asyncio.to_thread(feedback.find, state.database, name, version)
    num_rows = 0 if row is None else row.num_rows
    if row is None or num_rows < min_rows:
        raise GateError(
            f"version {version} has feedback about {num_rows} rows, and the gate needs "
            f"{min_rows}"
        )
    return {figure: mean for figure, (mean, _) in running_figures(row).items()}
