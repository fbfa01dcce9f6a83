"""Delays reporting a success until the new version serves requests."""

import asyncio
import logging

from service.predicting.models import Models
from service.shared.errors import Unavailable, UnknownModel

logger = logging.getLogger(__name__)

_SECONDS_TO_LOAD = 10.0


class LatestVersionBarrier:
    """Delays reporting a job's success until its version serves requests.

    The API processes find new versions by themselves, but a moment later. Until then
    the previous version answers requests that name no version.
    """

    def __init__(self, models: Models) -> None:
        self._models = models
        self._latest: dict[str, int] = {}

    async def wait_for(self, name: str, version: int) -> None:
        """Waits until a published version, or a newer one, is `latest`.

        Gives up after ten seconds, so that a success is always reported.
        """
        if self._latest.get(name, 0) >= version:
            return
        try:
            async with asyncio.timeout(_SECONDS_TO_LOAD):
                await self._models.load_newest(name)
        except UnknownModel:
            pass  # The model was deleted meanwhile.
        except (Unavailable, TimeoutError) as error:
            logger.info(
                "version %d of the model %r does not serve requests yet: %s",
                version,
                name,
                str(error) or f"loading takes longer than {_SECONDS_TO_LOAD:.0f} s",
            )
            return
        self._latest[name] = max(version, self._latest.get(name, 0))
