"""The processes around an API process: of the first one, and of further ones."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from service.api.child_processes import child_processes, model_sockets
from service.api.models.followed_homes import FollowedHomes
from service.api.models.home_table import HomeTable
from service.api.models.homes import Homes
from service.api.models.host import ModelHost
from service.shared.settings import Settings
from service.shared.temporary import temporary_directory


@asynccontextmanager
async def first_process(
    settings: Settings, listener: socket.socket | None, stopping: asyncio.Event
) -> AsyncIterator[HomeTable]:
    """Runs the other processes until the block ends, and assigns models to them."""
    # The path of a socket may have only about a hundred characters.
    with temporary_directory("sockets") as path:
        async with child_processes(settings, path, stopping, listener) as models:
            yield Homes([ModelHost(*pair) for pair in models.items()], settings)


@asynccontextmanager
async def further_process(
    settings: Settings, directory: Path
) -> AsyncIterator[HomeTable]:
    """Connects to the model processes that the first API process runs."""
    hosts = [ModelHost(path) for path in model_sockets(settings, directory)]
    yield FollowedHomes(hosts, settings)
