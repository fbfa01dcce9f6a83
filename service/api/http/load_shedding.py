"""Refuses predictions at the door while the API itself is overloaded."""

import asyncio
import time

from starlette.types import ASGIApp, Receive, Scope, Send

from service.api.http.errors import error_response
from service.shared.errors import Overloaded

_PREDICTIONS = (":predict", ":classify", ":regress", "/infer")
_PERIOD = 0.02
_GAIN = 0.2
# A request takes several turns of the event loop, so its response takes several times
# as long.
_MOST_LAG = 0.12
# One pause, such as to copy a large body, is no overload.
_LONGEST_PAUSE = 0.3


class LoadShedding:
    """Refuses predictions while the turns of the event loop take long.

    A request that waits in the event loop is seen by no queue. A refusal at the door
    costs a tenth of a request, so those that are accepted are answered in time. Also
    notes when each request `arrived`, from which its deadline counts.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._lag = 0.0
        self._timer: asyncio.TimerHandle | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope["arrived"] = time.monotonic()
            if scope["path"].endswith(_PREDICTIONS):
                self._start()
                if self._lag > _MOST_LAG:
                    await _refusal(self._lag)(scope, receive, send)
                    return
        await self._app(scope, receive, send)

    def _start(self) -> None:
        if self._timer is None:
            self._expect()

    def _expect(self) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time() + _PERIOD
        self._timer = loop.call_at(due, self._observe, due)

    def _observe(self, due: float) -> None:
        lag = min(_LONGEST_PAUSE, asyncio.get_running_loop().time() - due)
        self._lag += _GAIN * (lag - self._lag)
        self._timer = None
        if self._lag > _MOST_LAG / 1000:
            self._expect()  # Else the next prediction does.


def _refusal(lag: float) -> ASGIApp:
    error = Overloaded(
        f"The service is overloaded: a turn takes {1e3 * lag:.0f} ms; retry after the "
        "seconds of `Retry-After`."
    )
    return error_response(error.status, str(error), dict(error.headers))
