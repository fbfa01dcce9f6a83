"""Refuses predictions at the door while the API itself is overloaded."""

import asyncio
import time

from prometheus_client import CollectorRegistry, Counter
from starlette.types import ASGIApp, Receive, Scope, Send

from service.api.http.errors import service_error_response
from service.shared.errors import Overloaded

# Of a deadline of a second: under load, the way to the door and back takes longer.
_MOST_SECONDS = 0.2
# So few predictions are always accepted: one of them may take long for itself.
_LEAST_ACCEPTED = 16
_FIRST_PACE = 3e-4
_PERIOD = 0.02
# A turn of the event loop that comes later is one of many in which it is busy.
_BUSY_LAG = 0.005
_ANSWERS_OF_SAMPLE = 50
_GAIN = 0.5
# What is left of a slow pace after each turn in which the event loop is not busy.
_KEPT = 0.9


class Door:
    """Counts the accepted predictions, and tells whether one more is answered in time.

    Whether they wait in the event loop, in the model process or on their way, the
    number N of accepted predictions that have no answer yet and the pace p, the seconds
    between two answers, give the time N p until the next one is answered (Little 1961).
    The pace is measured while the event loop is busy.

    Attributes:
        num_accepted: Predictions that were accepted and are not answered yet.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self.num_accepted = 0
        self._pace = _FIRST_PACE
        self._answers = 0
        self._was_crowded = False
        self._begin: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._refusals = Counter(
            "tfbbb_refused_predictions",
            "Predictions refused at the door because the API was overloaded.",
            registry=registry,
        )

    @property
    def seconds(self) -> float:
        """How long one more prediction should take."""
        return (self.num_accepted + 1) * self._pace

    def is_open(self) -> bool:
        """Whether one more prediction is answered in time."""
        return self.num_accepted < _LEAST_ACCEPTED or self.seconds <= _MOST_SECONDS

    def enter(self) -> None:
        """Counts a prediction that is accepted."""
        self.num_accepted += 1
        if self._timer is None:
            self._expect()

    def leave(self) -> None:
        """Counts the answer to a prediction that was accepted."""
        self._was_crowded |= self.num_accepted >= _LEAST_ACCEPTED
        self.num_accepted -= 1
        self._answers += 1

    def refusal(self) -> Overloaded:
        """Returns the error of a prediction that is not accepted."""
        self._refusals.inc()
        return Overloaded(
            f"The service is overloaded: {self.num_accepted} predictions are being "
            f"answered, and one more would take {self.seconds:.1f} s; retry after the "
            "seconds of `Retry-After`."
        )

    def observe(self, now: float, lag: float) -> None:
        """Learns the pace from a turn of the event loop."""
        if lag < _BUSY_LAG:
            self._begin = None
            self._pace = min(self._pace, max(_FIRST_PACE, _KEPT * self._pace))
        elif not self._was_crowded:
            self._begin = None
        elif self._begin is None:
            self._begin, self._answers = now, 0
        elif self._answers >= _ANSWERS_OF_SAMPLE:
            sample = (now - self._begin) / self._answers
            self._pace += _GAIN * (sample - self._pace)
            self._begin, self._answers = now, 0
        self._was_crowded = False

    def _expect(self) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time() + _PERIOD
        self._timer = loop.call_at(due, self._turn, due)

    def _turn(self, due: float) -> None:
        now = asyncio.get_running_loop().time()
        self.observe(now, now - due)
        self._timer = None
        if self.num_accepted:
            self._expect()  # Else the next prediction does.


class LoadShedding:
    """Refuses predictions for which the door is closed.

    Where the server's protocol is `JsonErrorProtocol`, it refuses most of them, and has
    counted those that it accepted. Also notes when a request has `arrived`, from which
    its deadline counts, unless the protocol has.
    """

    def __init__(self, app: ASGIApp, door: Door) -> None:
        self._app = app
        self._door = door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope.setdefault("arrived", time.monotonic())
        # The protocol counts what ends as a prediction does, such as `/#:predict`.
        if not scope.get("entered", False):
            if not is_prediction(scope["path"]):
                await self._app(scope, receive, send)
                return
            if not self._door.is_open():
                error = self._door.refusal()
                response = service_error_response(error)
                await response(scope, receive, send)
                return
            self._door.enter()
        try:
            await self._app(scope, receive, send)
        finally:
            self._door.leave()


def is_prediction(path: str) -> bool:
    """Whether a path is that of predictions."""
    return path.endswith((":predict", "/infer"))
