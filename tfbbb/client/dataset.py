"""A dataset of the service."""

from tfbbb.base.types import JsonObject
from tfbbb.client.resource import Resource


class Dataset(Resource):
    """An uploaded table.

    Attributes:
        id: Id of the dataset.
        name: Name of the dataset.
        details: The service's whole response: columns with their statistics, problems.
    """

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return int(self.details["num_rows"])

    @property
    def columns(self) -> list[JsonObject]:
        """Name, type and statistics of each column."""
        return list(self._fetch_details()["columns"])

    @property
    def problems(self) -> list[str]:
        """What the whole table needs before training, and how it was read.

        The `remarks` of each column say how the column was understood.
        """
        return list(self._fetch_details()["problems"])

    def delete(self) -> None:
        """Deletes the dataset from the service."""
        self._connection.request("DELETE", f"/v1/datasets/{self.id}")

    def _fetch_details(self) -> JsonObject:
        # The entries of a list of datasets lack the columns.
        if "columns" not in self.details:
            self.details = self._connection.request("GET", f"/v1/datasets/{self.id}")
        return self.details

    def __repr__(self) -> str:
        return f"Dataset(id={self.id!r}, name={self.name!r}, num_rows={self.num_rows})"
