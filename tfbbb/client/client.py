"""The client of the training service."""

import secrets
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from tfbbb.base.types import JsonObject, TableLike
from tfbbb.client.connection import Connection
from tfbbb.client.dataset import Dataset
from tfbbb.client.job import Job
from tfbbb.client.upload import Progress, open_upload

if TYPE_CHECKING:
    from tfbbb.client.model import Model


class Client:
    """A client of the training service. Needs no TensorFlow.

    Retries idempotent requests that get no response. Raises a `ClientError` with a
    message of one sentence if a request fails.

    Args:
        url: Address of the service. Defaults to the environment variable `TFBBB_URL`,
            else to the default address of `tfbbb serve` on this machine.
        key: API key. Defaults to the environment variable `TFBBB_KEY`.

    Example:

        from tfbbb.client import Client

        with Client("http://127.0.0.1:8000", "prefix.secret") as client:
            dataset = client.upload("houses.csv")
            job = client.train(dataset, "price", name="houses")
            job.wait(progress=print)
            prediction = job.model.predict(new_houses, quantiles=[0.05, 0.95])
            print(prediction.mean, prediction.interval(0.9))
    """

    def __init__(self, url: str | None = None, key: str | None = None) -> None:
        self._connection = Connection(url, key)
        self.url = self._connection.url

    def upload(
        self,
        table: TableLike,
        *,
        name: str | None = None,
        progress: Progress | None = None,
    ) -> Dataset:
        """Uploads a table to the service.

        Args:
            table: Path of a CSV, gzipped CSV, Parquet or Arrow file, which is streamed
                unchanged, or a table of pyarrow, pandas or polars.
            name: Name of the dataset. Defaults to the name of the file.
            progress: Called with the number of bytes sent and the total.
        """
        with open_upload(table, name, progress) as upload:
            details = self._connection.request(
                "POST",
                "/v1/datasets",
                params={"name": upload.name},
                content=upload,
                headers=upload.headers,
            )
        return Dataset(self._connection, details)

    def dataset(self, id: str) -> Dataset:
        """Returns the dataset with an id."""
        details = self._connection.request("GET", f"/v1/datasets/{id}")
        return Dataset(self._connection, details)

    def datasets(self) -> Iterator[Dataset]:
        """Yields the datasets, newest first."""
        for details in self._iterate_pages("/v1/datasets", "datasets", {}):
            yield Dataset(self._connection, details)

    def train(
        self,
        dataset: Dataset | str,
        target: str | Sequence[str],
        *,
        name: str,
        **spec: object,
    ) -> Job:
        """Queues a job that trains the next version of a model.

        Args:
            dataset: The table, or its id.
            target: The column to predict, or several columns of numbers to predict
                together.
            name: Name of the model.
            spec: Non-default options of `POST /v1/jobs`: `features`, `task`,
                `model`, `training`, `start_from`, `priority`.
        """
        dataset_id = dataset.id if isinstance(dataset, Dataset) else dataset
        body = {"dataset_id": dataset_id, "target": target, "name": name, **spec}
        details = self._connection.request(
            "POST",
            "/v1/jobs",
            # The idempotency key makes a retry return the job of the first request.
            idempotent=True,
            json=body,
            headers={"Idempotency-Key": secrets.token_hex(16)},
        )
        return Job(self._connection, details)

    def job(self, id: str) -> Job:
        """Returns the job with an id."""
        return Job(self._connection, self._connection.request("GET", f"/v1/jobs/{id}"))

    def jobs(
        self,
        *,
        state: str | None = None,
        name: str | None = None,
        dataset: Dataset | str | None = None,
    ) -> Iterator[Job]:
        """Yields the jobs, newest first.

        Args:
            state: Yield only jobs in this state.
            name: Yield only jobs that train this model.
            dataset: Yield only jobs that train on this dataset.
        """
        dataset_id = dataset.id if isinstance(dataset, Dataset) else dataset
        filters = {"state": state, "name": name, "dataset_id": dataset_id}
        for details in self._iterate_pages("/v1/jobs", "jobs", filters):
            yield Job(self._connection, details)

    def models(self, search: str = "") -> list[JsonObject]:
        """Lists the models, each with its name, target and versions.

        Args:
            search: A part of the name, of a target or of a label; empty for all models.
        """
        params = {"search": search} if search else {}
        answer = self._connection.request("GET", "/v1/models", params=params)
        return list(answer["models"])

    def model(self, name: str) -> "Model":
        """Returns the model of a name, without a request."""
        from tfbbb.client.model import Model

        return Model(self._connection, name)

    def create_key(
        self,
        name: str,
        scopes: Sequence[str],
        *,
        expires_in_seconds: float | None = None,
    ) -> str:
        """Creates an API key. The client's own key needs the scope `admin`.

        Args:
            name: Purpose of the new key.
            scopes: Any of `metrics`, `predict` (includes `metrics`), `train` (includes
                `predict`) and `admin`.
            expires_in_seconds: Seconds until the new key expires. None means never.

        Returns:
            The new key. The service stores only a hash of the key.
        """
        body = {
            "name": name,
            "scopes": list(scopes),
            "expires_in_seconds": expires_in_seconds,
        }
        return str(self._connection.request("POST", "/v1/keys", json=body)["key"])

    def keys(self) -> list[JsonObject]:
        """Lists the API keys, without their secrets."""
        return list(self._connection.request("GET", "/v1/keys")["keys"])

    def revoke_key(self, id: str) -> None:
        """Revokes an API key; the service refuses the key from then on."""
        self._connection.request("DELETE", f"/v1/keys/{id}")

    def close(self) -> None:
        """Closes the open connections to the service."""
        self._connection.close()

    def _iterate_pages(
        self, path: str, collection: str, filters: dict[str, str | None]
    ) -> Iterator[JsonObject]:
        params = {key: value for key, value in filters.items() if value is not None}
        while True:
            page = self._connection.request("GET", path, params=params)
            yield from page[collection]
            if page["next_cursor"] is None:
                return
            params["cursor"] = page["next_cursor"]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        type_: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client({self.url!r})"
