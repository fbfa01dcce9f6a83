"""The lines of the log: text or JSON, each with its time, level and process."""

import functools
import logging
import os
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import TextIO

import orjson

from tfbbb.base.types import JsonObject

# The logger of requests, whose records have `fields`.
ACCESS = "service.access"
# Of these INFO is shown; of libraries, warnings alone.
_OURS = ("__main__", "service", "tfbbb", "uvicorn")

_SECONDS_BETWEEN_WRITES = 0.2


class _Lines(logging.Formatter):
    """Formats records of one process."""

    def __init__(self, process: str) -> None:
        super().__init__("%(time)s %(levelname)s %(process_name)s: %(message)s")
        self._process = process

    def format(self, record: logging.LogRecord) -> str:
        record.time, record.process_name = format_time(record.created), self._process
        return super().format(record)


class _JsonLines(_Lines):
    """Formats records as objects; those of requests have their fields as members."""

    def format(self, record: logging.LogRecord) -> str:
        line: JsonObject = {
            "time": format_time(record.created),
            "level": record.levelname,
            "process": self._process,
        }
        fields = getattr(record, "fields", None)
        line |= {"message": record.getMessage()} if fields is None else fields
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return orjson.dumps(line, default=str).decode()


class _JoinedLines(logging.StreamHandler[TextIO]):
    """Writes the lines of requests a few times a second, and at the end.

    A call of the system for each line takes as long as to format it.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._lines: list[str] = []
        self._has_lines = threading.Event()
        threading.Thread(target=self._follow, name="request log", daemon=True).start()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._lines.append(f"{self.format(record)}\n")
        except Exception:
            self.handleError(record)
        if len(self._lines) == 1:
            self._has_lines.set()

    def flush(self) -> None:
        self.acquire()
        try:
            lines, self._lines = self._lines, []
            self._has_lines.clear()
            if lines:
                self.stream.write("".join(lines))
            super().flush()
        finally:
            self.release()

    def _follow(self) -> None:
        while self._has_lines.wait():
            time.sleep(_SECONDS_BETWEEN_WRITES)
            with suppress(OSError):  # A full disk: later lines may have room.
                self.flush()


_FORMATS: Mapping[str, type[_Lines]] = {"text": _Lines, "json": _JsonLines}


def configure_logging(
    process: str, environment: Mapping[str, str] = os.environ
) -> None:
    """Makes a process log as TFBBB_LOG_FORMAT and TFBBB_ACCESS_LOG say.

    Requests are logged on standard output, all else on standard error. Does nothing in
    a program that has configured its logs.
    """
    if logging.getLogger().handlers:
        return
    # Read before the settings, which may warn.
    format = environment.get("TFBBB_LOG_FORMAT", "text")
    of_requests = environment.get("TFBBB_ACCESS_LOG", format)
    errors = _formatted(logging.StreamHandler(sys.stderr), process, format)
    logging.basicConfig(level=logging.WARNING, handlers=[errors])
    for name in _OURS:
        logging.getLogger(name).setLevel(logging.INFO)
    # Which no line has, and which take a tenth of the time of a line.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    access = logging.getLogger(ACCESS)
    access.propagate = False
    if of_requests == "off":
        access.setLevel(logging.CRITICAL)
    else:
        access.addHandler(_formatted(_JoinedLines(sys.stdout), process, of_requests))
    # The messages of libraries about graphs do not help an operator.
    logging.getLogger("absl").setLevel(logging.ERROR)
    logging.captureWarnings(True)
    sys.excepthook = _log_end_of_process
    threading.excepthook = _log_end_of_thread


def _formatted(
    handler: logging.StreamHandler[TextIO], process: str, format: str
) -> logging.Handler:
    handler.setFormatter(_FORMATS.get(format, _Lines)(process))
    return handler


def format_time(seconds: float) -> str:
    """Formats seconds since 1970 as ISO 8601 in UTC, to milliseconds."""
    whole = int(seconds)
    return f"{_format_second(whole)}.{int(1e3 * (seconds - whole)):03}Z"


@functools.lru_cache(4)
def _format_second(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))


def _log_end_of_process(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, traceback)
        return
    logging.critical("the process ends", exc_info=(kind, error, traceback))


def _log_end_of_thread(arguments: threading.ExceptHookArgs) -> None:
    error = arguments.exc_value
    if error is None or isinstance(error, SystemExit):
        return
    name = "unknown" if arguments.thread is None else arguments.thread.name
    logging.error("the thread %s ends", name, exc_info=error)
