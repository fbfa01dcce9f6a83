import secrets
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from tfbbb.client.connection import Connection
from tfbbb.client.dataset import Dataset
from tfbbb.client.job import Job
from tfbbb.client.upload import Progress, uploading

if TYPE_CHECKING:
    from tfbbb.client.model import Model


class Client:
    """A training service, asked from a program. Needs no TensorFlow.

    Requests that may be sent twice are sent again when no answer comes; whatever goes
    wrong in the end is a `ClientError` of one sentence.

    Args:
        url: Address of the service; by default the environment variable `TFBBB_URL`,
            else that of `tfbbb serve` on this machine.
        key: API key; by default `TFBBB_KEY`.

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
        self, table: Any, *, name: str | None = None, progress: Progress | None = None
    ) -> Dataset:
        """Sends a table to the service.

        Args:
            table: Path of a CSV, gzipped CSV, Parquet or Arrow file, which is streamed
                as it is, or a table of pyarrow, pandas or polars.
            name: Name of the dataset; by default that of the file.
            progress: Called with the bytes that are sent and those in all.
        """
        with uploading(table, name, progress) as upload:
            details = self._connection.ask(
                "POST",
                "/v1/datasets",
                params={"name": upload.name},
                content=upload,
                headers=upload.headers,
            )
        return Dataset(self._connection, details)

    def dataset(self, id: str) -> Dataset:
        """Looks a dataset up."""
        details = self._connection.ask("GET", f"/v1/datasets/{id}")
        return Dataset(self._connection, details)

    def datasets(self) -> Iterator[Dataset]:
        """Gives the datasets, newest first."""
        for details in self._pages("/v1/datasets", "datasets", {}):
            yield Dataset(self._connection, details)

    def train(
        self, dataset: Dataset | str, target: str, *, name: str, **spec: Any
    ) -> Job:
        """Queues a job that trains the next version of a model.

        Args:
            dataset: The table, or its id.
            target: The column to predict.
            name: Name of the model.
            spec: What is to be other than by default, as `POST /v1/jobs` takes it:
                `features`, `task`, `text_columns`, `model`, `training`, `start_from`,
                `priority`.
        """
        dataset_id = dataset.id if isinstance(dataset, Dataset) else dataset
        body = {"dataset_id": dataset_id, "target": target, "name": name, **spec}
        details = self._connection.ask(
            "POST",
            "/v1/jobs",
            # Sent again after a lost answer, it does not train twice.
            idempotent=True,
            json=body,
            headers={"Idempotency-Key": secrets.token_hex(16)},
        )
        return Job(self._connection, details)

    def job(self, id: str) -> Job:
        """Looks a job up."""
        return Job(self._connection, self._connection.ask("GET", f"/v1/jobs/{id}"))

    def jobs(
        self,
        *,
        state: str | None = None,
        name: str | None = None,
        dataset: Dataset | str | None = None,
    ) -> Iterator[Job]:
        """Gives the jobs, newest first.

        Args:
            state: Of those, the ones in this state.
            name: Of those, the ones for this model.
            dataset: Of those, the ones that train on this dataset.
        """
        dataset_id = dataset.id if isinstance(dataset, Dataset) else dataset
        wanted = {"state": state, "name": name, "dataset_id": dataset_id}
        for details in self._pages("/v1/jobs", "jobs", wanted):
            yield Job(self._connection, details)

    def models(self) -> list[dict[str, Any]]:
        """Lists what is served: of each model its name, target and versions."""
        return list(self._connection.ask("GET", "/v1/models")["models"])

    def model(self, name: str) -> "Model":
        """A model by its name; nothing is asked yet."""
        from tfbbb.client.model import Model

        return Model(self._connection, name)

    def create_key(
        self,
        name: str,
        scopes: Sequence[str],
        *,
        expires_in_seconds: float | None = None,
    ) -> str:
        """Makes an API key; needs one with the scope `admin`.

        Args:
            name: What the key is for.
            scopes: `predict`, `train`, which includes it, or `admin`.
            expires_in_seconds: When it ends; by default it does not.

        Returns:
            The key, which the service does not keep.
        """
        body = {
            "name": name,
            "scopes": list(scopes),
            "expires_in_seconds": expires_in_seconds,
        }
        return str(self._connection.ask("POST", "/v1/keys", json=body)["key"])

    def keys(self) -> list[dict[str, Any]]:
        """Lists the API keys, without their secrets."""
        return list(self._connection.ask("GET", "/v1/keys")["keys"])

    def revoke_key(self, id: str) -> None:
        """Refuses a key from now on."""
        self._connection.ask("DELETE", f"/v1/keys/{id}")

    def close(self) -> None:
        """Closes the connections that are kept open."""
        self._connection.close()

    def _pages(
        self, path: str, what: str, wanted: dict[str, str | None]
    ) -> Iterator[dict[str, Any]]:
        given = {key: value for key, value in wanted.items() if value is not None}
        while True:
            page = self._connection.ask("GET", path, params=given)
            yield from page[what]
            if page["next_cursor"] is None:
                return
            given["cursor"] = page["next_cursor"]

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
