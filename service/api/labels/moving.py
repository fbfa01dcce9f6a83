"""Moves a label to a version that answers and passes the gate."""

import asyncio
from collections.abc import Mapping

from service.api.keys.caller import Caller
from service.api.labels import repository
from service.api.labels.gate import GateError
from service.api.labels.schemas import LATEST, LabelTarget
from service.api.models.client import ModelsClient
from service.api.state import ServiceState
from service.shared.database.tables import Label
from service.shared.errors import (
    InvalidRequest,
    LabelRefused,
    UnknownLabel,
    UnknownModel,
)
from service.shared.model_name import is_model_name


async def move_label(
    state: ServiceState, caller: Caller, name: str, label: str, target: LabelTarget
) -> Label:
    """Points a label at a version, if that answers and the gate lets it pass.

    Raises:
        InvalidRequest: If nothing can be called so.
        UnknownModel: If there is no such version.
        LabelRefused: If the version does not answer, or is worse than the gate allows.
        Unavailable: If the models can't be asked.
    """
    check_may_move(label)
    problem = await state.models.load(name, target.version)
    if problem is not None:
        raise LabelRefused(
            f"Version {target.version} of the model {name!r} does not answer: {problem}"
        )
    current = await _version_now(state, name, label)
    if target.gate is not None and not target.force and current is not None:
        try:
            target.gate.check(
                await _figures(state.models, name, current),
                await _figures(state.models, name, target.version),
            )
        except GateError as error:
            raise LabelRefused(
                f"Version {target.version} may not take the place of version {current} "
                f"as {label!r}: {error}. `force` moves the label in any case."
            ) from None
    return await asyncio.to_thread(
        repository.move,
        state.database,
        name,
        label,
        target.version,
        seen_at=current,
        key_id=caller.key_id,
    )


def check_may_move(label: str) -> None:
    """Raises unless users may move, or remove, a label of this name."""
    if label == LATEST:
        raise LabelRefused(
            f"`{LATEST}` follows the newest version that answers by itself; choose "
            "another name."
        )
    if not is_model_name(label):
        raise InvalidRequest(
            "A label is up to 128 letters, digits, `_`, `-` and `.`, the first a "
            f"letter or a digit. Received: {label!r:.100}"
        )


async def _version_now(state: ServiceState, name: str, label: str) -> int | None:
    try:
        return await repository.resolve(state.database, name, label)
    except UnknownLabel:
        return None


async def _figures(
    models: ModelsClient, name: str, version: int
) -> Mapping[str, float]:
    try:
        status = await models.version(name, version)
    except UnknownModel as error:
        raise GateError(str(error)) from None
    if status.description is None:
        (version_status,) = status.model_version_status
        raise GateError(version_status.status.error_message)
    return status.description.metrics
