"""The base class of datasets and jobs."""

from tfbbb.base.types import JsonObject
from tfbbb.client.connection import Connection


class Resource:
    """A resource of the service, as of the last request.

    Attributes:
        id: Id of the resource.
        name: Name of the resource.
        details: The service's whole response.
    """

    def __init__(self, connection: Connection, details: JsonObject) -> None:
        self._connection = connection
        self.details = details

    @property
    def id(self) -> str:
        return str(self.details["id"])

    @property
    def name(self) -> str:
        return str(self.details["name"])
