import os
import random
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

import httpx

import tfbbb
from tfbbb.client.errors import ClientError, ServiceError, UnreachableError

DEFAULT_URL = "http://127.0.0.1:8000"
# Until an answer begins: a first prediction waits for its model to be loaded.
_SECONDS = 120.0
_SECONDS_TO_CONNECT = 10.0
_PAUSES = (0.2, 0.5, 1.0, 2.0, 4.0)
# The service is about to start, or to stop.
_PASSING = (HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE)


class Connection:
    """Requests to one service, with its key, and its errors as exceptions.

    A request that changes nothing when it is sent twice is sent again, up to five
    times, when no answer comes.

    Args:
        url: Address of the service; `TFBBB_URL` by default, else that of
            `tfbbb serve`.
        key: API key; `TFBBB_KEY` by default.
    """

    def __init__(self, url: str | None = None, key: str | None = None) -> None:
        self.url = _checked(url or os.environ.get("TFBBB_URL") or DEFAULT_URL)
        key = key or os.environ.get("TFBBB_KEY")
        headers = {"User-Agent": f"tfbbb/{tfbbb.__version__}"}
        if key:
            if not (key.isascii() and key.isprintable()):
                raise ClientError("The API key must be ASCII text, `prefix.secret`.")
            headers["Authorization"] = f"Bearer {key}"
        timeout = httpx.Timeout(_SECONDS, connect=_SECONDS_TO_CONNECT)
        self._http = httpx.Client(base_url=self.url, headers=headers, timeout=timeout)

    def close(self) -> None:
        """Closes the connections that are kept open."""
        self._http.close()

    def ask(
        self, method: str, path: str, *, idempotent: bool | None = None, **options: Any
    ) -> Any:
        """Sends a request and returns the JSON of its answer.

        Args:
            method: `GET`, say.
            path: Path, `/v1/jobs`, say.
            idempotent: Whether it may be sent again; by default all but `POST`.
            options: What `httpx.Client.request` takes.

        Raises:
            ServiceError: The service refuses.
            UnreachableError: No answer comes.
        """
        if idempotent is None:
            idempotent = method != "POST"
        response = self._send(method, path, _PAUSES if idempotent else (), options)
        if response.is_error:
            raise _refusal(response)
        return response.json() if response.content else None

    @contextmanager
    def stream(
        self, path: str, headers: Mapping[str, str], silence: float
    ) -> Iterator[httpx.Response]:
        """Opens an answer that arrives bit by bit.

        Args:
            path: Path.
            headers: Headers beside those of every request.
            silence: Seconds without a byte after which the connection is given up.

        Raises:
            ServiceError: The service refuses.
            UnreachableError: The connection can't be made, or breaks.
        """
        timeout = httpx.Timeout(silence, connect=_SECONDS_TO_CONNECT)
        with (
            self._one_sentence(),
            self._http.stream("GET", path, headers=headers, timeout=timeout) as answer,
        ):
            if answer.is_error:
                answer.read()
                raise _refusal(answer)
            yield answer

    def _send(
        self, method: str, path: str, pauses: tuple[float, ...], options: dict[str, Any]
    ) -> httpx.Response:
        for pause in pauses:
            try:
                with self._one_sentence():
                    response = self._http.request(method, path, **options)
            except UnreachableError:
                pass
            else:
                if response.status_code not in _PASSING:
                    return response
            # Clients that were cut off together shall not all come back together.
            time.sleep(pause * random.uniform(0.5, 1.5))
        with self._one_sentence():
            return self._http.request(method, path, **options)

    @contextmanager
    def _one_sentence(self) -> Iterator[None]:
        try:
            yield
        except httpx.TimeoutException:
            raise UnreachableError(
                f"The service at {self.url} did not answer in time."
            ) from None
        except httpx.ConnectError as error:
            raise UnreachableError(
                f"There is no service at {self.url} ({error}); `tfbbb serve` starts "
                "one."
            ) from None
        except httpx.TransportError as error:
            raise UnreachableError(
                f"The connection to {self.url} broke: {error}."
            ) from None


def _checked(url: str) -> str:
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        parsed = httpx.URL()
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise ClientError(
            "The service's address must be http://HOST:PORT, or https. "
            f"Received: {url!r}"
        )
    return url.rstrip("/")


def _refusal(response: httpx.Response) -> ServiceError:
    if response.status_code == 401 and "Authorization" not in response.request.headers:
        return ServiceError(
            401,
            "The service asks for an API key: give one as `key`, or in TFBBB_KEY; "
            "`tfbbb keys create NAME --scope train`, on its machine, makes one.",
        )
    try:
        message = response.json()["error"]
    except (ValueError, KeyError, TypeError):
        # Something between the service and here has answered.
        message = f"{response.status_code} {response.reason_phrase}"
    return ServiceError(response.status_code, str(message))
