from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any
from urllib.parse import quote

import orjson

from tfbbb.client.connection import Connection
from tfbbb.client.errors import ServiceError
from tfbbb.client.prediction import Prediction
from tfbbb.client.rows import Rows

_ROWS_AT_ONCE = 1000
_JSON = {"Content-Type": "application/json"}


def _plain(value: Any) -> Any:
    """What JSON has no type for, a decimal number say, in its nearest type."""
    return float(value) if isinstance(value, Decimal | Fraction) else str(value)


class Model:
    """A model of the service, with all its versions.

    Attributes:
        name: Its name.
        version: The version that answers where none is named; the service's `latest`
            if None.
    """

    def __init__(
        self, connection: Connection, name: str, version: int | None = None
    ) -> None:
        self._connection = connection
        self.name = name
        self.version = version

    def describe(self) -> dict[str, Any]:
        """What the service tells of the model: versions, features, held-out figures."""
        details: dict[str, Any] = self._connection.ask("GET", self._path)
        return details

    def describe_version(
        self, version: int | None = None, label: str | None = None
    ) -> dict[str, Any]:
        """What the service tells of one version; `self.version` by default.

        Args:
            version: The version.
            label: In the place of `version` the label of one.
        """
        path = self._path_of(version, label)
        details: dict[str, Any] = self._connection.ask("GET", path)
        return details

    def labels(self) -> dict[str, int]:
        """The versions that labels point at; `latest` answers when none is named."""
        listed = self._connection.ask("GET", f"{self._path}/labels")["labels"]
        return {label["label"]: label["version"] for label in listed}

    def set_label(
        self,
        label: str,
        version: int,
        *,
        max_nll_increase: float | None = None,
        max_coverage_drop: float | None = None,
        force: bool = False,
    ) -> None:
        """Points a label at a version that loads and answers.

        Args:
            label: The label, `champion` say.
            version: The version.
            max_nll_increase: Refuse a version whose held-out negative log-likelihood
                per row is higher than that of the label's by more than this, in nats.
            max_coverage_drop: Refuse one whose 90 % intervals hold a share of the
                held-out targets that is further from 0.9 by more than this.
            force: Point it there in any case.

        Raises:
            ServiceError: The version does not answer, or is worse.
        """
        bounds = {
            "max_nll_increase": max_nll_increase,
            "max_coverage_drop": max_coverage_drop,
        }
        gate = {name: bound for name, bound in bounds.items() if bound is not None}
        body = {"version": version, "force": force, "gate": gate or None}
        self._connection.ask("PUT", self._path_of(None, label), json=body)

    def delete_label(self, label: str) -> None:
        """Removes a label; its version stays."""
        self._connection.ask("DELETE", self._path_of(None, label))

    def delete_version(self, version: int) -> None:
        """Removes a version that nothing needs; its number stays taken."""
        self._connection.ask("DELETE", self._path_of(version, None))

    def predict(
        self,
        rows: Any,
        *,
        quantiles: Sequence[float] = (),
        num_samples: int | None = None,
        seed: int | None = None,
        return_samples: bool = False,
        version: int | None = None,
        label: str | None = None,
    ) -> Prediction:
        """Predicts rows; all of them by the same version.

        Args:
            rows: A table (pyarrow, pandas, polars), columns by name, a list of rows
                that are mappings, or a matrix in the order of the features. Columns
                that the model does not read are left aside.
            quantiles: Levels at which quantiles are wanted.
            num_samples: Draws of the weights; the model's own number by default.
            seed: Seed of the draws; the model's own by default.
            return_samples: Whether draws of the targets are wanted too.
            version: The version to ask; `self.version` by default.
            label: In the place of `version` the label of one.

        Raises:
            ServiceError: The rows do not fit the model, or there is no such version.
            ValueError: There are no rows, or both a version and a label.
        """
        table = Rows.of(rows)
        if not len(table):
            raise ValueError("There are no rows to predict. Received: an empty table")
        parameters: dict[str, Any] = {"return_samples": return_samples}
        if len(quantiles):
            parameters["quantiles"] = list(map(float, quantiles))
        if num_samples is not None:
            parameters["num_samples"] = num_samples
        if seed is not None:
            parameters["seed"] = seed
        path = self._path_of(version, label)
        answers = []
        for start in range(0, len(table), _ROWS_AT_ONCE):
            stop = min(start + _ROWS_AT_ONCE, len(table))
            body = {"inputs": table.between(start, stop), "parameters": parameters}
            answers.append(self._predict(path, body, start, stop))
            # A version that is published meanwhile does not answer the rest.
            path = self._path_of(int(answers[0]["model_version"]), None)
        return Prediction.of(answers, quantiles)

    def _predict(self, path: str, body: Any, start: int, stop: int) -> dict[str, Any]:
        option = orjson.OPT_SERIALIZE_NUMPY
        content = orjson.dumps(body, default=_plain, option=option)
        try:
            answer: dict[str, Any] = self._connection.ask(
                "POST",
                f"{path}:predict",
                idempotent=True,
                content=content,
                headers=_JSON,
            )
        except ServiceError as error:
            if start == 0:
                raise
            message = f"Of the rows {start + 1} to {stop}: {error.message}"
            raise ServiceError(error.status, message) from None
        return answer

    @property
    def _path(self) -> str:
        return f"/v1/models/{quote(self.name, safe='')}"

    def _path_of(self, version: int | None, label: str | None) -> str:
        if version is not None and label is not None:
            raise ValueError(
                f"Give `version` or `label`. Received: version={version}, "
                f"label={label!r}"
            )
        if label is not None:
            return f"{self._path}/labels/{quote(label, safe='')}"
        if version is None:
            version = self.version
        return self._path if version is None else f"{self._path}/versions/{version}"

    def __repr__(self) -> str:
        return f"Model(name={self.name!r}, version={self.version})"
