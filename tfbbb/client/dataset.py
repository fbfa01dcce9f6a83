from typing import Any

from tfbbb.client.resource import Resource


class Dataset(Resource):
    """An uploaded table.

    Attributes:
        id: Its id.
        name: Its name.
        details: The service's whole answer: columns with their statistics, problems.
    """

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return int(self.details["num_rows"])

    @property
    def columns(self) -> list[dict[str, Any]]:
        """Of each column name, type and statistics."""
        return list(self._described()["columns"])

    @property
    def problems(self) -> list[dict[str, Any]]:
        """What was found that may spoil a training: a `message`, and its `column`."""
        return list(self._described()["problems"])

    def delete(self) -> None:
        """Removes the table from the service."""
        self._connection.ask("DELETE", f"/v1/datasets/{self.id}")

    def _described(self) -> dict[str, Any]:
        if "columns" not in self.details:  # It comes from a list.
            self.details = self._connection.ask("GET", f"/v1/datasets/{self.id}")
        return self.details

    def __repr__(self) -> str:
        return f"Dataset(id={self.id!r}, name={self.name!r}, num_rows={self.num_rows})"
