import asyncio
import logging

from service.api.models.client import ModelsClient
from service.shared.errors import Unavailable, UnknownModel

logger = logging.getLogger(__name__)

_PATIENCE = 10.0


class Charge:
    """Sees to it that who hears of a job's success is answered by its version.

    The models process finds new versions by itself, but a moment later: until then the
    version before answers requests that name none.

    Args:
        models: The models, in their process.
    """

    def __init__(self, models: ModelsClient) -> None:
        self._models = models
        self._taken: dict[str, int] = {}

    async def taken(self, name: str, version: int) -> None:
        """Returns once a published version, or a newer one, answers for its model.

        A success is told all the same, and late rather than never, where the models
        process is not up or loads for longer than ten seconds.
        """
        if self._taken.get(name, 0) >= version:
            return
        try:
            async with asyncio.timeout(_PATIENCE):
                await self._models.take_newest(name)
        except UnknownModel:
            pass  # It has been deleted since.
        except (Unavailable, TimeoutError) as error:
            logger.info(
                "version %d of the model %r does not answer yet: %s",
                version,
                name,
                str(error) or f"it loads for more than {_PATIENCE:.0f} s",
            )
            return
        self._taken[name] = max(version, self._taken.get(name, 0))
