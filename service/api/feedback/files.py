"""Feedback from the rows of a file."""

import asyncio
import hashlib

from fastapi import Request
from pydantic import TypeAdapter

from service.api.datasets.uploading import ReceivedFile, receive_file
from service.api.feedback import repository
from service.api.feedback.schemas import FileFeedbackAnswer
from service.api.http.disconnect import unless_disconnected
from service.api.http.media_types import check_not_encoded
from service.api.keys.caller import get_caller
from service.api.predictions.files import (
    ask_patiently,
    find_description,
    text_columns,
)
from service.api.state import ServiceState
from service.shared.errors import InvalidRequest
from service.shared.file_rows import FileTask
from service.shared.inspection import Limits
from service.shared.json_types import JsonObject
from service.shared.model_messages import Description, ScoredRows
from tfbbb.tables.column_faults import ColumnFaults

# All of them are counted in one transaction.
_MOST_ROWS = 100_000
_SCORED = TypeAdapter(list[ScoredRows])


async def count_file(
    state: ServiceState, request: Request, name: str, version: int
) -> FileFeedbackAnswer:
    """Counts the rows of a file, all of them or none, and the same rows once."""
    check_not_encoded(request)
    _, description = await find_description(state, name, version)
    if description.target is None:
        raise InvalidRequest("No table trained this version: send rows as JSON.")
    received = await receive_file(state, request)
    try:
        working = _score(state, name, version, description, received)
        scored, sha256, end = await unless_disconnected(request, working)
        receipt = repository.Receipt(
            get_caller(request).key_id,
            f"rows {sha256} of {name} {version}",
            sha256,
        )
        earlier = await asyncio.to_thread(
            repository.find_counted, state.database, receipt
        )
        models = state.queue.store.models
        counted = await asyncio.to_thread(
            repository.count, state.database, models, name, [scored], receipt
        )
    finally:
        received.file.close()
    return FileFeedbackAnswer(
        model_name=name,
        num_rows=counted,
        is_new=earlier is None,
        left_out=end["left_out"],
        remarks=[*end["remarks"], *scored.faults.describe()],
    )


async def _score(
    state: ServiceState,
    name: str,
    version: int,
    description: Description,
    received: ReceivedFile,
) -> tuple[ScoredRows, str, JsonObject]:
    """Scores the rows of a file."""
    assert description.target is not None
    texts = text_columns(description)
    if description.classes is not None or description.target_notation is not None:
        texts.append(description.target)
    task = FileTask(
        path=received.file.path,
        name=received.name,
        format=received.format,
        limits=Limits.from_settings(state.settings),
        features=[feature.name for feature in description.features],
        text_columns=texts,
        target=description.target,
        classes=description.classes,
        target_notation=description.target_notation,
        most_rows=_MOST_ROWS,
    )
    blocks: list[ScoredRows] = []
    digest = hashlib.sha256()

    async def ask(body: bytes | bytearray) -> bytes:
        with state.models.admit(len(body)):
            content = await state.models.score(name, version, body)
        digest.update(body)
        blocks.extend(await asyncio.to_thread(_SCORED.validate_json, content))
        return b""

    async with state.inspector.rows(task) as reader:
        block = await reader.ask()
        while "done" not in block.header:
            block = await ask_patiently(reader, block, ask)
    scored = await asyncio.to_thread(_joined, blocks)
    return scored, digest.hexdigest(), block.header


def _joined(blocks: list[ScoredRows]) -> ScoredRows:
    """Joins blocks of rows of one version."""
    first = blocks[0]
    return ScoredRows(
        version=first.version,
        num_rows=sum(block.num_rows for block in blocks),
        scores={
            name: [row for block in blocks for row in block.scores[name]]
            for name in first.scores
        },
        recorded=None,
        faults=ColumnFaults.joined(block.faults for block in blocks),
    )
