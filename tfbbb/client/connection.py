"""HTTP requests of the client, with retries."""

import os
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING

import httpx

from tfbbb.base.types import JsonObject
from tfbbb.client.errors import ClientError, ServiceError, UnreachableError
from tfbbb.version import __version__

if TYPE_CHECKING:
    import pyarrow as pa

DEFAULT_URL = "http://127.0.0.1:8000"
# The first prediction waits until the service has loaded the model.
SECONDS_TO_RESPOND = 120.0
_SECONDS_TO_CONNECT = 10.0
_PAUSES = (0.2, 0.5, 1.0, 2.0, 4.0)
# The service is starting or stopping.
_TRANSIENT = (HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE)
# The service has no time for the request now.
_BUSY = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)
_SECONDS_OF_PATIENCE = 60.0


class Connection:
    """Sends requests to one service and raises its errors as exceptions.

    Retries an idempotent request up to five times if no response comes, or a response
    that says that the service is starting or stopping.

    Args:
        url: Address of the service. Defaults to `TFBBB_URL`, else to the default
            address of `tfbbb serve`.
        key: API key. Defaults to `TFBBB_KEY`.
    """

    def __init__(self, url: str | None = None, key: str | None = None) -> None:
        self.url = _validate_url(url or os.environ.get("TFBBB_URL") or DEFAULT_URL)
        key = key or os.environ.get("TFBBB_KEY")
        headers = {"User-Agent": f"tfbbb/{__version__}"}
        if key:
            if not (key.isascii() and key.isprintable()):
                raise ClientError("The API key must be ASCII text, `prefix.secret`.")
            headers["Authorization"] = f"Bearer {key}"
        timeout = httpx.Timeout(SECONDS_TO_RESPOND, connect=_SECONDS_TO_CONNECT)
        self._http = httpx.Client(base_url=self.url, headers=headers, timeout=timeout)

    def close(self) -> None:
        """Closes the open connections to the service."""
        self._http.close()

    def request(
        self,
        method: str,
        path: str,
        *,
        idempotent: bool | None = None,
        **options: object,
    ) -> JsonObject:
        """Sends a request and returns the JSON object of the response."""
        if idempotent is None:
            idempotent = method != "POST"
        response = self._send(method, path, _PAUSES if idempotent else (), options)
        if response.is_error:
            raise _build_error(response)
        return response.json() if response.content else {}

    def predict(self, path: str, request: JsonObject) -> "pa.Table":
        """Sends a block of rows, and returns the answer, an Arrow stream."""
        import pyarrow as pa

        response = self._send("POST", path, _PAUSES, request, _SECONDS_OF_PATIENCE)
        if response.is_error:
            raise _build_error(response)
        with pa.ipc.open_stream(response.content) as stream:
            return stream.read_all()

    @contextmanager
    def stream(
        self, path: str, headers: Mapping[str, str], silence: float
    ) -> Iterator[httpx.Response]:
        """Opens a response that arrives in parts."""
        timeout = httpx.Timeout(silence, connect=_SECONDS_TO_CONNECT)
        with (
            self._raise_unreachable(),
            self._http.stream("GET", path, headers=headers, timeout=timeout) as answer,
        ):
            if answer.is_error:
                answer.read()
                raise _build_error(answer)
            yield answer

    def _send(
        self,
        method: str,
        path: str,
        pauses: Sequence[float],
        options: JsonObject,
        patience: float = 0.0,
    ) -> httpx.Response:
        """Sends a request, again after each pause while the service is not reached.

        For `patience` seconds, also waits as long as `Retry-After` of a response asks.
        """
        left, end = list(pauses), time.monotonic() + patience
        while True:
            try:
                with self._raise_unreachable():
                    response = self._http.request(method, path, **options)
            except UnreachableError:
                if not left:
                    raise
            else:
                wait = _find_retry_after(response)
                if wait is not None and time.monotonic() + wait < end:
                    time.sleep(wait * random.uniform(1.0, 1.2))
                    continue
                if response.status_code not in _TRANSIENT or not left:
                    return response
            # Jitter: clients that lost the service together must not return together.
            time.sleep(left.pop(0) * random.uniform(0.5, 1.5))

    @contextmanager
    def _raise_unreachable(self) -> Iterator[None]:
        """Turns errors of the transport into `UnreachableError`."""
        try:
            yield
        except httpx.TimeoutException:
            raise UnreachableError(
                f"The service at {self.url} did not answer in time."
            ) from None
        except httpx.ConnectError as error:
            raise UnreachableError(
                f"There is no service at {self.url} ({error}); start one with `tfbbb "
                "serve`."
            ) from None
        except httpx.TransportError as error:
            raise UnreachableError(
                f"The connection to {self.url} broke: {error}."
            ) from None


def _find_retry_after(response: httpx.Response) -> float | None:
    """Returns the seconds after which a busy service asks to be asked again."""
    seconds = response.headers.get("Retry-After", "")
    if response.status_code not in _BUSY or not seconds.isdecimal():
        return None
    return max(float(seconds), _PAUSES[0])


def _validate_url(url: str) -> str:
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        parsed = httpx.URL()
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise ClientError(
            "The service's address must be http://HOST:PORT or https://HOST:PORT. "
            f"Received: {url!r}"
        )
    return url.rstrip("/")


def _build_error(response: httpx.Response) -> ServiceError:
    if response.status_code == 401 and "Authorization" not in response.request.headers:
        return ServiceError(
            401,
            "The service requires an API key: pass `key` (`--key`), or set TFBBB_KEY. "
            "Create a key on the machine of the service with "
            "`tfbbb keys create NAME --scope train`.",
        )
    try:
        message = response.json()["error"]
    except (ValueError, KeyError, TypeError):
        # A proxy responded instead of the service.
        message = f"{response.status_code} {response.reason_phrase}"
    return ServiceError(response.status_code, str(message))
