"""The homes of models as another API process has assigned them."""

import asyncio

from service.api.models.home_table import HomeTable


class FollowedHomes(HomeTable):
    """A table that is read from the model processes.

    The first API process tells the model processes of which models they are the homes;
    the others learn it here from what the model processes have loaded.
    """

    async def look(self) -> None:
        """Asks every process which models it has loaded."""
        reports = await asyncio.gather(*(self._ask(host, None) for host in self.hosts))
        known = [report.known for report in reports if report is not None]
        if known:
            self._table = {
                name: [host for host in self.hosts if name in host.settled]
                for names in known
                for name in names
            }
