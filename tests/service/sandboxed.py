"""Tables that are read without a process of their own, which takes a second."""

import asyncio
from contextlib import contextmanager
from unittest import mock

from service.api import sandbox
from service.sandbox.__main__ import run


async def _run_here(name, task):
    lines = []
    text = task.model_dump_json()
    lines.append(
        await asyncio.to_thread(
            run, name, text, lambda progress: lines.append({"progress": progress})
        )
    )
    for line in lines:
        yield line


@contextmanager
def reading_here():
    """Reads tables in this process until the block ends, without limits of memory."""
    with (
        mock.patch.object(sandbox, "_run", _run_here),
        mock.patch("service.sandbox.limits._limit"),
    ):
        yield
