from typing import Any

from tfbbb.client.connection import Connection


class Resource:
    """Something that the service keeps, as it was when it was last asked.

    Attributes:
        id: Its id.
        name: Its name.
        details: The service's whole answer.
    """

    def __init__(self, connection: Connection, details: dict[str, Any]) -> None:
        self._connection = connection
        self.details = details

    @property
    def id(self) -> str:
        return str(self.details["id"])

    @property
    def name(self) -> str:
        return str(self.details["name"])
